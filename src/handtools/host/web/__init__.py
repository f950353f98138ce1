"""Fetch web pages and search the web from this machine. Start with `local_web`."""
