"""Web access as pure text: URLs, allowed hosts, robots.txt and the content of pages. Start with `url`."""
