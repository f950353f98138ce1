"""Minimal line diffs as unified diffs that `git apply` and `patch` accept; line counts of a change.

A line added after an equal line could as well have been added before it. Of all such places,
`edits_slid_to_best_place` chooses the one that reads like a beginning: little indentation, not at the end of
a block, after a blank line.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handtools.text import lines
from handtools.text.diffs.alignment import LineEdit, align_lines, common_prefix_length, common_suffix_length
from handtools.text.lines import SplicedText

_MAX_PLACES = 100
# How many lines are searched for a non-blank one that shows the indentation of the following text.
_LOOK_AHEAD = 20


def edits_slid_to_best_place(edits: list[LineEdit], a: Sequence[str], b: Sequence[str]) -> list[LineEdit]:
    """Slide insertions and deletions along equal lines to where they read best; join adjacent ones."""
    settled_edits: list[LineEdit] = []
    waiting = edits[::-1]
    while waiting:
        edit = waiting.pop()
        if edit.start_a < edit.end_a and edit.start_b < edit.end_b:
            settled_edits.append(edit)
            continue
        added = edit.start_a == edit.end_a
        rows, start, end = (b, *edit[2:]) if added else (a, *edit[:2])
        room_up = edit.start_a - (settled_edits[-1].end_a if settled_edits else 0)
        up = _max_slide_up(rows, start, end, room_up)
        if settled_edits and up == room_up:
            waiting.append(_edit_spanning_both(settled_edits.pop(), _shifted_edit(edit, -up)))
            continue
        room_down = (waiting[-1].start_a if waiting else len(a)) - edit.end_a
        down = _max_slide_down(rows, start, end, room_down)
        if waiting and down == room_down:
            waiting.append(_edit_spanning_both(_shifted_edit(edit, down), waiting.pop()))
            continue
        settled_edits.append(_shifted_edit(edit, _best_shift(rows, start, end, -up, down)))
    return settled_edits


def _max_slide_up(rows: Sequence[str], start: int, end: int, room: int) -> int:
    """Count the lines by which an insertion or deletion can slide up without changing its meaning."""
    slack = 0
    while slack < room and rows[start - 1 - slack] == rows[end - 1 - slack]:
        slack += 1
    return slack


def _max_slide_down(rows: Sequence[str], start: int, end: int, room: int) -> int:
    slack = 0
    while slack < room and rows[start + slack] == rows[end + slack]:
        slack += 1
    return slack


def _edit_spanning_both(edit: LineEdit, other_edit: LineEdit) -> LineEdit:
    return LineEdit(edit.start_a, other_edit.end_a, edit.start_b, other_edit.end_b)


def _shifted_edit(edit: LineEdit, by: int) -> LineEdit:
    return LineEdit(*(place + by for place in edit))


def _best_shift(rows: Sequence[str], start: int, end: int, lowest: int, highest: int) -> int:
    """Return the slide distance with the least `_slide_penalty` of borders; on a tie, the furthest down."""
    # Further up, the same borders repeat.
    lowest = max(lowest, highest - min(end - start + 1, _MAX_PLACES))
    shifts = range(highest, lowest - 1, -1)
    return min(shifts, key=lambda shift: _slide_penalty(rows, start + shift, end + shift))


def _slide_penalty(rows: Sequence[str], start: int, end: int) -> tuple[int, ...]:
    """Rate how badly both borders of a slid edit read; smaller is better."""
    return tuple(map(sum, zip(_border_penalty(rows, start), _border_penalty(rows, end), strict=True)))


def _border_penalty(rows: Sequence[str], at: int) -> tuple[int, bool, bool]:
    """Rate one border of an edit: indentation, whether it ends a block, whether no blank line precedes it."""
    above, below = rows[max(at - 1, 0) : at], rows[at : at + _LOOK_AHEAD]
    depth = _indent_width(next((row for row in below if row.strip()), ""))
    if not above or not below:
        return depth, False, False
    closes = above[0].strip() != "" and depth < _indent_width(above[0])
    after_blank = below[0].strip() != "" and above[0].strip() == ""
    return depth, closes, not after_blank


def _indent_width(row: str) -> int:
    return lines.indentation_width(lines.indentation_of_line(row))


__all__ = [
    "ChangedRows",
    "LineEdit",
    "count_changed_lines",
    "dedent_diff_content",
    "diff_line_edits",
    "diff_without_carriage_returns",
    "first_changed_line",
    "hunk_header",
    "rows_around_changes",
    "unified_diff",
]

_NO_NEWLINE = "\n\\ No newline at end of file\n"
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_QUOTED = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f"}
_QUOTED |= {"\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ODD = re.compile(r'[\x00-\x1f"\\\x7f]')
# How many lines before and after a change are first searched for a more readable place for it.
_MARGIN_LINES = 100


class KnownCommonEnds(NamedTuple):
    """How many characters at the start and end of two texts are known to be equal, to skip comparison."""

    head: int = 0
    tail: int = 0
    feeds: int | None = None
    """The number of line feeds in the equal head; None if they were not counted."""


_NOTHING = KnownCommonEnds()


class ChangedRows(NamedTuple):
    """The rows of both texts between their equal head and tail, and the sizes of that head and tail.

    Rows end at line feeds only, as for `patch`, so a carriage return is content.
    """

    above: int
    old: list[str]
    new: list[str]
    below: int


def diff_line_edits(a: Sequence[str], b: Sequence[str]) -> list[LineEdit]:
    """Return the changed regions of a minimal line diff, in order, slid to where they read best."""
    return edits_slid_to_best_place(align_lines(a, b), a, b)


def unified_diff(
    path: str,
    before: str | None,
    text_after: str | SplicedText | None,
    *,
    context: int = 3,
    before_path: str | None = None,
    common_ends: KnownCommonEnds = _NOTHING,
) -> str:
    """Render the unified diff of a file's old and new text; None means that the file does not exist."""
    header = _extended_header(path, before, text_after, before_path)
    if before == text_after:
        return "" if before_path in (None, path) else header
    hunks = "".join(_hunk_texts(before or "", text_after or "", context, common_ends))
    if not hunks:
        return header
    old = "/dev/null" if before is None else _quoted_header_path(f"a/{before_path or path}", tab=True)
    new = "/dev/null" if text_after is None else _quoted_header_path(f"b/{path}", tab=True)
    return f"{header}--- {old}\n+++ {new}\n{hunks}"


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    """Count the added and removed lines between two texts, as (added, removed)."""
    window = rows_around_changes(before, after)
    edits = diff_line_edits(window.old, window.new)
    added = sum(edit.end_b - edit.start_b for edit in edits)
    removed = sum(edit.end_a - edit.start_a for edit in edits)
    return added, removed


