"""What the reading tools share: views of a file, and the repository map. Start with `file_view`."""
