"""Guarded ports: wrap the machine's ports and enforce the policy for tools. Start with `files`."""
