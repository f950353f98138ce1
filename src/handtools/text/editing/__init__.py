"""String replacement for edits by a model: `old_string` becomes `new_string` in the one place that can be meant.

If no place or several fit, the edit is refused with a hint what to send. Start with `replacement.replace_text`,
which tries its rules one after another: exact, loose, with elided lines, with a typo, merged.
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
