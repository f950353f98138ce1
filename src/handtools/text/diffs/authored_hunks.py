"""Hunks with authors: certain authors' changes to a text, with everyone else's edits folded into the base.

The base starts as the text before the first version. An author's version changes only the text; any other
version changes base and text together, so their difference is the authors' changes. If others edited the
same place, the changes can't be separated: such a hunk is marked as mixed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from handtools.text.diffs.unified_diff import LineEdit, diff_line_edits, hunk_header

OTHERS = ""
"""The author of versions that are folded into the base."""
CONTEXT_ROWS = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"


class TextVersion(NamedTuple):
    """The text after a change, and the author of the change; `OTHERS` if the change is not under review."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class AuthoredHunk:
    """A changed region: base rows that became rows of the text, and their authors, sorted by name."""

    edit: LineEdit
    authors: tuple[str, ...]
    mixed: bool = False
    """Whether others edited the same place, so that rejecting the hunk would revert their work too."""


@dataclass(frozen=True, slots=True)
class AuthoredDiff:
    """The authors' changes: the rows of base and text with line endings, and the hunks between them."""

    base: Sequence[str]
    rows: Sequence[str]
    hunks: Sequence[AuthoredHunk]

    def base_text(self, hunk: AuthoredHunk) -> str:
        """The text that a hunk replaced."""
        return "".join(self.base[hunk.edit.start_a : hunk.edit.end_a])

    def text(self, hunk: AuthoredHunk) -> str:
        """The current text of a hunk."""
        return "".join(self.rows[hunk.edit.start_b : hunk.edit.end_b])


def authored_diff(base: str, versions: Iterable[TextVersion]) -> AuthoredDiff:
    """Compute the authors' changes to a text from its original state and all versions, oldest first."""
    blame = _Blame(split_rows(base))
    # An undo returns to a known state: reuse its blame, since a new diff could pair equal lines
    # differently.
    known, since_others = {base: blame}, {base: blame}
    for author, text in versions:
        found = (known if author == OTHERS else since_others).get(text)
        blame = found or blame.blame_after_version(author, split_rows(text))
        since_others = {} if author == OTHERS else since_others
        known[text] = since_others[text] = blame
    hunks = [AuthoredHunk(edit, blame.authors_of_edit(edit), mixed) for edit, mixed in blame.hunks]
    return AuthoredDiff(blame.base, blame.rows, hunks)


def replace_hunks(diff: AuthoredDiff, replaced: Mapping[int, str]) -> str:
    """Return the text with some hunks, by index, replaced with other text."""
    parts: list[str] = []
    place = 0
    for index in sorted(replaced):
        edit = diff.hunks[index].edit
        parts += [*diff.rows[place : edit.start_b], replaced[index]]
        place = edit.end_b
    return "".join([*parts, *diff.rows[place:]])


def text_with_hunks_rejected(diff: AuthoredDiff, rejected: Collection[int]) -> str:
    """Return the text with some hunks, by index, reverted to the base."""
    return replace_hunks(diff, {index: diff.base_text(diff.hunks[index]) for index in rejected})


def grouped_hunk_indexes(hunks: Sequence[AuthoredHunk], context: int = CONTEXT_ROWS) -> list[list[int]]:
    """Group the indexes of hunks that have the same authors and whose context lines touch."""
    groups: list[list[int]] = []
    for index, hunk in enumerate(hunks):
        before = hunks[groups[-1][-1]] if groups else None
        if (
            before is not None
            and hunk.edit.start_b - before.edit.end_b <= 2 * context
            and (before.authors, before.mixed) == (hunk.authors, hunk.mixed)
        ):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def render_hunks(diff: AuthoredDiff, group: Sequence[int], context: int = CONTEXT_ROWS) -> str:
    """Render neighbouring hunks as one unified diff hunk; its old side is the text without them."""
    first, last = (diff.hunks[group[at]].edit for at in (0, -1))
    start, end = max(first.start_b - context, 0), min(last.end_b + context, len(diff.rows))
    shown: list[str] = []
    place = start
    for index in group:
        edit = diff.hunks[index].edit
        shown += [" " + row for row in diff.rows[place : edit.start_b]]
        shown += ["-" + row for row in diff.base[edit.start_a : edit.end_a]]
        shown += ["+" + row for row in diff.rows[edit.start_b : edit.end_b]]
        place = edit.end_b
    shown += [" " + row for row in diff.rows[place:end]]
    removed = sum(row[0] != "+" for row in shown)
    body = "".join([row if row[-1] == "\n" else row + _NO_NEWLINE for row in shown])
    return f"{hunk_header(start, removed, start, end - start)}\n{body}"


def split_rows(text: str) -> list[str]:
    """Split a text into rows that keep their line feed, as for `patch`: a carriage return is content."""
    rows = [f"{row}\n" for row in text.split("\n")]
    last = rows.pop()[:-1]
    return [*rows, last] if last else rows


