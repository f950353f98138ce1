"""Web access without I/O: URLs, allowed hosts, robots.txt and the content of pages. Start with `url`."""
