"""The editing engine of the editing tools: replacing a string, applying patches, drafts of changed files.

`replacement.replace_text` replaces `old_string` with `new_string` in the only place that fits. It tries its
rules in order: exact match, loose match, match with elided lines, match with typos corrected, three-way
merge. If no place or several places fit, the edit is refused with a hint on what to send. `drafts` collects
the edits of one call.
"""