class _Blame:
    """Base and text, with the author who removed or added each row that only one of them has."""

    def __init__(self, base: list[str]) -> None:
        self.base, self.rows = base, base
        self.removed_by: list[str | None] = [None] * len(base)
        """For each row of the base, the author who removed it from the text."""
        self.added_by: list[str | None] = [None] * len(base)
        """For each row of the text, the author who added it relative to the base."""
        self.hunks: list[tuple[LineEdit, bool]] = []
        """The regions in which base and text differ, and whether others edited there too."""

    def authors_of_edit(self, edit: LineEdit) -> tuple[str, ...]:
        """The authors who changed rows of a region, without `OTHERS`."""
        named = {*self.removed_by[edit.start_a : edit.end_a], *self.added_by[edit.start_b : edit.end_b]}
        return tuple(sorted(author for author in named if author))

    def blame_after_version(self, author: str, rows: list[str]) -> "_Blame":
        """Return the blame after a version.

        Changes by others to rows that no author changed go into the base too.
        """
        changes = diff_line_edits(self.rows, rows)
        blame = _Blame([])
        blame.rows = rows
        blame.added_by = [None for _ in rows]
        place_base = place_new = 0
        for region in _touching_regions([edit for edit, _ in self.hunks], changes):
            same = region.new.start - place_new
            blame.base += self.base[place_base : place_base + same]
            blame.removed_by += [None] * same
            mixed = any(self.hunks[at][1] for at in region.hunks)
            self._combine_region(blame, author, region, [changes[at] for at in region.changes], mixed=mixed)
            place_base, place_new = region.base.stop, region.new.stop
        blame.base += self.base[place_base:]
        blame.removed_by += [None] * (len(self.base) - place_base)
        return blame

    def _combine_region(
        self, blame: "_Blame", author: str, region: "_Region", edits: Sequence[LineEdit], *, mixed: bool
    ) -> None:
        """Combine a region's earlier changes with this version's, and diff the result with the base again.

        Rows that equal the base again no longer count as a change.
        """
        old = self.base[region.base.start : region.base.stop]
        new = blame.rows[region.new.start : region.new.stop]
        removed_by = _authors_with_default(self.removed_by[region.base.start : region.base.stop], author)
        added_by: list[str] = []
        place = region.rows.start
        for change in edits:
            added_by += _authors_with_default(self.added_by[place : change.start_a], author)
            added_by += [author] * (change.end_b - change.start_b)
            place = change.end_a
        added_by += _authors_with_default(self.added_by[place : region.rows.stop], author)
        done = 0
        for edit in diff_line_edits(old, new):
            blame.base += old[done : edit.start_a]
            blame.removed_by += [None] * (edit.start_a - done)
            done = edit.end_a
            whose = {*removed_by[edit.start_a : edit.end_a], *added_by[edit.start_b : edit.end_b]}
            at = len(blame.base)
            start, end = region.new.start + edit.start_b, region.new.start + edit.end_b
            if whose == {OTHERS}:
                blame.base += new[edit.start_b : edit.end_b]
                blame.removed_by += [None] * (edit.end_b - edit.start_b)
                continue
            blame.base += old[edit.start_a : edit.end_a]
            blame.removed_by += removed_by[edit.start_a : edit.end_a]
            blame.added_by[start:end] = added_by[edit.start_b : edit.end_b]
            line_edit = LineEdit(at, len(blame.base), start, end)
            blame.hunks.append((line_edit, mixed or OTHERS in whose))
        blame.base += old[done:]
        blame.removed_by += [None] * (len(old) - done)


class _Region(NamedTuple):
    """A region where hunks and changes touch: its rows in base, text and new text; the indexes of both."""

    base: range
    rows: range
    new: range
    hunks: list[int]
    changes: list[int]


def _touching_regions(edits: Sequence[LineEdit], line_edits: Sequence[LineEdit]) -> Iterator[_Region]:
    """Join hunks (base to text) and changes (text to new text) that touch, as a three-way merge does."""
    spans = sorted(
        [(hunk.start_b, hunk.end_b, 0, at) for at, hunk in enumerate(edits)]
        + [(change.start_a, change.end_a, 1, at) for at, change in enumerate(line_edits)]
    )
    shift_base = shift_new = 0
    at = 0
    while at < len(spans):
        start, end = spans[at][:2]
        joined: tuple[list[int], list[int]] = ([], [])
        while at < len(spans) and spans[at][0] <= end:
            end = max(end, spans[at][1])
            joined[spans[at][2]].append(spans[at][3])
            at += 1
        base_start, new_start = start + shift_base, start + shift_new
        shift_base += sum(_row_count_change(edits[index]) * -1 for index in joined[0])
        shift_new += sum(_row_count_change(line_edits[index]) for index in joined[1])
        yield _Region(
            range(base_start, end + shift_base),
            range(start, end),
            range(new_start, end + shift_new),
            *joined,
        )


def _authors_with_default(authors: Sequence[str | None], author: str) -> list[str]:
    return [author if by is None else by for by in authors]


def _row_count_change(edit: LineEdit) -> int:
    return (edit.end_b - edit.start_b) - (edit.end_a - edit.start_a)
