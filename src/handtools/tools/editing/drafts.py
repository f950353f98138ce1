"""Drafts of text files for the editing tools: read, changed in memory, then written as one change.

Also the error messages and notes for the model about how its text was matched.
"""

import builtins
from dataclasses import dataclass, field, replace
from typing import Self

from handtools.core.changes import Change, ChangeSet
from handtools.core.errors import (
    AlreadyExists,
    InvalidInput,
    ManyMatches,
    NoMatch,
    NotFound,
    Stale,
    TooLarge,
    ToolError,
    WrongKind,
)
from handtools.core.files import Files
from handtools.core.undo import History
from handtools.text.diffs.unified_diff import (
    KnownCommonEnds,
    diff_without_carriage_returns,
    first_changed_line,
    unified_diff,
)
from handtools.text.encoding import DecodedText, Unencodable, decode, is_binary, without_surrogates
from handtools.text.lines import SplicedText, convert_line_ends, line_number_at, render_numbered_lines
from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    EditApplied,
    EditOutcome,
    EditRefused,
    RefusalCode,
)
from handtools.tools.editing.non_fuzzy_edits import insert_lines
from handtools.tools.editing.notebook_cells import NOTEBOOK_SUFFIX, is_notebook, replace_in_cells
from handtools.tools.editing.refusals import render_refusal
from handtools.tools.editing.replacement import replace_text

MAX_EDIT_BYTES = 50_000_000
"""Largest file in bytes that is edited as text."""

_PLAIN = DecodedText("", "utf-8")
_MAX_SHOWN_LINES = 12
_FAULTS: dict[RefusalCode, type[ToolError]] = {
    "ambiguous": ManyMatches,
    "stale": Stale,
    "no_change": InvalidInput,
    "empty": InvalidInput,
    "omission": InvalidInput,
    "too_large": TooLarge,
}


def refusal_error(
    refused: EditRefused,
    where: str = "",
    *,
    old: str = "old_string",
    new: str = "new_string",
    has_replace_all: bool = False,
) -> ToolError:
    """Convert a refused edit to an error for the model, using the argument names of the tool it called."""
    if has_replace_all and refused.replace_all_hint:
        refused = replace(refused, hint=refused.replace_all_hint)
    said = _with_argument_names(without_surrogates(render_refusal(refused)), old, new)
    return _FAULTS.get(refused.code, NoMatch)(where + said)


async def refusal_naming_removing_call(
    history: History, draft: "Draft", refused: EditRefused, old: str, new: str
) -> ToolError:
    """Convert a refused edit to an error that also names the recorded call that removed the text."""
    where = f"{draft.path}: "
    error = refusal_error(refused, where, has_replace_all=True)
    by = (
        await history.find_removing_call(draft.path, convert_line_ends(old, "\n"))
        if refused.code == "not_found"
        else None
    )
    if by is None:
        return error
    ago = "the last call" if not by.calls_ago else f"{by.calls_ago + 1} calls ago"
    wanted, body = (convert_line_ends(text, "\n") for text in (new.strip("\r\n"), draft.body))
    if wanted.strip() and body.count(wanted) == 1:
        line = line_number_at(body, body.find(wanted))
        return NoMatch(
            f"{where}Already done: new_string is at line {line} since {by.tool} ({ago}, {by.call_id}).",
            hint="There is nothing to do.",
        )
    error.message += f"\nThis text was in the file until {by.tool} replaced it ({ago}, {by.call_id})."
    return error


def _with_argument_names(text: str, old: str, new: str) -> str:
    """Insert a tool's argument names into a message, except in fenced blocks, which quote the file."""
    fence = ""
    rows = text.split("\n")
    for index, row in enumerate(rows):
        if row.startswith("```") and not row.strip("`") and fence in ("", row):
            fence = "" if fence else row
        elif not fence:
            rows[index] = row.replace("old_string", old).replace("new_string", new)
    return "\n".join(rows)


