"""Access to this machine: implementations of the ports in `core` for files, search, commands, web etc.

`files` is the workspace on disk, `search` searches it, `sandbox` confines commands, `programs` starts
helper programs.
"""
