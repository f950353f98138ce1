"""Bash commands of a workspace: run, kept in the background, their shell state. Start with `local_commands`."""
