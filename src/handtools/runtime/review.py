"""Review of changes: list the changed parts of each file with their authors, and plan the rejection of some.

Covers recorded changes, and changes of a command that are pending approval.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

from handtools.core.changes import Change, Node, change_apply_order, same_nodes, sha256_hex
from handtools.core.commands import FinishedCommand
from handtools.core.files import HostFiles
from handtools.core.undo import PERSON_AGENT_NAME, ReviewPoint, UndoConflict
from handtools.runtime.approval.preview import node_in_words
from handtools.runtime.journal import Journal, RecordedTouch
from handtools.runtime.journaled_transactions import node_at, node_bytes
from handtools.runtime.policy.change_rules import without_forbidden
from handtools.text.diffs.authored_hunks import (
    OTHERS,
    AuthoredDiff,
    TextVersion,
    authored_diff,
    render_hunks,
    replace_hunks,
)
from handtools.text.diffs.unified_diff import diff_without_carriage_returns
from handtools.text.encoding import Unencodable, decode, is_binary
from handtools.text.git_config import enclosing_git_folder
from handtools.text.paths import folders_above

MAX_REVIEWED_FILE_BYTES = 32 << 20
"""Largest file in bytes that is compared line by line; a larger one is reviewed as a whole."""
PART_ID_CHARS = 12
EDITED_SINCE = "The same lines were edited by someone else since then."
LOST_BYTES = "The previous content is no longer stored."
SHOWN_OTHERWISE = "It changed after it was shown."

PartKind = Literal["hunk", "created", "deleted", "replaced", "mode"]
TextOf = Callable[[str, Node | None], str | None]
"""Returns the text of a node at a path; None if it is not text or too large to compare."""


@dataclass(frozen=True, slots=True)
class ReviewPart:
    """A part of a file's change to keep or reject: a hunk, the whole file, or its mode."""

    kind: PartKind
    authors: tuple[str, ...]
    """Ids of the calls that made the part."""
    refusal: str = ""
    """Why the part can't be rejected; empty if it can."""
    hunk: int = -1
    """Index of the hunk in the file's diff; -1 if the part is not a hunk."""
    id: str = ""
    """Digest of path and content, so that a decision applies only to what was shown."""


@dataclass(frozen=True, slots=True)
class ReviewedFile:
    """A file that the reviewed calls changed: its state without their changes, its state now, and the parts."""

    path: str
    before: Node | None = None
    now: Node | None = None
    diff: AuthoredDiff | None = None
    """The lines before and now; None if the file is not text."""
    modes: tuple[int, int] | None = None
    """Permission bits before and now; None if the authors did not change them."""
    parts: tuple[ReviewPart, ...] = ()
    touches: tuple[int, ...] = ()
    """Ids of the authors' recorded touches that were not reverted."""

    def shown(self, parts: Sequence[ReviewPart]) -> str:
        """Return parts as text: adjacent hunks as one hunk of a unified diff, anything else as one line."""
        if parts[0].kind == "mode" and self.modes:
            return "mode {:04o} -> {:04o}\n".format(*self.modes)
        hunks = [part.hunk for part in parts if part.kind == "hunk"]
        if self.diff is not None and (hunks or self.diff.hunks):
            text = render_hunks(self.diff, hunks or range(len(self.diff.hunks)))
            return diff_without_carriage_returns(text) if hunks else text
        return f"{node_in_words(self.before)} -> {node_in_words(self.now)}\n"


class FileReviews(Protocol):
    """Files to review: those that calls changed, or that a command will change once it is approved."""

    @property
    def paths(self) -> list[str]:
        """The paths to review, sorted."""
        ...

    def file(self, path: str) -> ReviewedFile:
        """Review one path; the result has no parts if there is nothing to decide."""
        ...


