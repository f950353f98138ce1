"""Files as an editor shows them: unsaved text is read from, and written to, the editor's buffers.

Only UTF-8 text goes through the editor. Folders, symlinks, modes, other files and the changes made by
commands are read from and written to disk.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from handtools.core.changes import Change, Node
from handtools.core.errors import InvalidInput, NotFound, Stale, StorageFault, ToolError, UsageError
from handtools.core.files import EditorBuffers, FileFacts, GitNamedPath, PlannedWrite, SettingPredicate
from handtools.host.files.backups import FolderBackups
from handtools.host.files.local_files import LocalFiles
from handtools.host.files.temporary_file import is_temporary_name, temporary_name
from handtools.text.encoding import is_utf8
from handtools.text.lines import convert_line_ends, dominant_ending

MAX_BUFFER_BYTES = 4 << 20
"""Larger files bypass the editor, because a file is transferred as a single message."""
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class ShownText:
    """The text of a file in the editor, and the bytes it would have when saved."""

    text: str
    saved: str
    """The text on disk; empty when there is no file yet."""

    @property
    def data(self) -> bytes:
        """The editor's text as it would be saved, with the BOM and line endings of the file on disk."""
        if _without_marks(self.text) == _without_marks(self.saved):
            return self.saved.encode()
        mark = BYTE_ORDER_MARK if self._keeps_mark_apart else ""
        text = convert_line_ends(self.text, dominant_ending(self.saved)) if self._keeps_ends else self.text
        return (mark + text).encode("utf-8", "replace")

    def in_editors_form(self, data: bytes) -> str:
        """Decode file bytes for the editor, without BOM and CRs if the editor strips them."""
        text = data.decode()
        text = text.removeprefix(BYTE_ORDER_MARK) if self._keeps_mark_apart else text
        return convert_line_ends(text, "\n") if self._keeps_ends else text

    @property
    def _keeps_mark_apart(self) -> bool:
        return self.saved.startswith(BYTE_ORDER_MARK) and not self.text.startswith(BYTE_ORDER_MARK)

    @property
    def _keeps_ends(self) -> bool:
        return "\r" in self.saved and "\r" not in self.text


