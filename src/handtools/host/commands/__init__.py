"""Bash commands of a workspace: run, background jobs, shell state between commands.

Start with `local_commands`.
"""
