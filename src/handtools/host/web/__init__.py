"""Pages and searches from this machine. Start with `local_web`."""
