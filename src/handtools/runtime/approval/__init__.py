"""Approval by a person: the gate that checks every effect, and the preview shown. Start with `gate`."""
