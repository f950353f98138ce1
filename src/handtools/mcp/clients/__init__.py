"""AI clients whose config files `handtools install` edits to add our MCP server; see `client_setup`."""
