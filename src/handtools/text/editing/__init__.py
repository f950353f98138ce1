"""Replace `old_string` by `new_string` in a text, in the one place that can be meant.

Or refuse and say what to send.

Start with `replacement.replace_text`, which tries the rules one after another: exact, loose, with lines left
out, with a typo, merged.
"""

from handtools.text.editing.edit_outcome import (
    AlreadyApplied,
    Applied,
    CharSpan,
    EditCandidate,
    EditOutcome,
    EditRefused,
    Excerpt,
    MatchHint,
    MatchTier,
    RefusalCode,
)
from handtools.text.editing.refusals import render_refusal
from handtools.text.editing.replacement import refuse_missing, replace_text

__all__ = [
    "AlreadyApplied",
    "Applied",
    "CharSpan",
    "EditCandidate",
    "EditOutcome",
    "EditRefused",
    "Excerpt",
    "MatchHint",
    "MatchTier",
    "RefusalCode",
    "refuse_missing",
    "render_refusal",
    "replace_text",
]
