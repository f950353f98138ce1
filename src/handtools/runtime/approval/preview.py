"""The preview of an approval request: title, notes, diff or script. If it is cut, it says how much is hidden."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from handtools.core.changes import (
    Change,
    ChangeSet,
    Node,
    is_folder_moved_as_one,
    paths_in_moved_folders,
    split_folder_change,
    unpack_folder,
)
from handtools.core.effects import CommandRun, Delegation, Delivery, Effect, Publication, effect_targets
from handtools.core.web import Visit
from handtools.runtime.policy.rules import Decision
from handtools.text.diffs.unified_diff import diff_without_carriage_returns, unified_diff
from handtools.text.encoding import decode, is_binary
from handtools.text.lines import count_lines
from handtools.text.plurals import number_with_noun
from handtools.text.truncation import ClippedText, clip_text
from handtools.text.visible_text import visible_line, with_visible_characters, without_long_blanks

MAX_PREVIEW_LINES = 400
MAX_PREVIEW_BYTES = 40_000
TITLE_NAME_CHARS = 60
"""Most characters of a path or command in the title."""
MAX_TITLE_NAMES = 3
MAX_PREVIEW_PATHS = 60
"""Most paths listed before the diffs."""
MAX_PREVIEW_NOTE_LINES = 40
"""Most lines of one note, such as the functions defined in a session."""
MIN_FILE_DIFF_LINES = 24
"""Minimum number of diff lines shown for each file of a change."""
PUBLISHED_PORT_BROWSER_WARNING = "Its pages run in your browser, which can reach more than the job can."


def approval_title(effect: Effect, tool: str) -> str:
    """Return the one-line title of an approval request for an effect."""
    names = effect_targets(effect)
    words = ["wants to", effect.kind]
    if isinstance(effect, CommandRun) and effect.command.live:
        words.append("live")
    shown = ", ".join(visible_line(name, TITLE_NAME_CHARS) for name in names[:MAX_TITLE_NAMES])
    more = f" and {len(names) - MAX_TITLE_NAMES} more" if len(names) > MAX_TITLE_NAMES else ""
    folder = effect.facts[0][1] if isinstance(effect, CommandRun) else "."
    where = f" in {visible_line(folder, TITLE_NAME_CHARS)}" if folder != "." else ""
    note = ""
    if isinstance(effect, ChangeSet) and effect.note:
        note = f": {visible_line(effect.note, TITLE_NAME_CHARS)}"
    elif isinstance(effect, Publication):
        note = f" of {effect.job} at {effect.where.url}"
    return f"{visible_line(tool, TITLE_NAME_CHARS)} {' '.join(words)} {shown}{more}{where}{note}"


def part_that_needs_approval(effect: Effect, decisions: Iterable[Decision]) -> Effect:
    """Return the changes of a change set that rules ask about, or the whole effect if it is something else.

    A command may change thousands of files, and the user should see the few that are the reason to ask.
    """
    asked = {decision.target for decision in decisions if decision.verdict == "ask"}
    if not isinstance(effect, ChangeSet) or not asked:
        return effect
    parts = (
        part
        for change in effect
        for part in (
            [change] if asked.isdisjoint(paths_in_moved_folders(change)) else split_folder_change(change)
        )
    )
    return replace(effect, changes=tuple(part for part in parts if part.path in asked))


def effect_preview(effect: Effect, *, other_paths: int = 0) -> ClippedText:
    """Return the text to approve (diff, URL, prompt or script), cut to the limits.

    `other_paths` is the number of paths that change along with the effect and need no approval.
    """
    preview = _PreviewText()
    text = preview.text_of_effect(effect)
    if other_paths:
        text = f"{text.rstrip()}\n\n# other paths, which need no approval: {other_paths:,}\n"
    lines, size = (
        count_lines(text) + preview.hidden_lines,
        len(text.encode("utf-8", "replace")) + preview.hidden_bytes,
    )
    clipped = clip_text(
        text, max_lines=MAX_PREVIEW_LINES, max_bytes=MAX_PREVIEW_BYTES, keep="both", whole=(lines, size)
    )
    return replace(clipped, lines=lines, bytes=size)


@dataclass(slots=True)
class _PreviewText:
    """Builds a preview and counts how much was cut."""

    hidden_lines: int = 0
    hidden_bytes: int = 0

    def text_of_effect(self, effect: Effect) -> str:
        if isinstance(effect, CommandRun):
            return self._command(effect)
        if isinstance(effect, ChangeSet):
            return self._changes(effect)
        if isinstance(effect, Visit):
            text = "\n".join(filter(None, (effect.url or effect.place, effect.purpose)))
        elif isinstance(effect, Delivery):
            text = f"{effect.path} ({effect.media_type}, {effect.bytes:,} bytes)\n{effect.title}".rstrip()
        elif isinstance(effect, Delegation):
            text = f"{effect.title}\n\n{effect.prompt}"
        elif isinstance(effect, Publication):
            place = f"port {effect.where.port} of {effect.job} at {effect.where.url}"
            text = "\n".join((f"# {place}", f"# {PUBLISHED_PORT_BROWSER_WARNING}", effect.script))
        else:
            text = "\n".join(effect.paths)
        return without_long_blanks(with_visible_characters(text))

    def _command(self, run: CommandRun) -> str:
        """Describe a command: folder, environment, network, hazards in the script, then the script."""
        *facts, (_, script) = run.facts
        notes = [fact for fact in facts if fact != ("folder", ".")]
        notes += [("not plain", run.script.opaque)] if run.script.opaque else []
        notes += [("warning", danger) for danger in run.script.dangers]
        rows = [row for name, text in notes for row in self._note(name, text)]
        return "\n".join([*rows, without_long_blanks(with_visible_characters(script))])

    def _note(self, name: str, text: str) -> Iterator[str]:
        """Yield a note as comment lines: after its name, or below it if the note has several lines."""
        rows = self._clip_and_count_hidden(text, MAX_PREVIEW_NOTE_LINES)
        if "\n" not in rows:
            yield f"# {name}: {rows}"
            return
        yield f"# {name}:"
        yield from (f"#   {row}" for row in rows.split("\n"))

    def _changes(self, changes: ChangeSet) -> str:
        """List all paths with their actions, then the diffs; the space is shared among the files."""
        every = list(changes)
        if len(every) == 1:
            return without_long_blanks(with_visible_characters(_read_by_a_person(every[0])))
        rows = [
            f"# {visible_line(_change_in_words(change), 2 * TITLE_NAME_CHARS)}"
            for change in every[:MAX_PREVIEW_PATHS]
        ]
        if len(every) > MAX_PREVIEW_PATHS:
            rows.append(f"# [… {len(every) - MAX_PREVIEW_PATHS} more paths …]")
        room = max(MIN_FILE_DIFF_LINES, MAX_PREVIEW_LINES // len(every))
        # Changes described in one line are in the list above already.
        diffs = [piece for change in every if "\n" in (piece := _read_by_a_person(change)).rstrip("\n")]
        return "\n".join([*rows, "", *(self._clip_and_count_hidden(piece, room) for piece in diffs)])

    def _clip_and_count_hidden(self, text: str, max_lines: int) -> str:
        cut = clip_text(
            without_long_blanks(with_visible_characters(text)),
            max_lines=max_lines,
            max_bytes=MAX_PREVIEW_BYTES // 4,
            keep="both",
        )
        self.hidden_lines += cut.lines - cut.shown_lines
        self.hidden_bytes += cut.bytes - cut.shown_bytes
        return cut.text


def _change_in_words(change: Change) -> str:
    before, after = change.before, change.after
    word = "new" if before is None else "deleted" if after is None else "changed"
    return f"{word}: {change.path} ({node_in_words(before if after is None else after)})"


def changes_diff(changes: ChangeSet) -> str:
    """Return all changes as one unified diff; binary files are only named."""
    return "".join(_change_diff(change) for change in changes)


def _read_by_a_person(change: Change) -> str:
    """Return a diff for a user to read, without the carriage returns of CRLF files; added ones stay visible."""
    is_edit = change.before is not None and change.after is not None
    return diff_without_carriage_returns(_change_diff(change)) if is_edit else _change_diff(change)


def _change_diff(change: Change) -> str:
    before, after = change.before, change.after
    nodes = [node for node in (before, after) if node is not None]
    if any(node.kind != "file" or not node.known or is_binary(node.data) for node in nodes):
        return f"{change.path}: {node_in_words(before)} -> {node_in_words(after)}\n"
    mode = ""
    if len(nodes) == 2 and nodes[0].mode != nodes[1].mode:
        mode = f"{change.path}: mode {_mode_in_words(before)} -> {_mode_in_words(after)}\n"
        if nodes[0].data == nodes[1].data:
            return mode
    was = None if before is None else decode(before.data).body
    return mode + unified_diff(change.path, was, None if after is None else decode(after.data).body)


def node_in_words(node: Node | None) -> str:
    """Describe a node in a few words."""
    if node is None:
        return "nothing"
    if node.kind == "link":
        return f"a symlink to {node.data.decode(errors='replace')}"
    if is_folder_moved_as_one(node):
        entries = number_with_noun(len(unpack_folder(node.data)), "entry")
        return f"a folder with {entries}, {node.bytes:,} bytes"
    if node.kind == "folder":
        return "a folder"
    shown = node.known and not is_binary(node.data)
    return f"{node.bytes:,} bytes" if shown else f"{node.bytes:,} bytes, not shown"


def _mode_in_words(node: Node | None) -> str:
    return "unchanged" if node is None or node.mode is None else f"{node.mode:04o}"
