"""Check changes in git repositories by the role that each file has for git.

Refs, the index, logs and the state of a merge, rebase or bisect are data. Objects and packs are applied if
their content matches their names. Hooks, settings, attributes, symlinks, and files that locate a repository
can make git run a program or read another repository, so they need approval; the request shows the setting's
key. Files that `git_layout` does not know need approval, too.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from handtools.core.changes import Change, Node, is_folder_moved_as_one, split_folder_change
from handtools.core.commands import PathPredicate
from handtools.core.files import GitNamedPath
from handtools.runtime.policy.git_layout import (
    RESERVED_NAMES,
    BadGitObject,
    GitPath,
    is_nested_git_folder,
    is_ref_name,
    loose_object_digest,
    read_git_path,
)
from handtools.runtime.policy.harmless_git_settings import git_config_keys_to_ask
from handtools.text.git_config import GIT_FOLDER, BadGitConfig, GitConfig, parse_git_config
from handtools.text.paths import folders_above, inherited_value

MAX_JUDGED_GIT_FILE_BYTES = 1 << 20
"""A larger file whose full content must be checked needs approval."""
MAX_JUDGED_REFS_BYTES = 64 << 20
MAX_INFLATED_BYTES = 1 << 30
"""Most bytes of loose objects that are decompressed to check one command; beyond that, approval is needed."""
GIT_HOOKS_RISK = "hooks, which git runs"
GIT_SETTINGS_RISK = "settings that may make git run, trust or redirect something"
GIT_REDIRECTION_RISK = "files that make git read from somewhere else"
GIT_UNKNOWN_FILE_RISK = "git files that can make it run, hide or trust something"
GIT_REMOVAL_RISK = "the removal of a whole repository"
GIT_COMMANDS_RISK = "commands that git runs when it continues"
GIT_FILE_MODE_RISK = "git files that are executable or world-writable"
GIT_HISTORY_RISK = "files that make git show a different history or content under the same names"
LEFTOVER_REASON = "because git left this lock or unfinished file behind"
CACHE_REASON = "because git recreates it"

_OBJECT_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_REFLOG_START = re.compile(rb"(?:[0-9a-f]{40} [0-9a-f]{40}|[0-9a-f]{64} [0-9a-f]{64}) ")
_ID_LINES = re.compile(r"(?:(?:[0-9a-f]{40}|[0-9a-f]{64})\n)*")
_REWRITTEN_REFS = re.compile(r"(?:refs/rewritten/[^\n]*\n?)*")
_REPLACEMENT_LINE = re.compile(rb"^.* refs/replace/.*$", re.MULTILINE | re.IGNORECASE)
_EXEC_LINE = re.compile(r"^\s*(?:x|exec)\b", re.MULTILINE)
_STRATEGIES = frozenset({"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"})
_APPLY_OPTIONS = re.compile(
    r"(?:\s*'?(?:-[Cp]\d+|--whitespace=[a-z-]+|--ignore-(?:space-change|whitespace))'?)*\s*"
)
_QUOTED_WORDS = re.compile(r"(?:\s*'(?:[^']|'\\[!']')*')*\s*")
_BARE_MARKERS = ("HEAD", "objects", "refs")


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """Queries about the workspace that are needed to check changes."""

    there: PathPredicate
    """Whether a path exists now."""
    within: PathPredicate
    """Whether a path, absolute or relative to the workspace, resolves to a path inside it."""
    pieces_of: Callable[[str, Node | None], Iterable[bytes]]
    """The bytes of a node's file in pieces; without a node, the current file's bytes.

    Empty if they can't be read."""
    verifies_pack: Callable[[str, Mapping[str, Node]], bool]
    """Whether the indexes of a pack match its content, given its path without suffix and its new files."""
    named_by_git: Callable[[Collection[str]], Sequence[GitNamedPath]]
    """The paths that git settings name, in the repositories that contain the given paths."""


@dataclass(slots=True)
class GitJudgement:
    """The paths in git repositories that were checked, and what needs approval."""

    judged: set[str] = field(default_factory=set)
    repositories: set[str] = field(default_factory=set)
    """The git folders that were checked, new or existing."""
    questions: dict[str, list[str]] = field(default_factory=dict)
    """What needs approval, by kind of risk."""
    left_out: dict[str, str] = field(default_factory=dict)
    """New files that are not applied, with the reason: locks, unfinished files, caches that may be forged."""
    outdated: set[str] = field(default_factory=set)
    """Caches that the command rewrote: the old ones are removed, and the new ones are not applied."""
    inflated_bytes: int = 0
    """Total decompressed size of the loose objects checked so far."""

    def add_question(self, kind: str, what: str) -> None:
        self.questions.setdefault(kind, []).append(what)


