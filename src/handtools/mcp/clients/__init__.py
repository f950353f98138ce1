"""Clients that are set up by a file: where it is, what belongs into it, and how to take it out again."""
