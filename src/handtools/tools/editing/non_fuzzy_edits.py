"""Edits without fuzzy matching: inserting lines at a line number, replacing text verbatim."""

from handtools.text import lines
from handtools.text.lines import SplicedText
from handtools.tools.editing.edit_outcome import AlreadyApplied, CharSpan, EditApplied, EditRefused, Excerpt
from handtools.tools.editing.replacement import replace_text


def insert_lines(body: str, line: int, text: str) -> str:
    """Return `body` with `text` inserted at line number `line`; the number after the last line appends."""
    if not body:
        return text
    at = lines.start_offset_of_line_number(body, line)
    end = _line_ending_near_offset(body, at)
    wanted = lines.convert_line_ends(text, end)
    closed = wanted if wanted.endswith(end) else wanted + end
    if at == len(body) and body[-1] not in "\r\n":
        # A file without a final line ending stays without one.
        return body + end + closed.removesuffix(end)
    return SplicedText(body, at, at, closed).full_text


def _line_ending_near_offset(body: str, at: int) -> str:
    """Return the line ending of the line before an offset, or of the first line of the text."""
    before = lines.ending_of_line(body[max(at - 2, 0) : at])
    if before:
        return before
    stops = [place for place in (body.find("\r"), body.find("\n")) if place >= 0]
    first = min(stops, default=-1)
    return "\n" if first < 0 else "\r\n" if body.startswith("\r\n", first) else body[first]


def replace_verbatim(body: str, old: str, new: str) -> EditApplied | EditRefused:
    """Replace text that occurs exactly once, verbatim except for line endings; otherwise refuse."""
    end = lines.dominant_ending(body)
    for needle, wanted in (
        (lines.convert_line_ends(old, end), lines.convert_line_ends(new, end)),
        (old, new),
    ):
        at = body.find(needle) if needle else -1
        if at >= 0 and needle != wanted and body.find(needle, at + 1) < 0:
            span = CharSpan(at, at + len(needle))
            return EditApplied(spliced=SplicedText(body, at, span.end, wanted), tier="exact", spans=(span,))
    outcome = replace_text(body, old, new)
    if isinstance(outcome, AlreadyApplied):
        return _refuse_already_applied(outcome)
    return outcome if isinstance(outcome, EditRefused) else _refuse_inexact_match(body, outcome)


def _refuse_already_applied(already_applied: AlreadyApplied) -> EditRefused:
    return EditRefused(
        code="not_found",
        message=f"old_string did not appear verbatim; new_string is already there, at {already_applied.where}.",
        hint="If that is what you wanted, nothing needs to be done.",
        nearest_excerpt=already_applied.excerpt,
    )


def _refuse_inexact_match(body: str, applied: EditApplied) -> EditRefused:
    """Refuse the edit, quoting the lines that looser matching found, for the model to send instead."""
    span = applied.spans[0]
    text = body[span.start : span.end]
    line = lines.line_number_at(body, span.start)
    rows = tuple(lines.without_line_ending(row) for row in lines.split_lines(text))
    return EditRefused(
        code="not_found",
        message=f"old_string did not appear verbatim; line {line} matches except for {applied.tier}.",
        hint="If you mean those lines, send the old_string above.",
        nearest_excerpt=Excerpt(line, rows),
        suggestion="\n".join(rows),
    )


def old_string_with_line_end(body: str, old: str, new: str) -> str:
    """Extend an `old_string` of whole lines by its line ending if `new` is empty, to avoid a blank line."""
    if new or not old or old.endswith("\n"):
        return old
    text, lone = (lines.convert_line_ends(each, "\n") for each in (body, old))
    return f"{old}\n" if f"\n{text}".count(f"\n{lone}\n") == 1 == text.count(lone) else old