@dataclass(frozen=True)
class ChangeReview:
    """The files changed since a point in the log; each is compared only when requested."""

    journal: Journal
    files: HostFiles
    point: ReviewPoint

    @cached_property
    def touches(self) -> list[RecordedTouch]:
        """All touches by any author since the point, oldest first."""
        entries, (scope, name) = self.journal.entries, self.point
        found = entries.made_since(float(name)) if scope == "time" else entries.selected(scope, name)
        return found[::-1]

    @property
    def paths(self) -> list[str]:
        """The sorted paths of files that authors changed, without files in git folders."""
        every = {touch.path for touch in self.touches if not is_plain_folder(touch) and self._author(touch)}
        return sorted(path for path in every if not enclosing_git_folder(path))

    @cached_property
    def git_paths(self) -> int:
        """The number of changed paths in git folders, which are not reviewed one by one."""
        return len({touch.path for touch in self.touches if enclosing_git_folder(touch.path)})

    def file(self, path: str) -> ReviewedFile:
        """Review one path; the result has no parts if none of the authors' changes remain."""
        chosen = self._by_path.get(path, [])
        if not chosen:
            return ReviewedFile(path)
        # Later changes by other sessions are not reviewed, but are needed to find the author of each line.
        beside = (touch for touch in self.journal.entries.selected("path", path) if touch.id > chosen[0].id)
        chain = {touch.id: touch for touch in (*beside, *chosen)}
        try:
            states = self._states(path, [chain[number] for number in sorted(chain)])
        except KeyError:
            authors = tuple(dict.fromkeys(filter(None, map(self._author, chosen))))
            return _with_parts(ReviewedFile(path), [ReviewPart("replaced", authors, LOST_BYTES)])
        file = _reviewed_file(path, states, self._text)
        own = (touch for touch in chosen if touch.kind == "change" and self._author(touch))
        return replace(file, touches=tuple(touch.id for touch in own if touch.reverted_by is None))

    def folders(self, *, created: bool) -> dict[str, RecordedTouch]:
        """The folders that authors created or removed, by path."""
        return {
            touch.path: touch
            for touch in self.touches
            if is_plain_folder(touch) and self._author(touch) and touch.reverted_by is None
            and (touch.before if created else touch.after) is None
        }  # fmt: skip

    @cached_property
    def _by_path(self) -> dict[str, list[RecordedTouch]]:
        recorded_touches: dict[str, list[RecordedTouch]] = {}
        for touch in self.touches:
            recorded_touches.setdefault(touch.path, []).append(touch)
        return recorded_touches

    @cached_property
    def _authors_by_entry(self) -> dict[int, str]:
        """The call that made each entry since the point; `OTHERS` for changes by the user."""
        found = {}
        for entry in {touch.entry for touch in self.touches}:
            call_id = self.journal.entries.call_of(entry)
            logged = self.journal.calls.find(call_id)
            by_person = logged is not None and logged.agent == PERSON_AGENT_NAME
            found[entry] = OTHERS if by_person else call_id
        return found

    def _author(self, touch: RecordedTouch) -> str:
        return self._authors_by_entry.get(touch.entry, OTHERS)

    def _states(self, path: str, recorded_touches: Sequence[RecordedTouch]) -> "_FileStates":
        """Load all states of a path (unrecorded changes are by `OTHERS`); raises `KeyError` if one was pruned."""
        node = self.journal.entries.node
        states = [(OTHERS, node(recorded_touches[0].before))]
        for touch in recorded_touches:
            _add_state(states, node(touch.before))
            states.append((self._author(touch), node(touch.after)))
        now = node_at(self.files, path, like_node=states[-1][1] or states[0][1])
        _add_state(states, now)
        return _FileStates(states[0][1], states[1:], now)

    def _text(self, path: str, node: Node | None) -> str | None:
        return _file_text(self.files, path, node)


