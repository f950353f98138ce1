"""String replacement for a model's edits: `old_string` becomes `new_string` in the only possible place.

If no place or several places fit, the edit is refused with a hint on what to send. Start with
`replacement.replace_text`, which tries its rules in order: exact, loose, with elided lines, with a typo,
merged.
"""

from handtools.text.editing.edit_outcome import (
    AlreadyApplied,
    CharSpan,
    EditApplied,
    EditCandidate,
    EditOutcome,
    EditRefused,
    Excerpt,
    MatchHint,
    MatchTier,
    RefusalCode,
)
from handtools.text.editing.refusals import render_refusal
from handtools.text.editing.replacement import refuse_missing_old_string, replace_text

__all__ = [
    "AlreadyApplied",
    "CharSpan",
    "EditApplied",
    "EditCandidate",
    "EditOutcome",
    "EditRefused",
    "Excerpt",
    "MatchHint",
    "MatchTier",
    "RefusalCode",
    "refuse_missing_old_string",
    "render_refusal",
    "replace_text",
]
