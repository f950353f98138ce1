"""Pure functions over strings and bytes: no I/O, no async."""
