"""Sliding: moving a change to where it reads best, when it could stand in several places.

A line added after an equal line might as well have been added before it. Of all such places
the best is where the text begins something: little indented, not closing a block, after a blank.
"""

from collections.abc import Sequence

from handtools.text.aligning import Edit

_MOST_PLACES = 100
# How many blank lines are passed to see how deep the text goes on.
_LOOK_AHEAD = 20


def slide(edits: list[Edit], a: Sequence[str], b: Sequence[str]) -> list[Edit]:
    """Move insertions and deletions to where they read best, and join those that can meet."""
    settled: list[Edit] = []
    waiting = edits[::-1]
    while waiting:
        edit = waiting.pop()
        if edit.start_a < edit.end_a and edit.start_b < edit.end_b:
            settled.append(edit)
            continue
        added = edit.start_a == edit.end_a
        rows, start, end = (b, *edit[2:]) if added else (a, *edit[:2])
        room_up = edit.start_a - (settled[-1].end_a if settled else 0)
        up = _slack_up(rows, start, end, room_up)
        if settled and up == room_up:
            waiting.append(_joined(settled.pop(), _moved(edit, -up)))
            continue
        room_down = (waiting[-1].start_a if waiting else len(a)) - edit.end_a
        down = _slack_down(rows, start, end, room_down)
        if waiting and down == room_down:
            waiting.append(_joined(_moved(edit, down), waiting.pop()))
            continue
        settled.append(_moved(edit, _best_shift(rows, start, end, -up, down)))
    return settled


def _slack_up(rows: Sequence[str], start: int, end: int, room: int) -> int:
    """Count the lines by which a region can move up and still hold the same change."""
    slack = 0
    while slack < room and rows[start - 1 - slack] == rows[end - 1 - slack]:
        slack += 1
    return slack


def _slack_down(rows: Sequence[str], start: int, end: int, room: int) -> int:
    slack = 0
    while slack < room and rows[start + slack] == rows[end + slack]:
        slack += 1
    return slack


def _joined(one: Edit, other: Edit) -> Edit:
    return Edit(one.start_a, other.end_a, one.start_b, other.end_b)


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(*(place + by for place in edit))


def _best_shift(rows: Sequence[str], start: int, end: int, lowest: int, highest: int) -> int:
    """Give the shift with the least awkward borders, the furthest down of equals."""
    # Further up the same text comes round again.
    lowest = max(lowest, highest - min(end - start + 1, _MOST_PLACES))
    shifts = range(highest, lowest - 1, -1)
    return min(shifts, key=lambda shift: _awkwardness(rows, start + shift, end + shift))


def _awkwardness(rows: Sequence[str], start: int, end: int) -> tuple[int, ...]:
    """Rate both borders of a change together."""
    return tuple(map(sum, zip(_border(rows, start), _border(rows, end), strict=True)))


def _border(rows: Sequence[str], at: int) -> tuple[int, bool, bool]:
    """Rate a border by its depth, whether it closes a block, whether no blank line is before it."""
    above, below = rows[max(at - 1, 0) : at], rows[at : at + _LOOK_AHEAD]
    depth = _indent(next((row for row in below if row.strip()), ""))
    if not above or not below:
        return depth, False, False
    closes = above[0].strip() != "" and depth < _indent(above[0])
    after_blank = below[0].strip() != "" and above[0].strip() == ""
    return depth, closes, not after_blank


def _indent(row: str) -> int:
    row = row.expandtabs(8)
    return len(row) - len(row.lstrip())
