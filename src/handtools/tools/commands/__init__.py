"""Code shared by the command tools: result lines about a finished command."""
