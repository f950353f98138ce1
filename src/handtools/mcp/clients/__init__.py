"""AI clients and the edits to their config files by which `handtools install` adds our MCP server."""
