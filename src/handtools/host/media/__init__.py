"""Readers of files that are not plain text, where their library is installed. Start with `local_media`."""

UNREADABLE_HINT = "Open it with another program, or get a new copy."
"""The next step where a file is not what its first bytes promise."""
