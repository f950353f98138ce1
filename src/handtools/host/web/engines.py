"""Search engines: one small adapter each."""
