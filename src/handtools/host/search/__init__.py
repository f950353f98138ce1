"""Search and list the files of a workspace on disk. Start with `ripgrep_search`."""