class EditorFiles:
    """The HostFiles port for a local folder open in an editor: the disk plus the editor's buffers."""

    def __init__(self, local_files: LocalFiles, buffers: EditorBuffers) -> None:
        self._local_files = local_files
        self._buffers = buffers
        self._met: set[str] = set()
        """Files that had unsaved text when the editor was last asked."""

    @property
    def is_fast_to_read(self) -> bool:
        """Always false: reads call the editor, another process, which would block the event loop."""
        return False

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return a file's bytes as shown in the editor, or `size` of them from `start`."""
        facts = self._local_files.facts(path)
        if facts is None or facts.kind != "file" or facts.bytes > MAX_BUFFER_BYTES:
            return self._local_files.read(path, start=start, size=size)
        if start < 0 or (size is not None and size < 0):
            raise InvalidInput("`start` and `size` can't be negative.", hint="Count from 0.")
        data = self._local_files.read(path)
        shown = self._editor_text(path, data)
        data = data if shown is None else shown.data
        return data[start : None if size is None else start + size]

    def node(self, path: str, *, like_node: Node | None = None) -> Node | None:
        """Return the node at a path, with the bytes shown in the editor if it is a text file."""
        node = self._local_files.node(path, like_node=like_node)
        if node is None or node.kind != "file" or node.held:
            return node
        shown = self._editor_text(path, node.data)
        return node if shown is None else Node("file", shown.data, node.mode)

    def last_seen_unsaved_below(self, root: str) -> list[str]:
        """Return the files at or below a path that had unsaved text when the editor was last asked."""
        return [p for p in tuple(self._met) if root in {".", p} or p.startswith(f"{root}/")]

    def is_unsaved(self, path: str) -> bool:
        """Whether the editor has unsaved text for a file; false for files it can't show."""
        try:
            facts = self._local_files.facts(path)
            if facts is None or facts.kind != "file" or facts.bytes > MAX_BUFFER_BYTES:
                return False
            data = self._local_files.read(path)
        except ToolError:
            return False
        shown = self._editor_text(path, data)
        return shown is not None and shown.data != data

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        """Plan changes as on disk, but record all bytes of a file that the editor writes, whatever its size."""
        return [
            PlannedWrite(change, step.temporary) if self._is_for_editor(change) else step
            for change in changes
            for step in self._local_files.plan([change])
        ]

    def perform(self, writes: Sequence[PlannedWrite], *, synced: bool = True) -> None:
        """Perform all writes or none: first those on disk, then the editor's; a failure reverts both."""
        shown = {step.change.path: seen for step in writes if (seen := self._checked_editor_text(step))}
        on_disk = [step for step in writes if step.change.path not in shown]
        self._local_files.perform(on_disk, synced=synced)
        changes: list[Change] = []
        try:
            for step in writes:
                change = step.change
                if change.path in shown and change.after is not None:
                    self._write(change.path, shown[change.path].in_editors_form(change.after.data))
                    changes.append(change)
        except BaseException as failure:
            self._take_back(changes, shown, on_disk, failure)
            raise

    def _write(self, path: str, text: str) -> None:
        above = path.rpartition("/")[0]
        folder = self._local_files.facts(above or ".")
        if folder is None or folder.kind != "folder":
            raise NotFound(f"There is no folder `{above}`; nothing was written.", hint="Create it first.")
        self._buffers.write(path, text)

    def _take_back(
        self,
        changes: Sequence[Change],
        shown: dict[str, ShownText],
        disk_writes: Sequence[PlannedWrite],
        failure: BaseException,
    ) -> None:
        try:
            for change in reversed(changes):
                if change.before is not None:
                    self._buffers.write(change.path, shown[change.path].text)
                elif (made := self._local_files.node(change.path)) is not None:
                    self._local_files.perform(self._local_files.plan([Change(change.path, made, None)]))
            back = [PlannedWrite(step.change.inverse, temporary_name()) for step in reversed(disk_writes)]
            self._local_files.perform(back)
        except ToolError as second:
            paths = ", ".join(f"`{change.path}`" for change in changes)
            message = f"The editor wrote {paths}, then failed: {failure} The rollback failed too: {second}"
            raise StorageFault(message, hint="Read the files to see their state.") from failure

    def _checked_editor_text(self, write: PlannedWrite) -> ShownText | None:
        """Return the editor's current text of a file that it will write; None if the file is written on disk.

        Raises `Stale` if the user has typed since the change was planned, or a write on disk would conflict
        with unsaved text.
        """
        change, before = write.change, write.change.before
        if not is_temporary_name(write.temporary):
            raise UsageError("The temporary name of a step must come from `plan`.")
        if before is not None and (before.held or not _is_utf8_file(before)):
            return None
        node = self._local_files.node(change.path)
        if before is None:
            return (
                self._empty_text_if_unused(change.path)
                if node is None and self._is_for_editor(change)
                else None
            )
        shown = None if node is None or node.kind != "file" else self._editor_text(change.path, node.data)
        if shown is None or node is None:
            return None
        if not before.same(Node("file", shown.data, node.mode)):
            raise _changed_in_editor(change.path)
        if self._is_for_editor(change):
            return shown
        if shown.data != node.data:
            message = f"`{change.path}` has unsaved text in the user's editor; nothing was changed."
            raise Stale(message, hint="Ask the user to save it, then try again.")
        return None

    def _empty_text_if_unused(self, path: str) -> ShownText:
        # A new buffer has no file on disk yet. Some editors return empty text for a missing file.
        if self._buffers.read(path):
            raise _changed_in_editor(path)
        return ShownText("", "")

    def _is_for_editor(self, change: Change) -> bool:
        before, after = change.before, change.after
        if after is None or after.held or not _is_utf8_file(after):
            return False
        if before is not None and (before.held or not _is_utf8_file(before)):
            return False
        if after.mode is None:
            return True
        facts = self._local_files.facts(change.path)
        return facts is not None and facts.mode == after.mode  # editors can't set the mode

    def _editor_text(self, path: str, data: bytes) -> ShownText | None:
        """Return the editor's text of a file with these bytes on disk; None if it has none or can't show it."""
        text = self._buffers.read(path) if _is_editor_text(data) else None
        if text is None:
            return None
        shown = ShownText(text, data.decode())
        (self._met.discard if shown.data == data else self._met.add)(path)
        return shown

    def facts(self, path: str) -> FileFacts | None:
        return self._local_files.facts(path)

    def names(self, path: str) -> list[FileFacts]:
        return self._local_files.names(path)

    @property
    def backups(self) -> FolderBackups | None:
        return self._local_files.backups

    def renamed_path(self, path: str) -> str | None:
        return self._local_files.renamed_path(path)

    def is_tracked_by_git(self, path: str) -> bool:
        """Whether git tracks the content on disk; the editor is not asked, as the file may be private."""
        return self._local_files.is_tracked_by_git(path)

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        return self._local_files.git_named_paths(paths, is_plain)

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        return self._local_files.verifies_git_pack(stem, refs)

    def writable(self, path: str) -> bool:
        return self._local_files.writable(path)

    def locate(self, path: str) -> str:
        return self._local_files.locate(path)

    def sync(self, paths: Collection[str]) -> None:
        self._local_files.sync(paths)

    def sweep(self, write: PlannedWrite) -> str | None:
        return self._local_files.sweep(write)


def _without_marks(text: str) -> str:
    return convert_line_ends(text.removeprefix(BYTE_ORDER_MARK), "\n")


def _is_utf8_file(node: Node) -> bool:
    return node.kind == "file" and _is_editor_text(node.data)


def _is_editor_text(data: bytes) -> bool:
    """Whether bytes are valid UTF-8 without NUL, and small enough for one message to the editor."""
    return len(data) <= MAX_BUFFER_BYTES and b"\0" not in data and is_utf8(data)


def _changed_in_editor(path: str) -> Stale:
    message = f"`{path}` was changed in the user's editor in the meantime; nothing was written."
    return Stale(message, hint="Read it again and redo the change.")