def first_changed_line(
    before: str, text_after: str | SplicedText, *, common_ends: KnownCommonEnds = _NOTHING
) -> int | None:
    """Return the number of the first line of `text_after` that differs from `before`; None if they are equal.

    If the end was removed, that is the last remaining line.
    """
    if before == text_after:
        return None
    offset = common_prefix_length(before, text_after, common_ends.head)
    if common_ends.feeds is not None and offset < len(text_after) and before.find("\r", 0, offset) < 0:
        return common_ends.feeds + before.count("\n", common_ends.head, offset) + 1
    text = text_after if isinstance(text_after, str) else text_after.full_text
    line = lines.line_number_at(text, offset)
    return line if offset < len(text) else max(1, min(line, lines.count_lines(text)))


def dedent_diff_content(diff: str) -> str:
    """Remove the indentation that all content lines of a unified diff share."""
    rows = diff.split("\n")
    content = list(_content_row_indexes(rows))
    filled = [rows[index][1:] for index in content if rows[index][1:].strip()]
    if not filled:
        return diff
    low, high = min(filled), max(filled)
    shared = low[: common_prefix_length(low, high)]
    depth = len(lines.indentation_of_line(shared))
    if depth:
        for index in content:
            row = rows[index]
            rows[index] = row[0] + (row[depth + 1 :] or row[1:].lstrip(" \t"))
    return "\n".join(rows)


