"""Exact replacement: `old_string` occurs verbatim in the file, and is replaced once or everywhere."""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise

from handtools.text import lines
from handtools.text.lines import SplicedText, indentation_of_line
from handtools.tools.editing import already_applied, refusals
from handtools.tools.editing.edit_outcome import (
    CharSpan,
    EditApplied,
    EditOutcome,
    EditRefused,
    MatchHint,
    UnclearEdit,
)
from handtools.tools.editing.loose_replacement import replay_edit_on_lines
from handtools.tools.editing.normalized_lines import (
    BLOCK_OPENERS,
    LineIndex,
    LineMatch,
    MatchLoss,
    substring_offsets,
)

MAX_OCCURRENCES = 20
INSIDE_WORD_NOTE = "inside a longer word"
_HEAD = re.compile(r"\.?\w+|.", re.DOTALL)
_TAIL = re.compile(r"\w+\.?\Z|.\Z", re.DOTALL)
_POINT = re.compile(r"(?<=\d)\.(?=\d)")
# Text that follows one of these on the same line is a separate statement.
_CLOSED = ("\n", "\r", ";", "{", "}", ">", ",")
_TRAILING = re.compile(r"[ \t]+(?![^\r\n])")
_MORE = re.compile(r"[^\w\r\n]*\w")
_JOINER = "\u200d"
_SKIN_COLOURS = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
# Most scripts from Thai (U+0E00) on are written without spaces between words. The exceptions are the Latin
# and Greek letters from U+1E00 up to U+2000.
_FIRST_UNSPACED, _LATIN_AGAIN, _SIGNS = "\u0e00", "\u1e00", "\u2000"


def replace_exact(
    line_index: LineIndex, old: str, new: str, hint: MatchHint | None, *, repaired: bool = False
) -> EditOutcome | None:
    """Replace the only exact occurrence of `old`, or refuse if there are several; None if there is none.

    `repaired` means that `old` is not what was sent: then it is not replaced inside a longer word.
    """
    body = line_index.text
    end = lines.uniform_ending(body)
    if ("\r" in old or "\r" in new) and lines.convert_line_ends(old, "\n") == lines.convert_line_ends(
        new, "\n"
    ):
        text, needle, wanted = body, old, new
    elif end is None:
        text, needle, wanted = (
            line_index.text_with_line_feeds,
            lines.convert_line_ends(old, "\n"),
            lines.convert_line_ends(new, "\n"),
        )
    else:
        text, needle, wanted = body, lines.convert_line_ends(old, end), lines.convert_line_ends(new, end)
    found = substring_offsets(text, needle, most=MAX_OCCURRENCES)
    if not found:
        return None
    near = found if hint is None else _offsets_near(text, needle, hint)
    if len(near) == 1:
        return _replace_at_offset(line_index, text, near[0], needle, wanted, repaired=repaired)
    places = [lines.line_number_at(text, at) for at in near or found]
    if hint is not None and not near:
        return refusals.refuse_elsewhere(line_index, places, hint)
    return refusals.refuse_ambiguous(
        line_index, places, needle, or_more=len(near) == MAX_OCCURRENCES, exact=not repaired
    )


def _offsets_near(text: str, needle: str, hint: MatchHint) -> list[int]:
    """Return the offsets of a substring at the hint's line; if it is not there, within the hint's range."""
    for within in (0, hint.within):
        start, stop = (
            lines.start_offset_of_line_number(text, max(line, 1))
            for line in (hint.line - within, hint.line + within + 1)
        )
        near = substring_offsets(text[start : stop + len(needle) - 1], needle, most=MAX_OCCURRENCES)
        if near:
            return [start + at for at in near]
    return []


