"""Asking a person: the gate that every effect passes, and the preview they are shown. Start with `gate`."""