@dataclass(frozen=True)
class HeldReview:
    """The changes of a finished command before they are applied."""

    call_id: str
    finished: FinishedCommand
    files: HostFiles

    @cached_property
    def changes(self) -> dict[str, Change]:
        """The file changes by path, without plain folders."""
        return {
            change.path: change
            for change in self.finished.delta or ()
            if not all(node is None or _is_folder(node) for node in (change.before, change.after))
        }

    @property
    def paths(self) -> list[str]:
        """The sorted file paths, without files in git folders, which are approved only with the whole command."""
        return sorted(path for path in self.changes if not enclosing_git_folder(path))

    def file(self, path: str) -> ReviewedFile:
        """Review one path as it would be after the command."""
        change = self.changes.get(path)
        if change is None:
            return ReviewedFile(path)
        states = _FileStates(change.before, [(self.call_id, change.after)], change.after)
        return _reviewed_file(path, states, lambda path, node: _file_text(self.files, path, node))

    def without(
        self, rejected: Mapping[str, Collection[str]], edited: Mapping[str, str]
    ) -> FinishedCommand:
        """Return the command without the rejected parts of its changes, and with a note about them."""
        changed: dict[str, Change] = {}
        left_out: set[str] = set()
        for path, ids in rejected.items():
            file = self.file(path)
            chosen = [part for part in file.parts if part.id in ids]
            if len(chosen) == len(file.parts) and edited.keys().isdisjoint(ids):
                left_out.add(path)
            elif chosen:
                # Take only the new content: this change starts at the command's version, which is not applied yet.
                wanted = _change_undoing_parts(self.files, file, chosen, edited).after
                changed[path] = replace(self.changes[path], after=wanted)
        delta = [changed.get(change.path, change) for change in self.finished.delta or ()]
        landing, _ = without_forbidden(delta, lambda path, _link: path in left_out)
        parts = sorted({*left_out, *(f"{path} (in part)" for path in changed)})
        note = f"The user rejected these changes: {', '.join(parts)}."
        end = replace(self.finished.exit, notes=(*self.finished.exit.notes, note))
        return replace(self.finished, exit=end, delta=tuple(landing))


@dataclass(slots=True)
class RejectionPlan:
    """Plan of a rejection: the changes to make, the touches they revert completely, and conflicts."""

    changes: list[Change] = field(default_factory=list)
    reverts: list[int] = field(default_factory=list)
    conflicts: list[UndoConflict] = field(default_factory=list)


def plan_rejection(
    review: ChangeReview, rejected: Mapping[str, Collection[str]], edited: Mapping[str, str]
) -> RejectionPlan:
    """Plan the changes that reject parts, given as ids by path; `edited` has texts that replace parts instead."""
    plan = RejectionPlan()
    for path, ids in rejected.items():
        file = review.file(path)
        found = [part for part in file.parts if part.id in ids]
        chosen = [part for part in found if not part.refusal or part.id in edited]
        refusals = {part.refusal for part in found if part not in chosen}
        if len(found) < len(set(ids)):
            refusals.add(SHOWN_OTHERWISE)
        try:
            plan.changes += [_change_undoing_parts(review.files, file, chosen, edited)] if chosen else []
        except Unencodable as problem:
            refusals.add(f"{problem}.")
        else:
            whole = len(chosen) == len(file.parts) and edited.keys().isdisjoint(ids)
            plan.reverts += file.touches if whole else ()
        plan.conflicts += [UndoConflict(path, refusal, None) for refusal in sorted(refusals)]
    _plan_folders(review, plan)
    plan.changes.sort(key=change_apply_order)
    return plan


def _plan_folders(review: ChangeReview, plan: RejectionPlan) -> None:
    """Add the missing parent folders of restored files, and remove folders created only for removed files."""
    files, removed = review.files, review.folders(created=False)
    coming = folders_above(change.path for change in plan.changes if change.after)
    for above in sorted(coming):
        if node_at(files, above, like_node=None) is None:
            touch = removed.get(above)
            mode = touch.before.mode if touch and touch.before else None
            plan.changes.append(Change(above, None, Node("folder", mode=mode)))
            plan.reverts += [touch.id] if touch else []
    going = {change.path for change in plan.changes if change.after is None}
    above_going = folders_above(going)
    created = review.folders(created=True)
    for folder in sorted(above_going & created.keys(), key=lambda path: -path.count("/")):
        node = node_at(files, folder, like_node=None)
        if node is None or node.kind != "folder" or any(f.path not in going for f in files.names(folder)):
            continue
        plan.changes.append(Change(folder, node, None))
        plan.reverts.append(created[folder].id)
        going.add(folder)


