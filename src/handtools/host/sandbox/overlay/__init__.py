"""Overlayfs: commands write into an upper layer, which is then read as file changes. Start with `capture`."""
