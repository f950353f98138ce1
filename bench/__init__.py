"""Figures as ratios against the bare thing, taken side by side in one run: `python -m bench NAME --json`."""
