"""The web as text: URLs, hosts that may be reached, robots.txt and the content of pages. Start with `url`."""
