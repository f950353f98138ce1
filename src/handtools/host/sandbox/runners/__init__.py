"""Runners: each confines a launch in one way and says what its boundary is. Start with `runner_selection`."""
