"""The MCP server, over stdio (`stdio`) and HTTP (`http_server`). Both hand tool calls to `tool_calls`."""
