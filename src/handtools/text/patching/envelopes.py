"""Envelopes: the `*** Begin Patch` format."""

import re
from dataclasses import dataclass, field

from handtools.text.patching.forms import Action, FilePatch, Hunk, Malformed, Row
from handtools.text.patching.ranges import range_of

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_STOP = "*** End of File"
_ACTIONS: dict[str, Action] = {"Add": "add", "Update": "update", "Delete": "delete"}


def opens(rows: list[str]) -> bool:
    """Whether this is the format of these rows."""
    return any(row.rstrip() == _BEGIN or _FILE.fullmatch(row.rstrip()) for row in rows)


def read(rows: list[str]) -> list[FilePatch]:
    """Read every file of the patch; what stands around the envelope is left out."""
    # A marker has no indentation: what has is a line of the file.
    marks = [row.rstrip() for row in rows]
    start = marks.index(_BEGIN) + 1 if _BEGIN in marks else 0
    stop = marks.index(_END, start) if _END in marks[start:] else len(rows)
    files: list[FilePatch] = []
    section: _Section | None = None
    for number, row in enumerate(rows[start:stop], start + 1):
        if match := _FILE.fullmatch(row.rstrip()):
            if section is not None:
                files.append(section.done())
            section = _Section(_ACTIONS[match[1]], match[2].strip(), number)
        elif section is not None:
            section.take(number, row)
        elif row.strip():
            raise Malformed(
                number,
                f"expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `, not {row!r}.",
            )
    if section is not None:
        files.append(section.done())
    return files


@dataclass(slots=True)
class _Section:
    """One file while it is read."""

    action: Action
    path: str
    number: int
    target: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    line: int | None = None

    def take(self, number: int, row: str) -> None:
        """Read one more line."""
        if match := _MOVE.fullmatch(row.rstrip()):
            if self.action != "update" or self.hunks or self.rows:
                raise Malformed(number, "`*** Move to:` stands right after `*** Update File:`.")
            self.target = match[1].strip()
        elif self.action == "delete":
            if row.strip():
                raise Malformed(number, f"nothing follows `*** Delete File:`, but here is {row!r}.")
        elif self.action == "add":
            self._add(number, row)
        elif row.rstrip() == _STOP:
            self._close(at_end=True)
        elif row.startswith("@@"):
            self._close()
            self._open(row)
        elif row[:1] in (" ", "-", "+"):
            self.rows.append(Row(row[0], row[1:]))  # type: ignore[arg-type]
        elif not row.strip():
            self.rows.append(Row(" ", row))
        else:
            raise Malformed(number, f"a line of a hunk begins with ` `, `-` or `+`, not {row[:60]!r}.")

    def done(self) -> FilePatch:
        """The file that was read."""
        while self.action == "update" and self.rows and self.rows[-1] == (" ", "", True):
            self.rows.pop()
        self._close()
        if self.action == "update" and not self.hunks and self.target is None:
            raise Malformed(self.number, f"the update of {self.path} has no hunk.")
        if self.target is not None:
            return FilePatch(action="update", path=self.target, origin=self.path, hunks=tuple(self.hunks))
        return FilePatch(action=self.action, path=self.path, hunks=tuple(self.hunks))

    def _add(self, number: int, row: str) -> None:
        if row.startswith("+"):
            self.rows.append(Row("+", row[1:]))
        elif row.strip() and row.rstrip() != _STOP:
            raise Malformed(number, f"every line of an added file begins with `+`, not {row[:60]!r}.")

    def _open(self, row: str) -> None:
        """A line with `@@` names a place: by numbers, or by a line that stands above."""
        span = range_of(row)
        if span is not None:
            self.line = span.old_start
        elif scope := row.strip("@ \t\r"):
            self.scopes.append(scope)

    def _close(self, *, at_end: bool = False) -> None:
        if self.rows:
            hunk = Hunk(tuple(self.rows), self.line, tuple(self.scopes), at_end)
            self.hunks.append(hunk)
            self.rows, self.scopes, self.line = [], [], None
