"""What the editing tools share: drafts of files, and the session of the edit agent. Start with `drafts`."""
