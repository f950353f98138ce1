"""Pure functions on strings and bytes, without I/O: edits, diffs, patches, globs, shell, web pages."""
