"""Pure functions over strings and bytes, without I/O: edits, diffs, patches, globs, shell scripts, web pages."""