def _change_undoing_parts(
    files: HostFiles, file: ReviewedFile, parts: Sequence[ReviewPart], edited: Mapping[str, str]
) -> Change:
    """Return the change of a file from its current content to the content without the chosen parts."""
    if any(part.kind in ("created", "deleted", "replaced") for part in parts):
        return Change(file.path, file.now, file.before)
    assert file.now is not None
    assert file.diff is not None
    data = _file_bytes(files, file.path, file.now) or b""
    hunks = {
        part.hunk: edited.get(part.id, file.diff.base_text(file.diff.hunks[part.hunk]))
        for part in parts
        if part.kind == "hunk"
    }
    wanted = decode(data).encode(replace_hunks(file.diff, hunks)) if hunks else data
    back = file.modes is not None and any(part.kind == "mode" for part in parts)
    mode = file.modes[0] if file.modes and back else file.now.mode
    return Change(file.path, Node("file", data, file.now.mode), Node("file", wanted, mode))


@dataclass(frozen=True, slots=True)
class _FileStates:
    """The first state of a path, the state and author of each change, and the current state."""

    first: Node | None
    nodes: Sequence[tuple[str, Node | None]]
    now: Node | None


@dataclass(frozen=True, slots=True)
class _WholeFile:
    """A file, reviewed as a whole, after some changes: its last state by others, and who changed it since then."""

    before: Node | None
    node: Node | None
    exists: bool
    """Whether the file would exist without the authors' changes."""
    mode: int | None
    """Permission bits as last set by others; None if unknown."""
    authors: tuple[str, ...] = ()
    mode_authors: tuple[str, ...] = ()
    since_it_came: tuple[str, ...] = ()
    """The authors that changed the file since others created or deleted it, or since the first state."""

    def after(self, author: str, node: Node | None) -> "_WholeFile":
        """The file after one more change."""
        was, now = (each.mode if each else None for each in (self.node, node))
        changed = was is not None and now is not None and was != now
        if author != OTHERS:
            modes = (*self.mode_authors, author) if changed else self.mode_authors
            mode = now if self.mode is None else self.mode
            return replace(
                self,
                node=node,
                mode=mode,
                authors=(*self.authors, author),
                mode_authors=modes,
                since_it_came=(*self.since_it_came, author),
            )
        came_or_went = (self.node is None) != (node is None)
        return _WholeFile(
            before=node,
            node=node,
            exists=node is not None if came_or_went else self.exists,
            mode=now if changed or self.mode is None else self.mode,
            mode_authors=() if changed else self.mode_authors,
            since_it_came=() if came_or_went else self.since_it_came,
        )


def _whole_file(states: _FileStates) -> _WholeFile:
    first = states.first
    whole = _WholeFile(first, first, first is not None, first.mode if first else None)
    # As with lines: if others restore an earlier state (an undo), the authors of that state apply again.
    known = {_kind_and_digest(first): whole}
    for author, node in states.nodes:
        found = known.get(_kind_and_digest(node)) if author == OTHERS else None
        whole = found or whole.after(author, node)
        known[_kind_and_digest(node)] = whole
    return whole


