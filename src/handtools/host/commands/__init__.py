"""Bash commands in a workspace: running them, background jobs, shell state between commands.

Start with `local_commands`.
"""
