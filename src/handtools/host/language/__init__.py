"""Language servers and formatters of this machine. Start with `local_language`, then `workspace_session`."""
