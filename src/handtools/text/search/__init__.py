"""Search without file access: globs, ignore files, and how results are shown. Start with `glob`."""