def _replace_at_offset(
    line_index: LineIndex, text: str, at: int, needle: str, wanted: str, *, repaired: bool
) -> EditOutcome | None:
    """Replace the occurrence at an offset, or refuse if that splits a line or a block.

    Returns None if the edit must be matched by whole lines instead.
    """
    body = line_index.text
    inside_word = _changes_part(_is_inside_token, text, at, needle, wanted)
    if inside_word and (repaired or _changes_part(_is_inside_number, text, at, needle, wanted)):
        return refusals.refuse_inside_word(line_index, lines.line_number_at(text, at), needle)
    if (done := already_applied.find_applied_around_text(line_index, text, at, needle, wanted)) is not None:
        return done
    if refusal := _refusal_if_depth_lost(line_index, text, at, needle, wanted):
        return refusal
    if _would_split_line(text, at + len(needle), needle, wanted) or _joins_lines(text, at, needle, wanted):
        return refusals.refuse_line_cut_in_two(line_index, lines.line_number_at(text, at), needle)
    if _lacks_final_line_end(text, at, needle, wanted):
        return refusals.refuse_forgotten_line_end(line_index, lines.line_number_at(text, at + len(needle)))
    if _is_cut_deletion(text, at, needle, wanted):
        start = lines.line_start_offset(text, at)
        at, needle = start, text[start : at + len(needle)]
    if _cuts_edge_blanks(text, at, needle, wanted):
        return None
    if text is body:
        span = CharSpan(at, at + len(needle))
        notes = (INSIDE_WORD_NOTE,) if inside_word else ()
        spliced = SplicedText(body, at, span.end, wanted)
        return EditApplied(spliced=spliced, tier="exact", spans=(span,), notes=notes)
    return _replace_lines(line_index, at, needle, wanted)


def replace_all_exact(line_index: LineIndex, old: str, new: str) -> EditApplied | EditRefused | None:
    """Replace all exact occurrences of `old`.

    Refuses if different line endings hide some of them. Returns None if there are none.
    """
    body = line_index.text
    mixed = lines.uniform_ending(body) is None
    end = line_index.dominant_line_end
    needle, wanted = lines.convert_line_ends(old, end), lines.convert_line_ends(new, end)
    spans = []
    at = body.find(needle)
    while at >= 0:
        spans.append(CharSpan(at, at + len(needle)))
        at = body.find(needle, at + len(needle))
    start, stop = (spans[0].start, spans[-1].end) if spans else (0, 0)
    spliced = SplicedText(body, start, stop, body[start:stop].replace(needle, wanted))
    if mixed and not _has_expected_lines(line_index, spliced.full_text, old, new):
        return EditRefused(
            code="unclear",
            message="Not all occurrences have the same line endings.",
            hint="Replace them one by one.",
        )
    if not spans:
        return None
    return EditApplied(
        spliced=spliced, tier="exact", spans=tuple(spans), notes=tuple(_words_cut_by_spans(body, spans))
    )


def _has_expected_lines(line_index: LineIndex, after: str, old: str, new: str) -> bool:
    """Whether `after` has the lines it should: no occurrence missed, no line ending split or joined."""
    mine, theirs = (lines.convert_line_ends(text, "\n") for text in (old, new))
    return lines.convert_line_ends(after, "\n") == line_index.text_with_line_feeds.replace(mine, theirs)


def _words_cut_by_spans(body: str, spans: list[CharSpan]) -> list[str]:
    inside = sum(_is_inside_token(body, span.start) or _is_inside_token(body, span.end) for span in spans)
    return [f"{inside} of them inside a longer word"] if inside else []


def _is_inside_token(text: str, at: int) -> bool:
    """Whether an offset lies inside a word, a number or a combined character."""
    if not 0 < at < len(text):
        return False
    return all(map(_is_letter, text[at - 1 : at + 1])) or _is_inside_number(text, at)


def _is_inside_number(text: str, at: int) -> bool:
    """Whether an offset lies inside a number or a combined character, of which a part means something else."""
    if not 0 < at < len(text):
        return False
    return (
        text[at - 1 : at + 1].isdigit()
        or any(_POINT.match(text, place) for place in (at - 1, at))
        or _is_combining_char(text[at])
        or text[at - 1] == _JOINER
    )


