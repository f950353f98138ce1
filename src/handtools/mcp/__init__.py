"""The tools in every client that speaks MCP. Start with `stdio` or `http_server`; both end in `tool_calls`."""