def diff_without_carriage_returns(diff: str) -> str:
    """Drop the carriage returns from a unified diff if all of its content lines end in CRLF."""
    if "\r" not in diff:
        return diff
    rows = diff.split("\n")
    content = list(_content_row_indexes(rows))
    ended = [index for index in content if not rows[index + 1].startswith("\\")]
    if ended and all(rows[index].endswith("\r") for index in ended):
        for index in ended:
            rows[index] = rows[index].removesuffix("\r")
    return "\n".join(rows)


def _content_row_indexes(rows: list[str]) -> Iterator[int]:
    """Yield the indexes of the rows inside the hunks of a diff, by the sizes in the hunk headers."""
    old = new = 0
    for index, row in enumerate(rows):
        if old > 0 or new > 0:
            if row.startswith("\\"):
                continue
            old -= not row.startswith("+")
            new -= not row.startswith("-")
            if row:
                yield index
        elif match := _HUNK.match(row):
            old, new = (int(size) if size else 1 for size in match.groups())


def _extended_header(
    path: str, before: str | None, text_after: str | SplicedText | None, before_path: str | None
) -> str:
    """Return git's extended header for created or deleted empty files and for renames; otherwise empty."""
    old = before_path or path
    title = f"diff --git {_quoted_header_path(f'a/{old}')} {_quoted_header_path(f'b/{path}')}\n"
    if before is None and text_after == "":
        return f"{title}new file mode 100644\n"
    if text_after is None and before == "":
        return f"{title}deleted file mode 100644\n"
    if old != path and before is not None and text_after is not None:
        return f"{title}rename from {_quoted_header_path(old)}\nrename to {_quoted_header_path(path)}\n"
    return ""


def _quoted_header_path(path: str, *, tab: bool = False) -> str:
    """Quote a path as git does in a diff header: escape special characters, add a tab if it has spaces."""
    if _ODD.search(path):
        inner = _ODD.sub(lambda odd: _QUOTED.get(odd[0]) or f"\\{ord(odd[0]):03o}", path)
        return f'"{inner}"'
    return f"{path}\t" if tab and " " in path else path


def _hunk_texts(
    before: str, text_after: str | SplicedText, context: int, common_ends: KnownCommonEnds
) -> Iterator[str]:
    window = rows_around_changes(before, text_after, context, common_ends)
    edits = align_lines(window.old, window.new)
    # A created or deleted file has no equal lines to slide along.
    if len(before) and len(text_after) and not all(map(_is_replacement, edits)):
        window, edits = _rows_and_slid_edits(before, text_after, context, common_ends)
    for group in _edits_per_hunk(edits, context):
        yield _hunk_text(group, window, context)


def _is_replacement(edit: LineEdit) -> bool:
    """Whether an edit both removes and adds lines; such an edit cannot slide."""
    return edit.start_a < edit.end_a and edit.start_b < edit.end_b


def _rows_and_slid_edits(
    before: str, text_after: str | SplicedText, context: int, common_ends: KnownCommonEnds
) -> tuple[ChangedRows, list[LineEdit]]:
    """Return the rows around a change and its edits, with room for insertions and deletions to slide."""
    margin = context + _MARGIN_LINES
    window = rows_around_changes(before, text_after, margin, common_ends)
    edits = diff_line_edits(window.old, window.new)
    # A change may have slid so far that its context lies outside the window: then widen the window.
    while edits and not _has_enough_context(window, edits, context):
        margin *= 8
        window = rows_around_changes(before, text_after, margin, common_ends)
        edits = diff_line_edits(window.old, window.new)
    return window, edits


