"""Web access without I/O: URLs and allowed hosts. Start with `url`."""
