"""Runners: how a launch is confined, each with an honest word about its boundary."""
