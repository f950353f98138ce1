"""Parser of patches: unified diffs, optionally with git's extended headers, and `*** Begin Patch`."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from handtools.text.patch_model import FilePatch, Hunk, HunkRow, MalformedPatch, PatchAction

# At most nine digits: no file has more lines, and `int` raises for numbers of thousands of digits.
_RANGE = re.compile(r"@@+ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


class HunkRange(NamedTuple):
    """The numbers of a hunk header: first line and number of lines, before and after the patch."""

    old_start: int
    old_size: int
    new_start: int
    new_size: int


def parse_hunk_range(row: str) -> HunkRange | None:
    """Parse a hunk header such as `@@ -1,3 +1,4 @@`; None if it has no numbers."""
    match = _RANGE.match(row)
    if match is None:
        return None
    old_start, old_size, new_start, new_size = (1 if part is None else int(part) for part in match.groups())
    return HunkRange(old_start, old_size, new_start, new_size)


_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
DEV_NULL = "/dev/null"
_MAX_TITLE = 10_000


def unquoted_name(name: str) -> str:
    """Decode a file name of a git diff: undo quotes and escapes, drop a timestamp after a tab."""
    if not (match := _QUOTED.match(name)):
        return name.partition("\t")[0].rstrip("\r")
    inner = match[0][1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescaped_byte, inner).decode("utf-8", "surrogateescape")


def _unescaped_byte(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else bytes([_LETTERS.get(code, code[0])])


def names_without_diff_prefixes(old: str, new: str) -> tuple[str, str]:
    """Strip the `a/` and `b/` prefixes of diffs from an old and a new name, only if both have one."""
    # The same letter on both sides is a real folder, not a prefix.
    if _has_prefix(old) and _has_prefix(new) and old[0] != new[0]:
        return tuple(name if name == DEV_NULL else name[2:] for name in (old, new))  # type: ignore[return-value]
    return old, new


def _has_prefix(name: str) -> bool:
    # `git diff` also writes i/, w/, c/ and o/ (diff.mnemonicPrefix).
    return name == DEV_NULL or (name[1:2] == "/" and name[0] in "abciow")


def names_in_git_diff_header(rest: str) -> tuple[str, str] | None:
    """Parse the two file names after `diff --git`; None if the split between them is ambiguous."""
    if match := re.fullmatch(rf"({_QUOTED.pattern}|\S+) ({_QUOTED.pattern}|\S+)", rest):
        return names_without_diff_prefixes(unquoted_name(match[1]), unquoted_name(match[2]))
    if len(rest) > _MAX_TITLE:
        return None
    # Names with spaces: split at the space where both halves name the same file.
    for cut in (at for at, character in enumerate(rest) if character == " "):
        old, new = names_without_diff_prefixes(unquoted_name(rest[:cut]), unquoted_name(rest[cut + 1 :]))
        if old == new:
            return old, new
    return None


_TITLE = "diff --git "
_NO_END = "\\"
_LINK_MODE = "120000"
_INDEX = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+ (\d{6})\s*")
_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) (\d{6})\s*")
_PLACE = re.compile(r"(rename|copy) (from|to) (.+)")
_BINARY = re.compile(r"GIT binary patch|Binary files .* differ")
# `git format-patch` ends a mail with git's version.
_MAIL_SIGNATURE = re.compile(r"-- ?\n\d+\.\d.*")
_FILE_MODES = {"100644": False, "100755": True}


def read_unified_diff(rows: list[str]) -> list[FilePatch]:
    """Parse every file of a unified diff; skip text before the first file. Raises `MalformedPatch`."""
    reader = _UnifiedDiffReader(rows)
    files = []
    while (file := reader.file()) is not None:
        files.append(file)
    return files


@dataclass(slots=True)
class _Header:
    """The header of one file in a unified diff, before its hunks: names, modes and moves."""

    number: int
    old: str | None = None
    new: str | None = None
    modes: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    copied: bool = False


@dataclass(slots=True)
class _UnifiedDiffReader:
    rows: list[str]
    at: int = 0

    def file(self) -> FilePatch | None:
        """Parse the next file of the diff; None at the end."""
        while self.at < len(self.rows) and not self._starts_file(self.at):
            if self.rows[self.at].startswith("@@ "):
                raise MalformedPatch(
                    self.at + 1, "a hunk without a file. Put `--- a/path` and `+++ b/path` before it."
                )
            self.at += 1
        if self.at >= len(self.rows):
            return None
        header = self._read_header()
        hunks = []
        while self._current_row().startswith("@@"):
            hunks.append(self._read_hunk())
        return _file_patch_of_header(header, tuple(hunks))

    def _current_row(self) -> str:
        return self.rows[self.at] if self.at < len(self.rows) else ""

    def _starts_file(self, at: int) -> bool:
        row, following = [*self.rows[at : at + 2], "", ""][:2]
        return row.startswith(_TITLE) or (row.startswith("--- ") and following.startswith("+++ "))

    def _read_header(self) -> _Header:
        header = _Header(self.at + 1)
        if self._current_row().startswith(_TITLE):
            header.old, header.new = names_in_git_diff_header(
                self._current_row().removeprefix(_TITLE).rstrip("\r")
            ) or (
                None,
                None,
            )
            self.at += 1
        while self.at < len(self.rows) and not self._current_row().startswith(("@@", _TITLE)):
            row = self._current_row()
            if self._starts_file(self.at):
                header.old, header.new = names_without_diff_prefixes(
                    unquoted_name(row[4:]), unquoted_name(self.rows[self.at + 1][4:])
                )
                self.at += 2
                break
            if match := _MODE.fullmatch(row):
                header.modes[match[1]] = match[2]
            elif match := _INDEX.fullmatch(row):
                header.modes["index"] = match[1]
            elif match := _PLACE.fullmatch(row):
                header.moved[match[2]] = unquoted_name(match[3])
                header.copied = match[1] == "copy"
            elif _BINARY.match(row):
                raise MalformedPatch(
                    self.at + 1, f"{header.new} is changed as a binary file; only text can be patched."
                )
            self.at += 1
        return header

    def _read_hunk(self) -> Hunk:
        number, span = self.at + 1, parse_hunk_range(self._current_row())
        title = self._current_row()
        self.at += 1
        rows = None if span is None else self._read_counted_rows(span)
        if rows is None:
            rows = self._read_rows_until_header()
        if not rows:
            raise MalformedPatch(number, "a hunk without lines.")
        if span is None:
            scope = title.strip("@ \t\r.")
            return Hunk(tuple(rows), scopes=(scope,) if scope else ())
        return Hunk(tuple(rows), span.old_start)

    def _read_counted_rows(self, hunk_range: HunkRange) -> list[HunkRow] | None:
        """Parse as many rows as the hunk header counts.

        Returns None if its counts are wrong, as models' counts often are.
        """
        old, new, at = hunk_range.old_size, hunk_range.new_size, self.at
        rows: list[HunkRow] = []
        while at < len(self.rows) and (old > 0 or new > 0 or self.rows[at].startswith(_NO_END)):
            row = self.rows[at]
            at += 1
            if row.startswith(_NO_END) and rows:
                rows[-1] = rows[-1]._replace(ended=False)
                continue
            if (read := _parse_hunk_row(row)) is None:
                return None
            rows.append(read)
            old -= read.sign != "+"
            new -= read.sign != "-"
        if old or new or self._has_more_hunk_rows(at):
            return None
        self.at = at
        return rows

    def _has_more_hunk_rows(self, at: int) -> bool:
        """Whether more hunk rows follow, perhaps after blank ones, so that the header's count is too low."""
        at = next((below for below in range(at, len(self.rows)) if self.rows[below].strip()), at)
        more = "\n".join(self.rows[at : at + 2])
        is_row = more[:1] in (" ", "+", "-") and bool(more.strip())
        return is_row and not self._starts_file(at) and not _MAIL_SIGNATURE.fullmatch(more)

    def _read_rows_until_header(self) -> list[HunkRow]:
        """Parse the rows that look like hunk rows up to the next header, ignoring the header's counts."""
        rows: list[HunkRow] = []
        while self.at < len(self.rows) and not self._starts_file(self.at):
            row = self._current_row()
            if row.startswith(_NO_END) and rows:
                rows[-1] = rows[-1]._replace(ended=False)
            elif (read := _parse_hunk_row(row)) is not None:
                rows.append(read)
            elif row.startswith("@@"):
                break
            else:
                raise MalformedPatch(
                    self.at + 1, f"a hunk line must begin with ` `, `-` or `+`, not {row[:60]!r}."
                )
            self.at += 1
        while rows and rows[-1] == (" ", "", True):
            rows.pop()
        return rows


