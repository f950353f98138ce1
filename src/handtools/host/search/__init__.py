"""Searching and listing a workspace on disk. Start with `ripgrep`."""
