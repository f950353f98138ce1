"""Touches the machine.

`files` is the workspace on disk, `search` looks through it, `programs` starts what we need ourselves.
"""