def _parse_hunk_row(row: str) -> HunkRow | None:
    """Parse one row of a hunk; a blank line without a sign is a context line. None for anything else."""
    if row[:1] in (" ", "-", "+"):
        return HunkRow(row[0], row[1:])  # type: ignore[arg-type]
    return HunkRow(" ", row) if not row.strip() else None


def _file_patch_of_header(header: _Header, hunks: tuple[Hunk, ...]) -> FilePatch:
    old = header.moved.get("from", header.old)
    new = header.moved.get("to", header.new)
    if old is None or new is None:
        raise MalformedPatch(header.number, "can't tell where the first name after `diff --git` ends.")
    if not old or not new:
        raise MalformedPatch(header.number, "a file without a name.")
    odd = [mode for mode in header.modes.values() if mode not in _FILE_MODES]
    if odd:
        what = "a symlink" if odd[0] == _LINK_MODE else f"not a regular file (mode {odd[0]})"
        name = old if new == DEV_NULL else new
        raise MalformedPatch(
            header.number, f"{name} is {what}; only regular files can be patched. Use ln or rm instead."
        )
    made, gone = header.modes.get("new file mode"), header.modes.get("deleted file mode")
    if made or old == DEV_NULL:
        return FilePatch(
            action="add", path=new, hunks=hunks, executable=_FILE_MODES.get(made or "") or None
        )
    if gone or new == DEV_NULL:
        was = _FILE_MODES.get(gone or "") or None
        return FilePatch(action="delete", path=old, hunks=hunks, was_executable=was)
    return FilePatch(
        action="update",
        path=new,
        origin=None if old == new else old,
        keeps_origin=header.copied,
        hunks=hunks,
        executable=_FILE_MODES.get(header.modes.get("new mode", "")),
        was_executable=_FILE_MODES.get(header.modes.get("old mode", "")),
    )


