"""AI clients whose config files `handtools install` edits to add our MCP server. Start with `client_setup`."""