def judge_git_changes(
    delta: Sequence[Change], view: WorkspaceView, *, is_recorded: bool = False
) -> GitJudgement:
    """Check all changes in git folders: folders named `.git`, and new or existing bare repositories.

    With `is_recorded`, the content was in the workspace before, so objects are not checked again and caches
    are applied.
    """
    judgement = GitJudgement()
    leaves = {leaf.path: leaf for change in delta for leaf in _change_or_parts(change)}
    bare = set(_bare_repositories(leaves, view))
    repositories: dict[str, _Repository] = {}
    inside: dict[str, str | None] = {"": "" if "" in bare else None}
    for path, change in leaves.items():
        folder = inherited_value(path, inside, lambda outer, path: _outer_git_folder(outer, path, bare))
        if folder is None:
            continue
        judgement.judged.add(path)
        judgement.repositories.add(folder)
        if folder not in repositories:
            repositories[folder] = _Repository(folder, leaves, view, judgement, is_recorded)
        inner = path[len(folder) + 1 :] if folder else path
        if path == folder:
            repositories[folder].judge_itself(change)
        else:
            repositories[folder].judge(inner, change)
    for repository in repositories.values():
        repository.judge_packs()
    return judgement


def _change_or_parts(change: Change) -> list[Change]:
    """The change itself, or its parts if it moves a folder with its contents that may include a repository."""
    packed = [node.data for node in (change.before, change.after) if node and is_folder_moved_as_one(node)]
    inside = GIT_FOLDER in change.path.split("/")
    if packed and not inside and not any(b".git" in data or b'HEAD"' in data for data in packed):
        return [change]
    return split_folder_change(change)


def _outer_git_folder(outer: str | None, path: str, bare: set[str]) -> str | None:
    """The outermost git folder at or above a path, given the result for its parent folder.

    An empty string means that the workspace itself is a bare repository.
    """
    is_own = path in bare or path.rpartition("/")[2] == GIT_FOLDER
    return path if outer is None and is_own else outer


def _bare_repositories(changes: dict[str, Change], view: WorkspaceView) -> Iterator[str]:
    """Yield the folders that are bare repositories, created by these changes or existing."""
    inner = [path for path in changes if not RESERVED_NAMES.isdisjoint(path.casefold().split("/"))]
    above = {*folders_above(inner), ""} if inner else set[str]()
    candidates = {folder for folder in above if folder.rpartition("/")[2].casefold() not in RESERVED_NAMES}
    for folder in candidates:
        prefix = f"{folder}/" if folder else ""
        own = changes.get(folder)
        head = changes.get(f"{prefix}HEAD")
        if own is not None and own.before is None:
            if head is not None and any(prefix + part in changes for part in ("objects", "refs", "config")):
                yield folder
        elif own is None and all(view.there(prefix + part) for part in _BARE_MARKERS):
            yield folder


