"""Language servers (LSP) and code formatters on this machine.

Start with `local_language`, then `workspace_session`.
"""
