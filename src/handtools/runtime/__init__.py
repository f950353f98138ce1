"""Decides, runs and remembers."""