@dataclass(frozen=True, slots=True)
class _Repository:
    """One git folder, including its worktrees and submodules, while its changes are checked."""

    folder: str
    changes: dict[str, Change]
    view: WorkspaceView
    judgement: GitJudgement
    is_recorded: bool
    packs: dict[str, dict[str, Change]] = field(default_factory=dict)
    """The new files of packs and their indexes, by path without suffix, then by suffix."""

    def judge_itself(self, change: Change) -> None:
        """Check the change of the git folder itself, or of a `.git` file."""
        before, after = change.before, change.after
        if before is not None and before.kind == "folder" and (after is None or after.kind != "folder"):
            self.judgement.add_question(GIT_REMOVAL_RISK, f"`{self.folder}`")
        if after is None:
            return
        if after.kind == "link":
            self.judgement.add_question(GIT_REDIRECTION_RISK, f"`{self.folder}`, a symlink")
        elif after.kind == "file":
            target = (self._text(change.path, after) or "").removeprefix("gitdir:").strip()
            if not self._is_own_git_folder(target):
                self.judgement.add_question(
                    GIT_REDIRECTION_RISK, f"`{self.folder}` -> `{target or 'unknown'}`"
                )
        elif _is_world_writable(before, after):
            self.judgement.add_question(GIT_FILE_MODE_RISK, f"`{self.folder}`")

    def judge(self, inner: str, change: Change) -> None:
        """Check a change below the git folder."""
        before, after = change.before, change.after
        kinds = {node.kind for node in (before, after) if node is not None}
        place = read_git_path(inner, is_folder=kinds == {"folder"})
        if _is_leftover(place, change):
            self.judgement.left_out[change.path] = LEFTOVER_REASON
            return
        if place.kind == "cache" and not self.is_recorded:
            self._drop_cache(change)
            return
        risk = self._risk(place, change)
        if risk:
            self.judgement.add_question(risk, f"`{change.path}`")
        elif place.kind == "settings":
            self._judge_settings(place, change)
        if after is None or risk:
            return
        is_program = (
            after.kind == "file" and bool((after.mode or 0) & 0o111) and place.kind != "sample hook"
        )
        if is_program or _is_world_writable(before, after):
            self.judgement.add_question(GIT_FILE_MODE_RISK, f"`{change.path}`")

    def _drop_cache(self, change: Change) -> None:
        """Don't apply a cache, because git would trust it instead of the objects."""
        if change.before is None:
            self.judgement.left_out[change.path] = CACHE_REASON
        elif change.after is not None:
            self.judgement.outdated.add(change.path)

    def _risk(self, git_path: GitPath, change: Change) -> str:
        """The risk because of which a change needs approval; empty if it needs none."""
        before, after, path = change.before, change.after, change.path
        if after is not None and after.kind == "link":
            return GIT_REDIRECTION_RISK
        if git_path.kind is None:
            return GIT_HOOKS_RISK if git_path.path.split("/")[0] == "hooks" else GIT_UNKNOWN_FILE_RISK
        # Check only new content: removed files can't redirect git, and data may be removed freely.
        content = after if after is not None and after.kind == "file" else None
        match git_path.kind:
            case "settings":
                is_file = all(node is None or node.kind == "file" for node in (before, after))
                return "" if is_file else GIT_UNKNOWN_FILE_RISK
            case "excludes":
                return "" if self._is_new(git_path) else GIT_UNKNOWN_FILE_RISK
            case "replacement":
                return GIT_HISTORY_RISK
            case "packed refs":
                return "" if self._keeps_replacements(change) else GIT_HISTORY_RISK
            case _:
                return "" if content is None else self._risk_of_content(git_path, path, before, content)

    def _risk_of_content(self, git_path: GitPath, path: str, before: Node | None, node: Node) -> str:
        match git_path.kind:
            case "ref":
                return "" if _is_ref_content(self._text(path, node)) else GIT_REDIRECTION_RISK
            case "reflog":
                start = b"".join(islice(self.view.pieces_of(path, node), 1))
                return "" if not node.bytes or _REFLOG_START.match(start) else GIT_UNKNOWN_FILE_RISK
            case "place" | "alternates":
                return "" if self._leads_inside(git_path, path, node) else GIT_REDIRECTION_RISK
            case "shallow":
                is_cut_before = before is not None or self._is_new(git_path)
                is_list = self._has_text_matching(path, node, _ID_LINES, MAX_JUDGED_REFS_BYTES)
                return "" if is_cut_before and is_list else GIT_HISTORY_RISK
            case "object":
                return "" if self._is_true_object(git_path, path, before, node) else GIT_HISTORY_RISK
            case "pack" | "pack index":
                return "" if self._is_new_or_same(path, before, node) else GIT_HISTORY_RISK
            case "pack note":
                pack = self.changes.get(f"{path.rpartition('.')[0]}.pack")
                is_of_new_pack = pack is not None and pack.before is None
                return "" if self.is_recorded or is_of_new_pack else GIT_UNKNOWN_FILE_RISK
            case _:
                return self._risk_of_state(git_path, path, node)

    def _risk_of_state(self, git_path: GitPath, path: str, node: Node) -> str:
        """The risk in the state of a rebase, cherry-pick, am or bisect: commands that run on `--continue`."""
        match git_path.kind:
            case "todo":
                text = self._text(path, node)
                is_plain = text is not None and not _EXEC_LINE.search(text)
            case "strategy":
                is_plain = (self._text(path, node) or "?").strip() in _STRATEGIES
            case "sequencer options":
                options = self._parsed_config(path, node)
                is_plain = options is not None and _STRATEGIES.issuperset(
                    options.get("options.strategy", ())
                )
            case "apply options":
                is_plain = self._has_text_matching(path, node, _APPLY_OPTIONS)
            case "bisect names":
                is_plain = self._has_text_matching(path, node, _QUOTED_WORDS)
            case "refs to delete":
                is_plain = self._has_text_matching(path, node, _REWRITTEN_REFS)
            case _:
                is_plain = True
        return "" if is_plain else GIT_COMMANDS_RISK

    def _is_new(self, git_path: GitPath) -> bool:
        """Whether the git folder of a path is created by these changes."""
        own = self.changes.get("/".join(filter(None, (self.folder, git_path.folder))))
        return own is not None and own.before is None

    def _is_true_object(self, git_path: GitPath, path: str, before: Node | None, node: Node) -> bool:
        """Whether a loose object is unchanged, or new with content that matches its name."""
        if self.is_recorded:
            return True
        if before is not None:
            return self._has_same_bytes(path, before, node)
        name = git_path.path.removeprefix("objects").replace("/", "")
        algorithm = "sha1" if len(name) == 40 else "sha256"
        left = MAX_INFLATED_BYTES - self.judgement.inflated_bytes
        try:
            digest, size = loose_object_digest(
                self.view.pieces_of(path, node), algorithm=algorithm, max_bytes=left
            )
        except BadGitObject:
            return False
        self.judgement.inflated_bytes += size
        return digest == name

    def _is_new_or_same(self, path: str, before: Node | None, node: Node) -> bool:
        """Whether a pack file is unchanged or new; a new one is queued for `judge_packs`."""
        if self.is_recorded:
            return True
        if before is not None:
            return self._has_same_bytes(path, before, node)
        stem, _, suffix = path.rpartition(".")
        self.packs.setdefault(stem, {})[suffix] = Change(path, None, node)
        return True

    def judge_packs(self) -> None:
        """Check the new packs and indexes: each index must match its pack."""
        for stem, files in self.packs.items():
            nodes = {suffix: change.after for suffix, change in files.items() if change.after}
            is_alone = nodes.keys() == {"pack"} and not self.view.there(f"{stem}.idx")
            if not is_alone and not self.view.verifies_pack(stem, nodes):
                self.judgement.add_question(GIT_HISTORY_RISK, f"`{stem}.{next(iter(files))}`")

    def _has_same_bytes(self, path: str, before: Node, after: Node) -> bool:
        """Whether two file nodes have the same bytes; git updates the mtime of objects without changing them."""
        if before.kind != after.kind or before.bytes != after.bytes:
            return False
        one, other = (_sha256_and_size(self.view.pieces_of(path, node)) for node in (before, after))
        return one == other and one[1] == after.bytes

    def _keeps_replacements(self, change: Change) -> bool:
        """Whether packed-refs has the same `refs/replace/` entries as before."""
        lists = []
        for node in (change.before, change.after):
            data = b"" if node is None else self._bytes(change.path, node, MAX_JUDGED_REFS_BYTES)
            if data is None:
                return False
            lists.append(set(_REPLACEMENT_LINE.findall(data)))
        return lists[0] == lists[1]

    def _judge_settings(self, git_path: GitPath, change: Change) -> None:
        before, after = (
            {} if node is None else self._parsed_config(change.path, node)
            for node in (change.before, change.after)
        )
        if after is None or (before is None and after):
            self.judgement.add_question(GIT_SETTINGS_RISK, f"`{change.path}`, which can't be parsed")
            return
        above, _, name = self.folder.rpartition("/")
        own = change.path.rpartition("/")[0]
        top = above if name == GIT_FOLDER else self.folder

        def local(key: str, written: str) -> bool:
            if key == "core.worktree":
                return git_path.is_of_submodule and self._is_inside(written, own)
            return self._is_inside(written, top)

        def is_new_branch(branch: str) -> bool:
            ref = f"{own}/refs/heads/{branch}"
            leaf = self.changes.get(ref)
            is_there = self.view.there(ref) if leaf is None else leaf.before is not None
            return not is_there and not self._is_packed_ref(own, f"refs/heads/{branch}")

        for asked in git_config_keys_to_ask(before or {}, after, local=local, is_new_branch=is_new_branch):
            self.judgement.add_question(GIT_SETTINGS_RISK, f"`{asked}` in `{change.path}`")

    def _is_packed_ref(self, git_folder: str, ref: str) -> bool:
        packed = b"".join(self.view.pieces_of(f"{git_folder}/packed-refs", None))
        return f" {ref}\n".encode("utf-8", "surrogateescape") in packed

    def _parsed_config(self, path: str, node: Node) -> GitConfig | None:
        data = self._bytes(path, node)
        try:
            return None if data is None else parse_git_config(data)
        except BadGitConfig:
            return None

    def _leads_inside(self, git_path: GitPath, path: str, node: Node) -> bool:
        text = self._text(path, node)
        if text is None:
            return False
        base = path.rpartition("/")[0]
        if git_path.kind == "alternates":
            base = base.removesuffix("/info")
            return all(self._is_object_folder(line, base) for line in text.splitlines() if line)
        if not git_path.is_of_worktree:
            return False
        if git_path.path == "commondir":
            return text.strip() == "../.."
        target = text.strip()
        return target.endswith(f"/{GIT_FOLDER}") and self._is_inside(target, base)

    def _is_object_folder(self, target: str, base: str) -> bool:
        """Whether a path is the objects folder of a workspace repository, where objects are checked."""
        inner = _inside_git_folder(target.rstrip("/"))
        is_objects = inner == "objects" or (
            inner.endswith("/objects") and is_nested_git_folder(inner.removesuffix("/objects"))
        )
        return is_objects and self._is_inside(target, base)

    def _is_own_git_folder(self, target: str) -> bool:
        """Whether a `.git` file points to a submodule's or worktree's folder in a workspace repository."""
        inner = _inside_git_folder(target)
        base = self.folder.rpartition("/")[0]
        return bool(inner) and is_nested_git_folder(inner) and self._is_inside(target, base)

    def _is_inside(self, written: str, base: str) -> bool:
        """Whether a path that git resolves relative to a folder is inside the workspace."""
        if not written.isprintable() or written.startswith(("~", '"')):
            return False
        parts = [part for part in written.split("/") if part not in {"", "."}]
        up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
        # `..` after a name can lead anywhere if the name is a symlink.
        if ".." in parts[up:]:
            return False
        if written.startswith("/"):
            return not up and self.view.within(written)
        folders = base.split("/") if base else []
        if up > len(folders):
            return False
        return self.view.within("/".join([*folders[: len(folders) - up], *parts[up:]]) or ".")

    def _has_text_matching(
        self, path: str, node: Node, form: re.Pattern[str], most: int = MAX_JUDGED_GIT_FILE_BYTES
    ) -> bool:
        text = self._text(path, node, most)
        return text is not None and bool(form.fullmatch(text))

    def _text(self, path: str, node: Node, most: int = MAX_JUDGED_GIT_FILE_BYTES) -> str | None:
        data = self._bytes(path, node, most)
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def _bytes(self, path: str, node: Node, most: int = MAX_JUDGED_GIT_FILE_BYTES) -> bytes | None:
        if node.kind != "file" or node.bytes > most:
            return None
        data = b"".join(self.view.pieces_of(path, node))
        return data if len(data) == node.bytes else None