def already_applied_text(already_applied: AlreadyApplied) -> str:
    """Return the message for an edit that is already applied, with its line."""
    shown = without_surrogates(
        render_numbered_lines(
            already_applied.excerpt.lines[:_MAX_SHOWN_LINES], already_applied.excerpt.line
        )
    )
    once_more = "To apply it a second time, include more of the surrounding lines."
    return f"Nothing to do: the change is already applied at {already_applied.where}.\n{shown}\n{once_more}"


def match_note(outcome: EditApplied | AlreadyApplied) -> str:
    """Return a sentence on how the text sent differs from the text it matched; empty for an exact match."""
    if isinstance(outcome, AlreadyApplied):
        return f" Nothing to do: the change was already applied at {outcome.where}."
    return _inexact_match_note(outcome)


def _inexact_match_note(applied: EditApplied) -> str:
    if applied.tier == "exact" and not applied.notes:
        return ""
    if applied.tier == "text as last read":
        said = "The file had changed since you read it; it now contains both changes"
    elif applied.tier == "exact":
        said = "Matched"
    else:
        said = f"Matched except for {applied.tier}"
    return f" {said}{''.join(f'; {note}' for note in applied.notes)}."


@dataclass(slots=True)
class Draft:
    """Draft of one text file: its original content and the content to be written."""

    path: str
    before: bytes | None
    source_text: DecodedText
    _text: str | SplicedText
    mode: int | None = None
    """Permission bits to set; None keeps them."""
    origin: str | None = None
    """Path from which the file is moved or copied, or None."""
    common_ends: KnownCommonEnds = KnownCommonEnds()  # noqa: RUF009 — a plain tuple, never changed
    """Known lengths of the unchanged start and end, so that large files need no full comparison."""

    @classmethod
    async def read(cls, files: Files, path: str, *, text_only: bool = True) -> Self:
        """Read a file into a draft; raises a tool error if it is not text or too large."""
        # Don't read files that are too large to edit; only a patch that deletes a file needs all of it.
        before = await files.read(path, size=MAX_EDIT_BYTES + 1 if text_only else None)
        path = files.shown_path(path)
        if is_binary(before):
            if not text_only:
                return cls(path, before, _PLAIN, "")
            raise WrongKind(f"`{path}` is a binary file.", hint="Edit text files only.")
        if len(before) > MAX_EDIT_BYTES:
            facts = await files.facts(path)
            size = max(facts.bytes if facts else 0, len(before))
            hint = "Change it with a command such as sed, or split it."
            raise TooLarge(f"`{path}` has {size:,} bytes; the limit is {MAX_EDIT_BYTES:,}.", hint=hint)
        source = decode(before)
        return cls(path, before, source, source.body)

    @classmethod
    def for_new_file(cls, path: str, body: str = "") -> Self:
        """Make a draft of a file that does not exist yet."""
        return cls(path, None, _PLAIN, body)

    async def replace_old_text(
        self, files: Files | None, old: str, new: str, *, every: bool = False
    ) -> EditOutcome:
        """Replace `old` with `new` at its only match, or everywhere with `every`; return the outcome.

        With `files`, the version that the agent last read helps to match text that has changed since.
        """
        if self.is_notebook:
            outcome = replace_in_cells(self.body, old, new, every=every)
            files = None
        else:
            outcome = replace_text(self.body, old, new, every=every)
        if files and not every and not (isinstance(outcome, EditApplied) and outcome.tier == "exact"):
            seen = await files.last_read_bytes(self.path)
            if seen is not None and seen != self.before and not is_binary(seen):
                outcome = replace_text(self.body, old, new, seen=decode(seen).body)
        if isinstance(outcome, EditApplied):
            head, tail = outcome.spans[0].start, len(self.body) - outcome.spans[-1].end
            if self.body is not self.source_text.body:
                head, tail = min(self.common_ends.head, head), min(self.common_ends.tail, tail)
            self.common_ends, self._text = KnownCommonEnds(head, tail), outcome.spliced
        return outcome

    @property
    def body(self) -> str:
        """The text to be written."""
        return self._text if isinstance(self._text, str) else self._text.full_text

    @property
    def is_notebook(self) -> bool:
        """Whether the file is a notebook, which is read and edited by cell."""
        return self.path.endswith(NOTEBOOK_SUFFIX) and is_notebook(self.source_text.body)

    def insert(self, line: int, text: str) -> None:
        """Insert text as separate lines, starting at line number `line`.

        Raises for a notebook, whose file lines differ from the lines shown.
        """
        if self.is_notebook:
            raise InvalidInput(
                f"`{self.path}` is a notebook: its lines as read differ from the lines of the file.",
                hint="Replace text in a cell: use its source in old_string and new_string.",
            )
        self.put(insert_lines(self.body, line, text))

    def put(self, body: str) -> None:
        """Replace the whole text."""
        self._text, self.common_ends = body, KnownCommonEnds()

    def bytes(self) -> bytes:
        """Encode the text to the bytes to be written, in the file's encoding and with its line endings."""
        try:
            return self._bytes_from_unchanged_ends() or self.source_text.encode(self.body)
        except Unencodable as failure:
            hint = f"Use characters that {self.source_text.encoding} supports, or convert the file to UTF-8 first."
            raise InvalidInput(
                f"`{self.path}` can't encode the new text: {failure}.", hint=hint
            ) from failure

    def _bytes_from_unchanged_ends(self) -> builtins.bytes | None:
        """Build the new bytes from the unchanged ends and the encoded middle.

        None for multi-byte encodings.
        """
        now, before = self._text, self.before
        if isinstance(now, str) or before is None or now.text is not self.source_text.body:
            return None
        if self.source_text.encoding != "utf-8" or len(before) != len(now.text):
            return None
        around = memoryview(before)
        return b"".join((around[: now.start], self.source_text.encode(now.new), around[now.end :]))

    def change(self) -> Change:
        """Return the file change to apply; raises if the result would not be a valid notebook."""
        if self.before is not None and self.is_notebook and not is_notebook(self.body):
            raise InvalidInput(
                f"`{self.path}` would no longer be a valid notebook.",
                hint="Use `edit`, which replaces text in the source of a cell.",
            )
        return Change.of(self.path, before=self.before, after=self.bytes(), mode=self.mode)

    @property
    def is_changed(self) -> bool:
        """Whether the draft differs from the original file."""
        if isinstance(self._text, SplicedText) and self._text.text is self.source_text.body:
            return not self._text.is_unchanged or self.mode is not None
        return self.before is None or self.body != self.source_text.body or self.mode is not None

    def diff(self) -> str:
        """Return the unified diff from the original to the draft."""
        was = None if self.before is None and self.origin is None else self.source_text.body
        diff = unified_diff(
            self.path,
            was,
            self._text,
            before_path=self.origin,
            common_ends=self._line_counted_common_ends(),
        )
        return _printable_diff(diff)

    @property
    def first_changed_line(self) -> int | None:
        """Number of the first line that differs from the original; None if there is none."""
        return first_changed_line(
            self.source_text.body, self._text, common_ends=self._line_counted_common_ends()
        )

    def _line_counted_common_ends(self) -> KnownCommonEnds:
        """Return the unchanged ends with the line feeds of the start counted; the count is cached."""
        if self.common_ends.feeds is None:
            feeds = self.source_text.body.count("\n", 0, self.common_ends.head)
            self.common_ends = self.common_ends._replace(feeds=feeds)
        return self.common_ends


