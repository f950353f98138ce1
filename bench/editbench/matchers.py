"""What is measured: our matcher, and exact replacement as the baseline."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.editbench.cases import Case
from handtools.text import encoding
from handtools.text.patch_model import MalformedPatch
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditApplied, MatchHint
from handtools.tools.editing.hunk_placement import HunkMisfit, apply_hunks
from handtools.tools.editing.patch_parser import parse_patch
from handtools.tools.editing.refusals import render_refusal
from handtools.tools.editing.replacement import replace_text


@dataclass(frozen=True, slots=True)
class Answer:
    """The new bytes, or the refusal as a model would read it."""

    text: bytes | None
    message: str = ""
    how: str = ""


Matcher = Callable[[Case], Answer]


def ours(case: Case) -> Answer:
    """The matcher of this project, over the file's bytes."""
    source = encoding.decode(case.content)
    if case.patch:
        return _patched(case, source)
    hint = None if case.line is None else MatchHint(line=case.line, within=case.within)
    seen = None if case.seen is None else encoding.decode(case.seen).body
    outcome = replace_text(source.body, case.old, case.new, hint=hint, seen=seen)
    if isinstance(outcome, AlreadyApplied):
        return Answer(case.content, render_refusal(outcome), outcome.code)
    if not isinstance(outcome, EditApplied):
        return Answer(None, render_refusal(outcome), outcome.code)
    try:
        return Answer(source.encode(outcome.text), how=outcome.tier)
    except encoding.Unencodable as error:
        return Answer(None, str(error), "unencodable")


def _patched(case: Case, source: encoding.DecodedText) -> Answer:
    """The hunks of the patch's one file on its text."""
    try:
        (file,) = parse_patch(case.patch)
    except (MalformedPatch, ValueError) as error:
        return Answer(None, str(error), "malformed")
    outcome = apply_hunks(source.body, file.hunks)
    if isinstance(outcome, HunkMisfit):
        return Answer(None, f"hunk {outcome.hunk}: {render_refusal(outcome.refused)}", outcome.refused.code)
    return Answer(source.encode(outcome.text), how="; ".join(outcome.notes))


def exact(case: Case) -> Answer:
    """One occurrence, byte for byte, or nothing."""
    old, new = case.old.encode(), case.new.encode()
    if not old or old == new or case.content.count(old) != 1:
        return Answer(None, "not found or not unique", "not_found")
    return Answer(case.content.replace(old, new), how="exact")


MATCHERS: dict[str, Matcher] = {"ours": ours, "exact": exact}
