"""What changes do to git repositories, judged by meaning: what git only keeps lands, what it runs or trusts asks.

Objects, refs, the index, logs and the state of a merge, rebase or bisect are data. Hooks, settings, attributes,
links, and files that say where a repository is can make git run a program, or read one elsewhere: a person sees
them, with the setting's key. What is not known here asks, too. ADR 163.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from handtools.core.changes import Change, Node, is_folder_moved_as_one, split_folder_change
from handtools.core.commands import PathPredicate
from handtools.runtime.policy.harmless_git_settings import git_config_keys_to_ask
from handtools.text.git_config import BadGitConfig, GitConfig, parse_git_config
from handtools.text.git_names import GIT_FOLDER
from handtools.text.paths import folders_above, inherited_value

BytesOf = Callable[[str, Node], bytes | None]
"""Returns the bytes of a file that is at a path, or comes there; None if they can't be read."""

MAX_JUDGED_GIT_FILE_BYTES = 1 << 20
"""A larger file whose content has to be judged asks."""
GIT_HOOKS_RISK = "hooks, which git runs"
GIT_SETTINGS_RISK = "settings by which git may run or trust something"
GIT_REDIRECTION_RISK = "what has git look elsewhere"
GIT_UNKNOWN_FILE_RISK = "files of git that can make it run, hide or trust something"
GIT_REMOVAL_RISK = "the removal of a whole repository"
GIT_COMMANDS_RISK = "commands that git runs as it goes on"
GIT_FILE_MODE_RISK = "files of git that are programs, or that everybody may write"

_OBJECT_ID = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_REF_CONTENT = re.compile(rf"(?:{_OBJECT_ID}|ref: ?refs/[^\s]+)\n?")
_DATA_FILES = re.compile(
    r"index|sharedindex\.[0-9a-f]+|packed-refs|shallow|description|gc\.(?:log|pid)|locked|[A-Z_]+_(?:HEAD|MSG|EDITMSG)"
    r"|MERGE_(?:MODE|RR|AUTOSTASH)|AUTO_MERGE|ADD_EDIT\.patch|BISECT_[A-Z_]+|EDIT_DESCRIPTION|NOTES_MERGE_[A-Z_/]+"
    r"|info/(?:sparse-checkout|refs)|logs/(?:HEAD|refs/.+)|rr-cache/[0-9a-f]+/(?:pre|post|this)image(?:\.\d+)?"
    r"|objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62}|tmp_obj_\w+)|objects/pack/[\w.-]+"
    r"|objects/info/(?:packs|commit-graph|commit-graphs/[\w.-]+)"
    r"|(?:rebase-merge|rebase-apply|sequencer)/[\w.-]+"
)
"""Files of a repository that git only keeps and reads."""
_TOP_NAMES = frozenset(
    {
        "HEAD", "config", "config.worktree", "hooks", "info", "objects", "refs", "logs", "modules", "worktrees",
        "index", "packed-refs", "commondir", "gitdir", "branches", "description", "rr-cache", "rebase-merge",
        "rebase-apply", "sequencer",
    }
)  # fmt: skip
"""Names that follow the name of a submodule, and that tell a repository's folder."""
_TODO = re.compile(r"(?:rebase-merge|sequencer|rebase-apply)/(?:git-rebase-todo.*|todo)")
_EXEC_LINE = re.compile(r"^\s*(?:x|exec)\b", re.MULTILINE)
_STRATEGIES = frozenset({"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"})
_APPLY_OPTIONS = re.compile(
    r"(?:\s*'?(?:-[Cp]\d+|--whitespace=[a-z-]+|--ignore-(?:space-change|whitespace))'?)*\s*"
)
_QUOTED_WORDS = re.compile(r"(?:\s*'(?:[^']|'\\[!']')*')*\s*")


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """What is asked about the workspace while changes are judged."""

    there: PathPredicate
    """Whether a path exists now."""
    within: PathPredicate
    """Whether a path, relative to the workspace or absolute, resolves to a place inside of it."""
    bytes_of: BytesOf


