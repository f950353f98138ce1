"""Elided code in edits (`# ... rest unchanged`): refused in `new_string`, matched in pieces in `old_string`.

Empty and unchanged arguments are refused too, before searching the file.
"""

import re
from dataclasses import dataclass

from handtools.text.diffs.unified_diff import diff_line_edits
from handtools.text.lines import indentation_of_line, indentation_width
from handtools.tools.editing.edit_outcome import EditRefused
from handtools.tools.editing.normalized_lines import BLOCK_OPENERS, LineIndex, LineMatch, is_blank

LARGEST_EDITED_TEXT_CHARS = 64 * 1024 * 1024
_DOTS = r"(?:\.{3,}|…)"
_OPENING = r"(?://+|#+|/\*+|<!--|--|;+|%+|\"|\*|\(\*|\{\*|\{/\*)"
_CLOSING = r"(?:\*/|-->|\*\)|\*/\})"
_ANY = ".{0,80}"
_SAYS = (
    r"\b(?:unchanged|remain\w*|existing|rest of|previous code|same as before|omitted"
    r"|other \w+ here|more \w+ here|goes here)\b"
)
_SAME = r"\b(?:unchanged|remains? (?:the same|unchanged|as is))\b"
# Either only an ellipsis, or a comment with an ellipsis and any words; without a comment sign it may be
# code, such as `...opts,`. A comment whose sentence continues right after the ellipsis (`# ...minus the
# border`) belongs to the file.
_ELISION = re.compile(
    rf"{_OPENING}?\s*[(\[]?{_DOTS}[)\]]?\s*{_CLOSING}?"
    rf"|{_OPENING}\s*[(\[]?{_DOTS}(?: [\w ,'’()-]{{0,80}}|[\w ,'’()-]{{0,80}}{_DOTS})[)\]]?\s*{_CLOSING}?"
)
_DOTTED = re.compile(
    rf"{_OPENING}\s*[(\[]?\s*{_DOTS}{_ANY}{_SAYS}{_ANY}"
    rf"|{_OPENING}\s*{_ANY}{_SAYS}{_ANY}{_DOTS}.{{0,10}}"
    rf"|{_DOTS}{_ANY}{_SAYS}{_ANY}",
    re.IGNORECASE,
)
_NOTE = re.compile(rf"{_OPENING}\s*[(\[]?\s*[\w ]{{0,60}}{_SAME}[)\]]?\.?\s*{_CLOSING}?", re.IGNORECASE)
_OMISSION = re.compile(rf"{_DOTTED.pattern}|{_NOTE.pattern}", re.IGNORECASE)
_MAX_NOTE = 200
_WORDS_OF_A_LABEL = 4


def check_edit_arguments(old: str, new: str) -> EditRefused | None:
    """Refuse an edit with an empty `old_string`, equal arguments, or code left out of `new_string`.

    Returns None if the arguments are valid.
    """
    if not old:
        return EditRefused(
            code="empty",
            message="old_string is empty, and the file is not.",
            hint="Copy the text to replace from the file, or `write` all of it with mode=overwrite.",
        )
    if old == new:
        return EditRefused(code="no_change", message="old_string and new_string are the same text.")
    if (note := find_omission_line(old, new)) is not None:
        return EditRefused(
            code="omission",
            message=f"new_string leaves out code ({note!r}); that note would be written into the file.",
            hint="Send the complete new text, or a smaller old_string.",
        )
    return None


def find_omission_line(old: str, new: str) -> str | None:
    """Find a line of `new`, not in `old`, that stands for omitted code, such as `# ... rest unchanged`.

    Returns None if there is none.
    """
    known = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        text = line.strip()
        if not text or text in known or len(text) > _MAX_NOTE or not _OMISSION.fullmatch(text):
            continue
        if not _is_full_sentence(text) or _drops_lines(old, new):
            return text
    return None


def _is_full_sentence(text: str) -> bool:
    """Whether a note about omitted code may be an ordinary comment: a full sentence without an ellipsis."""
    return _NOTE.fullmatch(text) is not None and len(text.split()) > _WORDS_OF_A_LABEL


def _drops_lines(old: str, new: str) -> bool:
    """Whether any line of `old` is missing in `new`."""
    return any(edit.start_a < edit.end_a for edit in diff_line_edits(old.split("\n"), new.split("\n")))


def is_elision(line: str) -> bool:
    """Whether a line is only an elision mark, which contains an ellipsis: `...` or `# ... existing code`."""
    text = line.strip()
    return 0 < len(text) <= _MAX_NOTE and any(form.fullmatch(text) for form in (_ELISION, _DOTTED))


MAX_ELIDED_PIECES = 12
MAX_OMITTED_LINES = 2000


@dataclass(frozen=True, slots=True)
class ElidedPiece:
    """The text between two elision marks of an edit, in `old` and in `new`."""

    old: str
    new: str

    @property
    def is_changed(self) -> bool:
        """Whether this piece of an elided edit differs between old and new text."""
        return self.old != self.new


def elided_pieces(old: str, new: str) -> list[ElidedPiece] | None:
    """Split both arguments at their elision marks into pairs of pieces.

    Returns None if there are no marks, if the marks differ, or if a piece has no counterpart.
    """
    mine, my_marks = _split_at_elisions(old)
    theirs, their_marks = _split_at_elisions(new)
    if not my_marks or my_marks != their_marks:
        return None
    found = [ElidedPiece(a, b) for a, b in zip(mine, theirs, strict=True)]
    # An added or removed piece between omitted lines has no definite place.
    if any(bool(piece.old.strip()) != bool(piece.new.strip()) for piece in found):
        return None
    return [piece for piece in found if piece.old.strip()]


def is_elided(text: str) -> bool:
    """Whether any line of a text is an elision mark."""
    return any(map(is_elision, text.split("\n")))


def pieces_stand_in_order(line_index: LineIndex, matches: list[list[LineMatch]]) -> bool:
    """Whether the matches of all pieces can follow each other in the file, within one block."""
    above = matches[0]
    for places in matches[1:]:
        above = [match for match in places if _is_below_in_block(line_index, above, match)]
    return bool(above)


def _is_below_in_block(line_index: LineIndex, matches_above: list[LineMatch], match: LineMatch) -> bool:
    """Whether a match follows one of the matches above, and no line in between leaves their block."""
    nearest = next((before for before in reversed(matches_above) if before.last < match.first), None)
    if nearest is None:
        return False
    last = line_index.lines_without_ends[nearest.last - 1]
    head, foot = _indentation_length(last), _indentation_length(line_index.lines_without_ends[match.first])
    least = min(head + last.rstrip().endswith(BLOCK_OPENERS), foot)
    left_out = range(nearest.last, match.first)
    return not least or (
        len(left_out) <= MAX_OMITTED_LINES
        and all(_is_indented_at_least(line_index.lines_without_ends[row], least) for row in left_out)
    )


def _is_indented_at_least(line: str, least: int) -> bool:
    """Whether a line is indented by `least` or more; blank lines and lines starting with `#` always pass."""
    return _indentation_length(line) >= least or is_blank(line) or line.lstrip().startswith("#")


def _indentation_length(line: str) -> int:
    return indentation_width(indentation_of_line(line))


def _split_at_elisions(text: str) -> tuple[list[str], list[str]]:
    found: list[list[str]] = [[]]
    marks: list[str] = []
    for line in text.split("\n"):
        if is_elision(line):
            marks.append(line.strip())
            found.append([])
        else:
            found[-1].append(line)
    return ["\n".join(piece) for piece in found], marks
