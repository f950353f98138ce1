"""The MCP server over stdio (`stdio`) and HTTP (`http_server`). Both pass tool calls to `tool_calls`."""
