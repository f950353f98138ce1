"""Code shared by the reading tools: views of a file, and data of the repository map. Start with `file_view`."""