@dataclass(slots=True)
class GitJudgement:
    """The paths in git repositories that were judged, and what of them a person must see."""

    judged: set[str] = field(default_factory=set)
    repositories: set[str] = field(default_factory=set)
    """The git folders that were judged whole: each has its change in `judged` or was one before."""
    questions: dict[str, list[str]] = field(default_factory=dict)
    """What asks, by its kind."""
    stale_locks: list[str] = field(default_factory=list)
    """Lock files that the command left behind: nobody holds them any more."""

    def add_question(self, kind: str, what: str) -> None:
        """Note something that a person must see."""
        self.questions.setdefault(kind, []).append(what)


def judge_git_changes(delta: Sequence[Change], view: WorkspaceView) -> GitJudgement:
    """Judge all changes inside of git folders: those named `.git`, and bare repositories that are new or known."""
    found = GitJudgement()
    leaves = {leaf.path: leaf for change in delta for leaf in _leaves(change)}
    listed = {change.path for change in delta}
    bare = set(_bare_repositories(leaves, view))
    inside: dict[str, str | None] = {"": None}
    for path, change in leaves.items():
        folder = inherited_value(path, inside, lambda outer, path: outer or _own_git_folder(path, bare))
        if folder is None:
            continue
        found.judged.add(path)
        found.repositories.add(folder)
        repository = _Repository(folder, leaves, view, found)
        inner = path[len(folder) + 1 :]
        if path in listed and _is_stale_lock(inner, change):
            found.stale_locks.append(path)
        elif not inner:
            repository.judge_itself(change)
        else:
            repository.judge(inner, change)
    return found


def _leaves(change: Change) -> list[Change]:
    """The change, or the changes of a folder that moves as one, if a repository may be in it."""
    packed = [node.data for node in (change.before, change.after) if node and is_folder_moved_as_one(node)]
    inside = GIT_FOLDER in change.path.split("/")
    if packed and not inside and not any(b".git" in data or b'HEAD"' in data for data in packed):
        return [change]
    return split_folder_change(change)


def _own_git_folder(path: str, bare: set[str]) -> str | None:
    """The path itself if it is a git folder."""
    return path if path in bare or path.rpartition("/")[2] == GIT_FOLDER else None


def _bare_repositories(leaves: dict[str, Change], view: WorkspaceView) -> Iterator[str]:
    """Yield the folders that are bare repositories: made here as a whole, or repositories before."""
    above = folders_above(path for path in leaves if not _TOP_NAMES.isdisjoint(path.split("/")))
    candidates = {folder for folder in above if folder.rpartition("/")[2] not in _TOP_NAMES}
    for folder in candidates:
        own = leaves.get(folder)
        head = leaves.get(f"{folder}/HEAD")
        if own is not None and own.before is None:
            if head is not None and any(
                f"{folder}/{part}" in leaves for part in ("objects", "refs", "config")
            ):
                yield folder
        elif own is None and all(view.there(f"{folder}/{part}") for part in ("HEAD", "objects", "refs")):
            yield folder


def _is_stale_lock(inner: str, change: Change) -> bool:
    return inner.endswith(".lock") and change.before is None and change.after is not None