_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_STOP = "*** End of File"
_ACTIONS: dict[str, PatchAction] = {"Add": "add", "Update": "update", "Delete": "delete"}


def is_begin_patch_format(rows: list[str]) -> bool:
    """Whether rows are a patch in the `*** Begin Patch` format."""
    return any(row.rstrip() == _BEGIN or _FILE.fullmatch(row.rstrip()) for row in rows)


def read_begin_patch_format(rows: list[str]) -> list[FilePatch]:
    """Parse every file of a `*** Begin Patch` patch; text around it is skipped. Raises `MalformedPatch`."""
    # Markers are never indented: an indented one is a line of the file.
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
            raise MalformedPatch(
                number,
                f"expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `, not {row!r}.",
            )
    if section is not None:
        files.append(section.done())
    return files


@dataclass(slots=True)
class _Section:
    """One file of a `*** Begin Patch` patch while it is parsed."""

    action: PatchAction
    path: str
    number: int
    target: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    rows: list[HunkRow] = field(default_factory=list)
    line: int | None = None
    unsigned_blanks: int = 0
    """Blank lines without `+` since the last line of an added file."""

    def take(self, number: int, row: str) -> None:
        """Parse one more line of a file's section in a `*** Begin Patch` patch."""
        if match := _MOVE.fullmatch(row.rstrip()):
            if self.action != "update" or self.hunks or self.rows:
                raise MalformedPatch(number, "`*** Move to:` must come right after `*** Update File:`.")
            self.target = match[1].strip()
        elif self.action == "delete":
            if row.strip():
                raise MalformedPatch(number, f"nothing may follow `*** Delete File:`, but found {row!r}.")
        elif self.action == "add":
            self._parse_added_row(number, row)
        elif row.rstrip() == _STOP:
            self._finish_hunk(at_end=True)
        elif row.startswith("@@"):
            self._finish_hunk()
            self._parse_hunk_header(row)
        elif row[:1] in (" ", "-", "+"):
            self.rows.append(HunkRow(row[0], row[1:]))  # type: ignore[arg-type]
        elif not row.strip():
            self.rows.append(HunkRow(" ", row))
        else:
            raise MalformedPatch(number, f"a hunk line must begin with ` `, `-` or `+`, not {row[:60]!r}.")

    def done(self) -> FilePatch:
        """Finish the section and return the file's patch; raises `MalformedPatch` if it changes nothing."""
        while self.action == "update" and self.rows and self.rows[-1] == (" ", "", True):
            self.rows.pop()
        self._finish_hunk()
        if self.action == "update" and not self.hunks and self.target is None:
            raise MalformedPatch(self.number, f"the update of {self.path} has no hunk.")
        if self.target is not None:
            return FilePatch(action="update", path=self.target, origin=self.path, hunks=tuple(self.hunks))
        return FilePatch(action=self.action, path=self.path, hunks=tuple(self.hunks))

    def _parse_added_row(self, number: int, row: str) -> None:
        if row.startswith("+"):
            # A blank row between added lines is an added line without its `+`; after the last one it is
            # just a gap.
            self.rows += [HunkRow("+", "")] * self.unsigned_blanks
            self.rows.append(HunkRow("+", row[1:]))
            self.unsigned_blanks = 0
        elif not row.strip():
            self.unsigned_blanks += bool(self.rows)
        elif row.rstrip() != _STOP:
            raise MalformedPatch(number, f"lines of an added file must begin with `+`, not {row[:60]!r}.")

    def _parse_hunk_header(self, row: str) -> None:
        """Parse an `@@` line, which has the hunk's line numbers or names a line above it as scope."""
        span = parse_hunk_range(row)
        if span is not None:
            self.line = span.old_start
        elif scope := row.strip("@ \t\r"):
            self.scopes.append(scope)

    def _finish_hunk(self, *, at_end: bool = False) -> None:
        if self.rows:
            hunk = Hunk(tuple(self.rows), self.line, tuple(self.scopes), at_end)
            self.hunks.append(hunk)
            self.rows, self.scopes, self.line = [], [], None


_FENCE = "```"


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch, in the `*** Begin Patch` format or as a unified diff; raises `MalformedPatch`."""
    rows = text.split("\n")
    while rows and rows[-1] in ("", "\r"):
        rows.pop()
    # If every line ends in CRLF, the transport converted line endings; otherwise a `\r` is part of the
    # file.
    if all(row.endswith("\r") for row in rows[:-1]):
        rows = [row.removesuffix("\r") for row in rows]
    first = next((row.strip() for row in rows if row.strip()), "")
    if first.startswith(_FENCE) and rows[-1].strip() == _FENCE:
        start = next(index for index, row in enumerate(rows) if row.strip())
        # Replace removed rows with empty ones, so that error messages name the right line.
        rows = [""] * (start + 1) + rows[start + 1 : -1]
    files = read_begin_patch_format(rows) if is_begin_patch_format(rows) else read_unified_diff(rows)
    if not files:
        raise MalformedPatch(1, "no file is named. Begin with `*** Begin Patch` or `diff --git`.")
    return files