def _is_letter(char: str) -> bool:
    """Whether a character belongs to a word; False in scripts without spaces between words."""
    return char == "_" or (char.isalnum() and (char < _FIRST_UNSPACED or _LATIN_AGAIN <= char < _SIGNS))


def _is_combining_char(char: str) -> bool:
    """Whether a character combines with the preceding one: an accent, a skin tone, a joiner."""
    return not char.isascii() and (
        char == _JOINER or char in _SKIN_COLOURS or unicodedata.category(char)[0] == "M"
    )


def _changes_part(inside: Callable[[str, int], bool], text: str, at: int, old: str, new: str) -> bool:
    """Whether an edit starts or ends inside a word or number, as `inside` decides, and changes it."""
    for edge, part in ((at, _HEAD.match), (at + len(old), _TAIL.search)):
        if not inside(text, edge):
            continue
        mine, theirs = part(old), part(new)
        if mine and (theirs is None or mine[0] != theirs[0] or mine[0] == old == theirs[0]):
            return True
    return False


def _refusal_if_depth_lost(
    line_index: LineIndex, text: str, at: int, old: str, new: str
) -> EditRefused | None:
    """Refuse an edit that adds lines below an old line that was quoted without its indentation.

    Returns None if the depth of the added lines is clear.
    """
    start = lines.line_start_offset(text, at)
    lost = text[start:at]
    first, *below = lines.split_lines(new) or [""]
    added = [line for line in below if line.strip()]
    if not lost or lost.strip(" \t") or not added or len(lines.split_lines(old)) > 1:
        return None
    if indentation_of_line(old):
        # The old line has too little indentation, so the added lines do too, by the same amount.
        return None
    # Spaces in a file that indents with tabs, or the reverse, say nothing about depth.
    deep = all(indentation_of_line(line).startswith(lost) for line in added)
    rest = lines.split_lines(text[at + len(old) :].partition("\n")[2])
    following = next((row for row in rest if row.strip()), "") if _opens_block(old) else ""
    if deep and first.strip() and _keeps_blocks([lost + first, *added], following):
        return None
    return refusals.refuse_old_without_indentation(line_index, lines.line_number_at(text, at), old)


def _keeps_blocks(rows: list[str], following: str) -> bool:
    """Whether every row that opens a block has a deeper one below it, and no other row has.

    `following` is the file's row below, if it belongs to the block that the replaced line opened.
    """
    if following and _is_deeper(following, rows[-1]) != _opens_block(rows[-1]):
        return False
    return all(_is_deeper(lower, upper) for upper, lower in pairwise(rows) if _opens_block(upper))


def _opens_block(row: str) -> bool:
    return row.rstrip().endswith(BLOCK_OPENERS)


def _is_deeper(row: str, upper: str) -> bool:
    return len(indentation_of_line(row)) > len(indentation_of_line(upper))


def _is_cut_deletion(text: str, at: int, old: str, new: str) -> bool:
    """Whether an edit deletes whole lines but leaves the first one's indentation before the next line."""
    return (
        not new
        and old.endswith(("\n", "\r"))
        and not text[lines.line_start_offset(text, at) : at].strip(" \t")
    )


def _joins_lines(text: str, at: int, old: str, new: str) -> bool:
    """Whether an edit deletes the end of a line with its line ending, and so joins the next line to it."""
    kept = text[lines.line_start_offset(text, at) : at].strip(" \t")
    return not new and bool(kept) and bool(old.strip()) and old.endswith(("\n", "\r"))


def _lacks_final_line_end(text: str, at: int, old: str, new: str) -> bool:
    """Whether `old` is whole lines and `new` lacks their final line ending.

    A blank at the end of `new` means that joining the lines is intended.
    """
    if not new or new[-1] in "\r\n \t" or not old.strip() or old[-1] not in "\r\n":
        return False
    kept = text[lines.line_start_offset(text, at) : at].strip(" \t")
    return not kept and text[at + len(old) : at + len(old) + 1] not in ("", "\r", "\n")


