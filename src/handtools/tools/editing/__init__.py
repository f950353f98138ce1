"""Code shared by the editing tools: drafts of changed files, and the edit agent's session. Start with `drafts`."""