def _inside_git_folder(target: str) -> str:
    """The part of a path below a `.git` folder; empty if there is none."""
    above, found, inner = target.rpartition(f"{GIT_FOLDER}/")
    return inner if found and (not above or above.endswith("/")) else ""


def _is_ref_content(text: str | None) -> bool:
    """Whether a text is valid as a ref: an object id, or the name of another ref."""
    line = (text or "").removesuffix("\n")
    target = line.removeprefix("ref:").removeprefix(" ")
    is_name = target.startswith("refs/") and is_ref_name(target)
    return is_name if line.startswith("ref:") else bool(_OBJECT_ID.fullmatch(line))


def _is_leftover(git_path: GitPath, change: Change) -> bool:
    """Whether a new file was left behind by an interrupted git: a lock or an unfinished file."""
    is_new_file = change.before is None and change.after is not None and change.after.kind == "file"
    return is_new_file and (git_path.kind == "leftover" or git_path.path.endswith(".lock"))


def _sha256_and_size(pieces: Iterable[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


def _is_world_writable(before: Node | None, after: Node) -> bool:
    return (
        bool((after.mode or 0) & 0o002 and not (before and (before.mode or 0) & 0o002))
        and after.kind != "link"
    )


def git_question_phrases(judgement: GitJudgement, few: Callable[[Sequence[str]], str]) -> Iterable[str]:
    """Yield the changes that need approval as phrases for a sentence, with paths and keys."""
    for kind, names in judgement.questions.items():
        yield f"{kind} ({few(names)})"
