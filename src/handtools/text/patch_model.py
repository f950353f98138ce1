"""The data model of a parsed patch: files, hunks and their rows; and the inverse of a patch."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, assert_never

RowSign: TypeAlias = Literal[" ", "-", "+"]
PatchAction: TypeAlias = Literal["add", "update", "delete"]


class MalformedPatch(ValueError):
    """Raised for a patch that can't be parsed, with the line of the patch and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"Line {line} of the patch: {problem}")
        self.line = line


class HunkRow(NamedTuple):
    """One line of a hunk, without its line feed; a preceding carriage return is part of the text."""

    sign: RowSign
    text: str
    ended: bool = True
    """False if the patch says that the file ends here without a line ending."""

    @property
    def text_with_line_feed(self) -> str:
        """The row with its line feed, as in the file."""
        return self.text + "\n" if self.ended else self.text

    @property
    def text_without_line_ending(self) -> str:
        """The row without any line ending."""
        return self.text.removesuffix("\r")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a patch: context, removed and added lines, and what is known about their place."""

    rows: tuple[HunkRow, ...]
    line: int | None = None
    """The line number of the first old line; for a hunk without old lines, the line before it."""
    scopes: tuple[str, ...] = ()
    """Lines above the hunk that are named after `@@`, outermost first."""
    at_end: bool = False
    """Whether the hunk's last line must be the end of the file."""

    @property
    def old_rows(self) -> list[HunkRow]:
        """The context and removed rows of the hunk: the file before the patch."""
        return [row for row in self.rows if row.sign != "+"]

    @property
    def new_rows(self) -> list[HunkRow]:
        """The context and added rows of the hunk: the file after the patch."""
        return [row for row in self.rows if row.sign != "-"]

    @property
    def is_open_ended(self) -> bool:
        """Whether the hunk says that the file ends with its lines, without a final line ending."""
        return any(not row.ended for row in self.rows)

    @property
    def added_minus_removed(self) -> int:
        """The number of added lines minus the number of removed lines."""
        return sum(row.sign == "+" for row in self.rows) - sum(row.sign == "-" for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """The part of a patch for one file: add, update, move, copy or delete it."""

    action: PatchAction
    path: str
    hunks: tuple[Hunk, ...] = ()
    origin: str | None = None
    """The old path of a file that is moved or copied; otherwise None."""
    keeps_origin: bool = False
    """Whether the file is copied: it also stays at its old path."""
    executable: bool | None = None
    """The executable permission that the patch sets; None leaves it unchanged."""
    was_executable: bool | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that the patch of this file reads or writes."""
        return (self.path,) if self.origin is None else (self.origin, self.path)


def split_at_line_feeds(text: str) -> list[str]:
    """Split a text into rows at line feeds only, as diffs count lines."""
    rows = text.split("\n")
    last = rows.pop()
    return [row + "\n" for row in rows] + ([last] if last else [])


def text_to_hunk_rows(text: str, sign: RowSign) -> tuple[HunkRow, ...]:
    """Turn a whole text into hunk rows of one sign, for example for an added or deleted file."""
    return tuple(
        HunkRow(sign, row.removesuffix("\n"), row.endswith("\n")) for row in split_at_line_feeds(text)
    )


_OPPOSITE: dict[RowSign, RowSign] = {" ": " ", "-": "+", "+": "-"}


def invert_patch(patch: FilePatch, content: str | None = None) -> FilePatch:
    """Return the patch that undoes a patch.

    `content` is the text of a deleted file if the patch does not contain it.
    """
    growth = 0
    hunks = []
    for hunk in patch.hunks:
        hunks.append(_inverted_hunk(hunk, growth))
        growth += hunk.added_minus_removed
    if patch.action == "add":
        return FilePatch(
            action="delete", path=patch.path, hunks=tuple(hunks), was_executable=patch.executable
        )
    if patch.action == "delete":
        if not hunks and content:
            hunks = [Hunk(text_to_hunk_rows(content, "+"), 0)]
        return FilePatch(action="add", path=patch.path, hunks=tuple(hunks), executable=patch.was_executable)
    if patch.action == "update":
        if patch.keeps_origin:
            return FilePatch(action="delete", path=patch.path)
        return FilePatch(
            action="update",
            path=patch.origin or patch.path,
            origin=patch.path if patch.origin else None,
            hunks=tuple(hunks),
            executable=patch.was_executable,
            was_executable=patch.executable,
        )
    assert_never(patch.action)


def _inverted_hunk(hunk: Hunk, growth: int) -> Hunk:
    rows = tuple(HunkRow(_OPPOSITE[row.sign], row.text, row.ended) for row in hunk.rows)
    line = None
    if hunk.line is not None:
        # An empty range names the line before it.
        start = hunk.line if hunk.old_rows else hunk.line + 1
        line = start + growth - (not hunk.new_rows)
    return Hunk(rows, line, hunk.scopes, hunk.at_end)


def begin_patch_text(
    action: Literal["Add", "Update", "Delete"], path: str, diff: str = "", *, move_to: str = ""
) -> str:
    """Return the `*** Begin Patch` text that does one thing to one file."""
    rows = [f"*** {action} File: {path}", f"*** Move to: {move_to}" if move_to else "", diff.rstrip("\n")]
    return "\n".join(["*** Begin Patch", *(row for row in rows if row), "*** End Patch", ""])
