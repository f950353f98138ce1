"""Readers for files that are not plain text, if their library is installed. Start with `local_media`."""

UNREADABLE_HINT = "Open it with another program, or get a new copy."
"""The hint for a file that is not of the kind its first bytes indicate."""
