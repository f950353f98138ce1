"""Guarded ports: wrappers around the machine's ports that enforce the policy for tools. Start with `files`."""
