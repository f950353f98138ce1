"""The `handtools` command line.

`entry` starts it, `main` registers the commands, the others hold a command or a few each.
"""
