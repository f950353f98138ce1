"""Readers for files that are not plain text; some need an optional library. Start with `local_media`."""

UNREADABLE_HINT = "Open it with another program, or get a new copy."
"""The hint for a file that can't be read as the kind that its first bytes indicate."""