@dataclass(frozen=True, slots=True)
class _Repository:
    """One git folder while its changes are judged."""

    folder: str
    leaves: dict[str, Change]
    view: WorkspaceView
    found: GitJudgement

    def _is_new(self, prefix: str) -> bool:
        own = self.leaves.get(f"{self.folder}/{prefix}".rstrip("/"))
        return own is not None and own.before is None

    def judge_itself(self, change: Change) -> None:
        """Judge the change of the git folder itself, or of the file that stands for one."""
        before, after = change.before, change.after
        if before is not None and before.kind == "folder" and (after is None or after.kind != "folder"):
            self.found.add_question(GIT_REMOVAL_RISK, f"`{self.folder}`")
        if after is None:
            return
        if after.kind == "link":
            self.found.add_question(GIT_REDIRECTION_RISK, f"`{self.folder}`, a link")
        elif after.kind == "file":
            target = (self._text(change.path, after) or "").removeprefix("gitdir:").strip()
            if not self._is_own_git_folder(target):
                self.found.add_question(GIT_REDIRECTION_RISK, f"`{self.folder}` -> `{target or 'unknown'}`")
        elif _is_world_writable(before, after):
            self.found.add_question(GIT_FILE_MODE_RISK, f"`{self.folder}`")

    def judge(self, inner: str, change: Change, *, prefix: str = "") -> None:
        """Judge a change below the git folder; `inner` is its path in the repository of `prefix`."""
        nested = _nested_repository(inner)
        if nested and nested[1]:
            self.judge(nested[1], change, prefix=f"{prefix}{nested[0]}/")
            return
        before, after = change.before, change.after
        kind = self._kind_of_question(inner, change, prefix)
        if kind:
            self.found.add_question(kind, f"`{change.path}`")
        elif inner in {"config", "config.worktree"}:
            self._judge_settings(change)
        if after is None or kind:
            return
        is_program = after.kind == "file" and bool((after.mode or 0) & 0o111) and not _is_sample_hook(inner)
        if is_program or _is_world_writable(before, after):
            self.found.add_question(GIT_FILE_MODE_RISK, f"`{change.path}`")

    def _kind_of_question(self, inner: str, change: Change, prefix: str) -> str:
        """Why a change asks; empty if it lands."""
        before, after = change.before, change.after
        kinds = {node.kind for node in (before, after) if node is not None}
        if after is not None and after.kind == "link":
            return GIT_REDIRECTION_RISK
        if kinds == {"folder"} or (inner in {"config", "config.worktree"} and kinds == {"file"}):
            return ""
        if inner.startswith("hooks/") or inner == "hooks":
            return "" if _is_sample_hook(inner) else GIT_HOOKS_RISK
        if inner == "info/exclude" and self._is_new(prefix):
            return ""
        # What is taken away leads nowhere; what is data may go as it came.
        content = after if after is not None and after.kind == "file" else None
        if inner == "HEAD" or inner.startswith("refs/"):
            return (
                ""
                if content is None or self._fits(change.path, content, _REF_CONTENT)
                else GIT_REDIRECTION_RISK
            )
        if inner in {"commondir", "gitdir", "objects/info/alternates"}:
            leads = content is not None and not self._leads_inside(inner, change.path, content, prefix)
            return GIT_REDIRECTION_RISK if leads else ""
        if not _DATA_FILES.fullmatch(inner):
            return GIT_UNKNOWN_FILE_RISK
        return "" if content is None else self._kind_of_state(inner, change.path, content)

    def _kind_of_state(self, inner: str, path: str, node: Node) -> str:
        """Why the state of a rebase, cherry-pick, am or bisect asks: it says what runs when the person goes on."""
        if _TODO.fullmatch(inner):
            text = self._text(path, node)
            return GIT_COMMANDS_RISK if text is None or _EXEC_LINE.search(text) else ""
        if inner == "rebase-merge/strategy":
            return "" if (self._text(path, node) or "?").strip() in _STRATEGIES else GIT_COMMANDS_RISK
        if inner == "sequencer/opts":
            options = self._settings(path, node)
            strategies = () if options is None else options.get("options.strategy", ())
            return GIT_COMMANDS_RISK if options is None or not _STRATEGIES.issuperset(strategies) else ""
        if inner == "rebase-apply/apply-opt":
            return "" if self._fits(path, node, _APPLY_OPTIONS) else GIT_COMMANDS_RISK
        if inner == "BISECT_NAMES":
            return "" if self._fits(path, node, _QUOTED_WORDS) else GIT_COMMANDS_RISK
        return ""

    def _judge_settings(self, change: Change) -> None:
        before, after = (
            {} if node is None else self._settings(change.path, node)
            for node in (change.before, change.after)
        )
        if after is None or (before is None and after):
            self.found.add_question(GIT_SETTINGS_RISK, f"`{change.path}`, which can't be read")
            return
        above, _, name = self.folder.rpartition("/")
        bases = {"core.worktree": change.path.rpartition("/")[0]}
        top = above if name == GIT_FOLDER else self.folder

        def local(key: str, written: str) -> bool:
            return self._is_inside(written, bases.get(key, top))

        for asked in git_config_keys_to_ask(before or {}, after, local=local):
            self.found.add_question(GIT_SETTINGS_RISK, f"`{asked}` in `{change.path}`")

    def _settings(self, path: str, node: Node) -> GitConfig | None:
        data = self._bytes(path, node)
        try:
            return None if data is None else parse_git_config(data)
        except BadGitConfig:
            return None

    def _leads_inside(self, inner: str, path: str, node: Node, prefix: str) -> bool:
        text = self._text(path, node)
        if text is None:
            return False
        base = path.rpartition("/")[0]
        if inner == "objects/info/alternates":
            base = base.removesuffix("/info")
            return all(self._is_inside(line, base) for line in text.splitlines() if line)
        if not re.fullmatch(r"(?:.*/)?worktrees/[^/]+/", prefix):
            return False
        if inner == "commondir":
            return text.strip() == "../.."
        target = text.strip()
        return target.endswith(f"/{GIT_FOLDER}") and self._is_inside(target, base)

    def _is_own_git_folder(self, target: str) -> bool:
        """Whether a `.git` file names a submodule's or a worktree's folder in a repository of the workspace."""
        above, found, inner = target.rpartition(f"{GIT_FOLDER}/")
        nested = (
            _nested_repository(f"{inner}/HEAD") if found and (not above or above.endswith("/")) else None
        )
        return nested == (inner, "HEAD") and self._is_inside(target, self.folder.rpartition("/")[0])

    def _is_inside(self, written: str, base: str) -> bool:
        """Whether a path that git reads relative to a folder is inside of the workspace."""
        if not written.isprintable() or written.startswith(("~", '"')):
            return False
        parts = [part for part in written.split("/") if part not in {"", "."}]
        up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
        # After a name, `..` is above whatever that name stands for.
        if ".." in parts[up:]:
            return False
        if written.startswith("/"):
            return not up and self.view.within(written)
        folders = base.split("/") if base else []
        if up > len(folders):
            return False
        return self.view.within("/".join([*folders[: len(folders) - up], *parts[up:]]) or ".")

    def _fits(self, path: str, node: Node, form: re.Pattern[str]) -> bool:
        text = self._text(path, node)
        return text is not None and bool(form.fullmatch(text))

    def _text(self, path: str, node: Node) -> str | None:
        data = self._bytes(path, node)
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def _bytes(self, path: str, node: Node) -> bytes | None:
        return (
            None
            if node.kind != "file" or node.bytes > MAX_JUDGED_GIT_FILE_BYTES
            else self.view.bytes_of(path, node)
        )


