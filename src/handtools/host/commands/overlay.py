"""Overlay: a command writes into a layer of its own, and what it wrote is looked at before it lands."""
