"""User approval: the gate that checks every effect, and the preview of a request. Start with `gate`."""
