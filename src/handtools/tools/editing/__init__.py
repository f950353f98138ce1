"""The editing engine that the editing tools share: replacing a string, applying patches, drafts of changed files.

`replacement.replace_text` replaces `old_string` by `new_string` in the only possible place. It tries its rules in
order: exact, loose, with elided lines, with a typo, merged. If no place or several places fit, the edit is refused
with a hint on what to send. `drafts` collects the edits of one call.
"""
