"""Overlayfs: commands write to an upper layer, which shows what they changed. See `overlay_capture`."""