def _cuts_edge_blanks(text: str, at: int, old: str, new: str) -> bool:
    """Whether `old` leaves out indentation or trailing blanks at its edges, so that whole lines must match.

    The text occurs verbatim, but `old` lacks some indentation of its first line or trailing blanks of its
    last line, and the edit removes that line or adds others.
    """
    mine, theirs = lines.split_lines(old), lines.split_lines(new)
    if len(mine) < 2 and len(theirs) < 2:
        return False
    return _cuts_indentation(text, at, mine, theirs) or _cuts_trailing_blanks(
        text, at + len(old), mine, theirs
    )


def _cuts_indentation(text: str, at: int, mine: list[str], theirs: list[str]) -> bool:
    start = lines.line_start_offset(text, at)
    lost = text[start:at]
    if not lost or lost.strip(" \t"):
        return False
    if len(mine) < 2 and indentation_of_line(mine[0]):
        return True
    first = theirs[0] if theirs else ""
    if not first.strip() or indentation_of_line(first) != indentation_of_line(mine[0]):
        return True
    deep = lost + indentation_of_line(mine[0])
    if any(line.strip() == first.strip() and indentation_of_line(line) != deep for line in mine[1:]):
        # The edit removes the first line: a lower line now comes first, quoted without its indentation.
        return first.strip() != mine[0].strip()
    # Only depths that occur in the other old lines are known to match the file's.
    sure = {indentation_of_line(line) for line in mine[1:] if line.strip()}
    added = [indentation_of_line(line) for line in theirs[1:] if line.strip()]
    return any(depth not in sure and not depth.startswith(deep) for depth in added)


def _cuts_trailing_blanks(text: str, stop: int, mine: list[str], theirs: list[str]) -> bool:
    if _TRAILING.match(text, stop) is None:
        return False
    return len(mine) != len(theirs) and (not theirs or theirs[-1] != mine[-1])


def _would_split_line(text: str, stop: int, old: str, new: str) -> bool:
    """Whether lines would be added inside a line, because the file's line continues after `old`."""
    mine, theirs = (
        [lines.without_line_ending(line) for line in lines.split_lines(each)] for each in (old, new)
    )
    if mine[-1] not in theirs[:-1] or theirs[-1] == mine[-1] or old.endswith(_CLOSED):
        return False
    return _MORE.match(text, stop) is not None


def _replace_lines(line_index: LineIndex, at: int, old: str, new: str) -> EditApplied | EditRefused:
    """Replace an exact match in a file with mixed line endings; unchanged lines keep their line endings."""
    view = line_index.text_with_line_feeds
    start = lines.line_start_offset(view, at)
    stop = at + len(old)
    wanted = view[start:at] + new
    ended, closed = old.endswith("\n"), not wanted or wanted.endswith("\n")
    if not ended:
        end = view.find("\n", stop)
        end = len(view) if end < 0 else end
        wanted += view[stop:end]
        stop = end
    mine, theirs = view[start:stop].split("\n"), wanted.split("\n")
    if ended:
        mine.pop()
    if ended and closed:
        theirs.pop()
    first = view.count("\n", 0, start)
    match = LineMatch(tuple(range(first, first + len(mine))), first, first + len(mine), MatchLoss.NOTHING)
    span = line_index.span(first, match.last)
    try:
        written = replay_edit_on_lines(line_index, match, mine, theirs)
    except UnclearEdit as why:
        return refusals.refuse_unclear(line_index, why, first, match.last, old)
    if ended and not closed:
        # Remove the last line ending, since `old` has one and `new` does not.
        written = written.removesuffix(lines.ending_of_line(written))
    return EditApplied(
        spliced=SplicedText(line_index.text, span.start, span.end, written), tier="exact", spans=(span,)
    )
