"""Overlayfs: commands write to an upper layer, read as file changes. Start with `overlay_capture`."""
