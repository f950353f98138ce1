"""The tools in every client that speaks MCP, over stdio and HTTP."""
