"""Overlayfs: commands write into an upper layer that is read as changes. Start with `capture`."""
