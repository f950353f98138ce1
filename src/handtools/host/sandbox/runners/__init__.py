"""Runners: each confines a launch in one way and describes its boundary. Start with `runner_selection`."""
