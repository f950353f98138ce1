"""Pure functions on strings and bytes, without I/O: encodings, lines, diffs, globs, shell, URLs."""
