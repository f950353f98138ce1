"""Touches the machine."""