def _nested_repository(inner: str) -> tuple[str, str] | None:
    """Split a path in a git folder into a submodule's or a worktree's own folder, and the path in that.

    A submodule's name may hold slashes: it ends where the first name of git's own follows.
    """
    parts = inner.split("/")
    if len(parts) < 2 or parts[0] not in {"modules", "worktrees"}:
        return None
    size = 2
    if parts[0] == "modules":
        while size < len(parts) and parts[size] not in _TOP_NAMES and size < len(parts) - 1:
            size += 1
    return "/".join(parts[:size]), "/".join(parts[size:])


def _is_sample_hook(inner: str) -> bool:
    """Whether a file is one of the examples that every repository comes with: git runs none of that name."""
    return bool(re.fullmatch(r"hooks/[\w-]+\.sample", inner))


def _is_world_writable(before: Node | None, after: Node) -> bool:
    return (
        bool((after.mode or 0) & 0o002 and not (before and (before.mode or 0) & 0o002))
        and after.kind != "link"
    )


def git_question_phrases(judgement: GitJudgement, few: Callable[[Sequence[str]], str]) -> Iterable[str]:
    """Yield what asks as parts of a sentence, with the paths and keys."""
    for kind, names in judgement.questions.items():
        yield f"{kind} ({few(names)})"
