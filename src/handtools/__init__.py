"""Hand tools for coding agents."""