def _has_enough_context(rows: ChangedRows, edits: list[LineEdit], context: int) -> bool:
    above = not rows.above or edits[0].start_a >= context
    return above and (not rows.below or len(rows.old) - edits[-1].end_a >= context)


def _edits_per_hunk(edits: list[LineEdit], context: int) -> Iterator[list[LineEdit]]:
    """Group the edits whose context lines touch; each group becomes one hunk."""
    line_edits: list[LineEdit] = []
    for edit in edits:
        if line_edits and edit.start_a - line_edits[-1].end_a > 2 * context:
            yield line_edits
            line_edits = []
        line_edits.append(edit)
    if line_edits:
        yield line_edits


def _hunk_text(edits: list[LineEdit], changed_rows: ChangedRows, context: int) -> str:
    first, last = edits[0], edits[-1]
    above = min(context, first.start_a)
    below = min(context, len(changed_rows.old) - last.end_a)
    start_a, end_a = first.start_a - above, last.end_a + below
    start_b, end_b = first.start_b - above, last.end_b + below
    rows: list[str] = []
    place = start_a
    for edit in edits:
        rows += [" " + row for row in changed_rows.old[place : edit.start_a]]
        rows += ["-" + row for row in changed_rows.old[edit.start_a : edit.end_a]]
        rows += ["+" + row for row in changed_rows.new[edit.start_b : edit.end_b]]
        place = edit.end_a
    rows += [" " + row for row in changed_rows.old[place:end_a]]
    body = "".join([row if row[-1] == "\n" else row + _NO_NEWLINE for row in rows])
    header = hunk_header(
        changed_rows.above + start_a, end_a - start_a, changed_rows.above + start_b, end_b - start_b
    )
    return f"{header}\n{body}"


def hunk_header(start_a: int, size_a: int, start_b: int, size_b: int) -> str:
    """Render the header of a hunk from the index of its first row and its number of rows, in both texts."""
    return f"@@ -{_hunk_range_text(start_a, size_a)} +{_hunk_range_text(start_b, size_b)} @@"


def _hunk_range_text(start: int, size: int) -> str:
    """Render the range of a hunk header (`start,size`); an empty range names the line before it."""
    if size == 1:
        return str(start + 1)
    return f"{start + 1 if size else start},{size}"


def rows_around_changes(
    before: str, text_after: str | SplicedText, margin: int = 0, common_ends: KnownCommonEnds = _NOTHING
) -> ChangedRows:
    """Return the rows of two texts around all changes, with `margin` equal rows on either side.

    Comparing the texts before splitting them keeps a small edit of a large file cheap.
    """
    start = before.rfind("\n", 0, common_prefix_length(before, text_after, common_ends.head)) + 1
    for _ in range(margin):
        if not start:
            break
        start = before.rfind("\n", 0, start - 1) + 1
    room = min(len(before), len(text_after)) - start
    end = (
        before.find(
            "\n", len(before) - min(common_suffix_length(before, text_after, common_ends.tail), room)
        )
        + 1
    )
    for _ in range(margin):
        if not end:
            break
        end = before.find("\n", end) + 1
    below = len(before) - end if end else 0
    return ChangedRows(
        above=_count_line_feeds(before, start, common_ends),
        old=_rows_with_line_feeds(before[start : len(before) - below]),
        new=_rows_with_line_feeds(text_after[start : len(text_after) - below]),
        below=below,
    )


def _count_line_feeds(text: str, end: int, common_ends: KnownCommonEnds) -> int:
    """Count the line feeds up to an offset, starting from the known count."""
    if common_ends.feeds is None:
        return text.count("\n", 0, end)
    if end < common_ends.head:
        return common_ends.feeds - text.count("\n", end, common_ends.head)
    return common_ends.feeds + text.count("\n", common_ends.head, end)


def _rows_with_line_feeds(text: str) -> list[str]:
    rows = text.split("\n")
    last = rows.pop()
    rows = [row + "\n" for row in rows]
    if last:
        rows.append(last)
    return rows
