"""What the command tools share: the lines about a command that ended."""
