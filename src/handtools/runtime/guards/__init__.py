"""One guard per port: what a tool holds instead of the machine's own. Start with `files`."""
