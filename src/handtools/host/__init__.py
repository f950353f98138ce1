"""Access to this machine: implementations of the ports in `core` for files, search, commands, web and so on.

`files` is the workspace on disk, `search` searches it, `sandbox` confines commands, `programs` starts our helpers.
"""
