"""Search without files: globs, ignore files, and results as they are shown. Start with `glob`."""
