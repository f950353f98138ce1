"""The `handtools` command line.

`entry` is the entry point, `main` registers the commands, and the other modules implement them.
"""