def _printable_diff(diff: str) -> str:
    return without_surrogates(diff_without_carriage_returns(diff))


@dataclass(slots=True)
class DraftSet:
    """Drafts of several files, written together or not at all; each step sees the results of earlier ones."""

    files: Files
    drafts: dict[str, Draft] = field(default_factory=dict)
    removed_drafts: dict[str, Draft] = field(default_factory=dict)

    async def open(self, path: str) -> Draft:
        """Return the draft of a file with the changes of earlier steps, reading the file on first use."""
        key = await self._normalized_path(path)
        self._raise_if_removed(path, key)
        if key not in self.drafts:
            self.drafts[key] = await Draft.read(self.files, key)
        return self.drafts[key]

    async def create(self, path: str, body: str, source_text: DecodedText | None = None) -> Draft:
        """Draft a new file; raises if the path exists, unless an earlier step removed it."""
        key = await self._normalized_path(path)
        gone = self.removed_drafts.pop(key, None)
        if key in self.drafts or (gone is None and await self.files.facts(key) is not None):
            raise AlreadyExists(f"`{path}` already exists.", hint="Update it, or choose another path.")
        before = gone.before if gone else None
        draft = Draft(key, before, source_text or (gone.source_text if gone else _PLAIN), body)
        self.drafts[key] = draft
        return draft

    async def remove(self, path: str) -> Draft:
        """Draft the deletion of a file."""
        self._raise_if_symlink(path)
        key = await self._normalized_path(path)
        self._raise_if_removed(path, key)
        draft = self.drafts.pop(key, None) or await Draft.read(self.files, key, text_only=False)
        if draft.before is None:
            raise InvalidInput(f"`{path}` is created and deleted in the same call.", hint="Leave both out.")
        self.removed_drafts[key] = draft
        return draft

    async def move(self, path: str, target: str, *, keep: bool = False) -> Draft:
        """Draft a move of a file to another path with its encoding and mode; with `keep`, draft a copy."""
        self._raise_if_symlink(path)
        draft = await self.open(path)
        facts = await self.files.facts(path)
        if not keep:
            await self.remove(path)
        moved = await self.create(target, draft.body, draft.source_text)
        moved.origin, moved.mode = draft.path, facts.mode if facts else None
        return moved

    @property
    def is_changed(self) -> bool:
        """Whether any draft differs from its file."""
        return bool(self.removed_drafts) or any(draft.is_changed for draft in self.drafts.values())

    def changes(self, note: str) -> ChangeSet:
        """Return all drafts as one change set, deletions first so that their names can be reused."""
        gone = [
            Change.of(path, before=draft.before, after=None) for path, draft in self.removed_drafts.items()
        ]
        written = [draft.change() for draft in self.drafts.values() if draft.is_changed]
        if not gone and not written:
            message = "Nothing was written: every file already has the requested content."
            raise InvalidInput(message, hint="Continue if that is what you wanted.")
        return ChangeSet((*gone, *written), note)

    def diff(self) -> str:
        """Return one unified diff of all drafts."""
        # A moved file is shown at its new path.
        moved = {draft.origin for draft in self.drafts.values()}
        gone = (
            unified_diff(path, draft.source_text.body, None)
            for path, draft in self.removed_drafts.items()
            if path not in moved
        )
        pieces = [*(draft.diff() for draft in self.drafts.values()), *map(_printable_diff, gone)]
        # Diffs without a git header go first: after a hunkless rename they would be read as part of it.
        return "".join(sorted(pieces, key=lambda piece: piece.startswith("diff --git ")))

    def _raise_if_removed(self, path: str, key: str) -> None:
        if key in self.removed_drafts:
            message = f"`{path}` is deleted earlier in the same call."
            raise NotFound(message, hint="Leave out one of the two.")

    def _raise_if_symlink(self, path: str) -> None:
        """Raise if a path is a symlink, so that its target is not deleted or moved instead."""
        folder, _, name = path.rpartition("/")
        above = self.files.shown_path(folder) if folder else "."
        file = self.files.shown_path(path)
        if name not in ("", ".", "..") and file != (name if above == "." else f"{above}/{name}"):
            hint = "Use the path of the file itself, or move or delete the symlink with mv or rm."
            raise WrongKind(f"`{path}` is a symlink to `{file}`.", hint=hint)

    async def _normalized_path(self, path: str) -> str:
        """Return the normalized path, so that each file has one draft."""
        facts = await self.files.facts(path)
        if facts is not None or path.startswith("/"):
            return path if facts is None else facts.path
        return "/".join(part for part in path.split("/") if part not in ("", "."))
