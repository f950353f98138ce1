"""Search without file access: globs, ignore files, and the rendering of results. Start with `glob`."""
