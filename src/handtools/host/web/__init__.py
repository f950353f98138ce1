"""Fetching web pages and searching the web from this machine. Start with `local_web`."""