def _reviewed_file(path: str, states: _FileStates, text_of: TextOf) -> ReviewedFile:
    whole, now = _whole_file(states), states.now
    authors = tuple(dict.fromkeys(whole.authors if whole.exists else whole.since_it_came))
    if now is None or not whole.exists:
        if (now is None) != whole.exists or not authors:
            return ReviewedFile(path)
        diff = _text_diff(path, whole.before if now is None else None, [(authors[-1], now)], text_of)
        if now is None:
            return _with_parts(
                ReviewedFile(path, whole.before, None, diff), [ReviewPart("deleted", authors)]
            )
        refusal = "" if whole.before is None else EDITED_SINCE
        return _with_parts(ReviewedFile(path, None, now, diff), [ReviewPart("created", authors, refusal)])
    diff = _text_diff(path, states.first, states.nodes, text_of)
    if diff is None:
        parts = [ReviewPart("replaced", authors)] if authors and not same_nodes(whole.before, now) else []
        return _with_parts(ReviewedFile(path, whole.before, now), parts)
    parts = [
        ReviewPart("hunk", hunk.authors, EDITED_SINCE if hunk.mixed else "", number)
        for number, hunk in enumerate(diff.hunks)
    ]
    modes = None
    if whole.mode_authors and None not in (whole.mode, now.mode) and whole.mode != now.mode:
        modes = (whole.mode or 0, now.mode or 0)
        parts.append(ReviewPart("mode", tuple(dict.fromkeys(whole.mode_authors))))
    return _with_parts(ReviewedFile(path, whole.before, now, diff, modes), parts)


def _text_diff(
    path: str, first_node: Node | None, nodes: Sequence[tuple[str, Node | None]], text_of: TextOf
) -> AuthoredDiff | None:
    base = text_of(path, first_node)
    if base is None:
        return None
    versions = []
    for author, node in nodes:
        text = text_of(path, node)
        if text is None:
            return None
        versions.append(TextVersion(author, text))
    return authored_diff(base, versions)


def _with_parts(file: ReviewedFile, parts: Sequence[ReviewPart]) -> ReviewedFile:
    """Return the file with an id for each part: a digest of path and content, numbered for identical parts."""
    times: Counter[str] = Counter()
    named = []
    for part in parts:
        words = [file.path, part.kind, *_content_of(file, part)]
        key = sha256_hex("\0".join(words).encode("utf-8", "surrogatepass"))[:PART_ID_CHARS]
        times[key] += 1
        named.append(replace(part, id=key if times[key] == 1 else f"{key}-{times[key]}"))
    return replace(file, parts=tuple(named))


def _content_of(file: ReviewedFile, part: ReviewPart) -> list[str]:
    if part.kind == "hunk" and file.diff is not None:
        hunk = file.diff.hunks[part.hunk]
        return [file.diff.base_text(hunk), file.diff.text(hunk)]
    if part.kind == "mode":
        return [str(file.modes)]
    return [f"{node.kind} {node.digest}" if node else "" for node in (file.before, file.now)]


def _file_text(files: HostFiles, path: str, node: Node | None) -> str | None:
    if node is None:
        return ""
    data = _file_bytes(files, path, node) if node.kind == "file" else None
    return None if data is None or is_binary(data) else decode(data).body


def _file_bytes(files: HostFiles, path: str, node: Node) -> bytes | None:
    """Return a node's bytes, if necessary from the backups or the file; None if too large or changed since."""
    if node.bytes > MAX_REVIEWED_FILE_BYTES:
        return None
    return node_bytes(files, path, node, MAX_REVIEWED_FILE_BYTES)


def _add_state(nodes: list[tuple[str, Node | None]], node: Node | None) -> None:
    """Add the node that is on disk as a change by others; if it equals the last state, take only its mode."""
    author, last = nodes[-1]
    if not same_nodes(node, last):
        nodes.append((OTHERS, node))
    elif last and node and last.mode is None:
        nodes[-1] = (author, Node(last.kind, last.data, node.mode, last.held))


def _kind_and_digest(node: Node | None) -> tuple[str, str] | None:
    return None if node is None else (node.kind, node.digest)


def _is_folder(node: Node) -> bool:
    """Whether a node is a folder, other than one that was moved with its contents."""
    return node.kind == "folder" and node.held is None


def is_plain_folder(touch: RecordedTouch) -> bool:
    """Whether a touch is about a folder alone, other than one that was moved with its contents."""
    sides = [side for side in (touch.before, touch.after) if side]
    return all(side.kind == "folder" and side.ref is None for side in sides)
