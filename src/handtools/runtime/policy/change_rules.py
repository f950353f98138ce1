"""Policy for file changes: those made by commands, symlinks to outside, git repositories, handtools settings."""

import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from handtools.core.changes import (
    Change,
    ChangeSet,
    Node,
    change_apply_order,
    is_folder_moved_as_one,
    links_created,
    paths_in_moved_folders,
    split_folder_change,
)
from handtools.core.commands import PathPredicate
from handtools.core.effects import effect_targets
from handtools.core.files import GitNamedPath
from handtools.runtime.policy.git_changes import (
    CACHE_REASON,
    GitJudgement,
    WorkspaceView,
    git_question_phrases,
    judge_git_changes,
)
from handtools.runtime.policy.rules import BUILT_IN_RULES, PRIVATE_RULE, PROTECTED_RULES, Rule
from handtools.text.git_config import enclosing_git_folder, is_git_folder_lookalike
from handtools.text.paths import folders_above, inherited_value
from handtools.text.toml_parsing import MAX_PYPROJECT_BYTES, PYPROJECT_NAME, handtools_table

SYSTEM_PREFIXES = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/")
"""System folders that symlinks in the workspace may point to."""
NULL_DEVICE = "/dev/null"
_INTERPRETER_NAME = re.compile(r"(?:python|pypy)[\d.]*")
_VENV_INTERPRETER = re.compile(rf"((?:.*/)?)bin/{_INTERPRETER_NAME.pattern}")
GIT_REPOSITORY_MARKERS = frozenset({"commondir", "objects", "refs", "config", "packed-refs"})
"""Names that, next to a HEAD file, make git treat a folder as a repository."""


REPOSITORY_CONFIG_PARTS = frozenset(
    {"config", "config.worktree", "commondir", "gitdir", "hooks", "info", "worktrees", "modules"}
)
"""Names in a git repository that, unlike objects and refs, can determine which programs git runs."""


_GIT_NAMES = GIT_REPOSITORY_MARKERS | REPOSITORY_CONFIG_PARTS | {"HEAD"}
MAX_NAMED_PATHS = 5
MAX_HELD_BACK_PATHS = 50
DenyingRulesLookup = Callable[[str, bool], Sequence[Rule]]
"""Returns the rules that deny changing a path; the second argument says whether it is a symlink."""


@dataclass(frozen=True, slots=True)
class RuledChanges:
    """A command's file changes after applying the rules: permitted changes, notes, and why to ask the user."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    question: str = ""
    """Why the user must approve the changes; empty if not needed."""
    exempt: frozenset[tuple[str, str]] = frozenset()
    """Exemptions from rules, as in `ChangeSet`."""


def apply_rules_to_changes(
    delta: Sequence[Change],
    *,
    forbidding: DenyingRulesLookup,
    view: WorkspaceView,
    open_private: PathPredicate,
) -> RuledChanges:
    """Drop forbidden changes of a command, and determine whether and why the others need approval.

    `open_private` returns whether a path with a private name contains no secrets at present.
    """
    git = judge_git_changes(delta, view)
    judged = {(path, rule.name) for path in git.judged for rule in BUILT_IN_RULES}
    kept = _without_outdated(delta, git.outdated)
    rules_of: dict[str, str] = {}
    private: dict[str, str | None] = {"": None}
    """For each path, the outermost private folder or file at or above it."""

    def may_be_made(path: str) -> bool:
        """Whether a command may write a private path: nothing was there before, or it contained no secrets."""
        first = inherited_value(path, private, _outermost_private) or path
        return not view.there(first) or open_private(path)

    def is_forbidden(path: str, link: bool) -> bool:  # noqa: FBT001 — a predicate
        if path in git.left_out:
            return True
        rules = [rule for rule in forbidding(path, link) if (path, rule.name) not in judged]
        if rules and all(rule == PRIVATE_RULE for rule in rules) and may_be_made(path):
            judged.add((path, PRIVATE_RULE.name))
            return False
        if rules:
            rules_of[path] = next((rule for rule in rules if rule != PRIVATE_RULE), rules[0]).name
        return bool(rules)

    changes, left_out = without_forbidden(kept, is_forbidden)
    notes = [
        *(
            f"Not applied because of rule `{rule}`: {names}."
            for rule, names in _by_rule(left_out, rules_of)
        ),
        *(f"Not applied, {reason}: {names}." for reason, names in _by_rule(git.left_out, git.left_out)),
        *(
            [f"Removed, {CACHE_REASON}: {_shortened_list(_quoted(sorted(git.outdated)))}."]
            if git.outdated
            else []
        ),
    ]
    asked = _reason_to_ask(changes, git, view)
    question = f"The command created {asked}." if asked else ""
    return RuledChanges(tuple(changes), tuple(notes), question, frozenset(judged))


def _without_outdated(delta: Sequence[Change], outdated: Collection[str]) -> list[Change]:
    """Return the changes, but with outdated files removed instead of changed."""
    above = folders_above(outdated)
    parts = [
        part
        for change in delta
        for part in (split_folder_change(change) if change.path in above else (change,))
    ]
    return [replace(part, after=None) if part.path in outdated else part for part in parts]


def judge_reversal(changes: ChangeSet, view: WorkspaceView) -> tuple[ChangeSet, str]:
    """Return the changes of an undo, exempt from rules about names, and why they need approval; empty if not.

    They are exempt because a call was already allowed to create or change each of these paths.
    """
    # Removing what a call created needs no check.
    coming = [change for change in changes if change.after is not None]
    git = judge_git_changes(coming, view, is_recorded=True)
    git.judged |= {path for path in effect_targets(changes) if enclosing_git_folder(path)}
    exempt = {(path, rule.name) for path in git.judged for rule in BUILT_IN_RULES}
    exempt |= {(path, PRIVATE_RULE.name) for path in effect_targets(changes)}
    asked = _reason_to_ask(coming, git, view)
    return replace(changes, exempt=frozenset(exempt)), f"It would create {asked}." if asked else ""


def _by_rule(paths: Iterable[str], rules_of: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each rule with a list of the paths that it excluded, top-level paths first."""
    ordered = sorted((path for path in paths if path in rules_of), key=lambda path: (path.count("/"), path))
    for rule in dict.fromkeys(rules_of[path] for path in ordered):
        named = _quoted(path for path in ordered if rules_of[path] == rule)
        yield rule, _shortened_list(named, most=MAX_HELD_BACK_PATHS)


def _quoted(paths: Iterable[str]) -> list[str]:
    return [f"`{path}`" for path in paths]


def _outermost_private(outer: str | None, path: str) -> str | None:
    return outer or (path if PRIVATE_RULE.covers(path) else None)


def reason_to_ask(changes: Sequence[Change], view: WorkspaceView) -> str:
    """Return which changes need approval: symlinks out of the workspace, programs git runs, handtools settings.

    Empty if none do. Changes in a `.git` folder are left to the rule about protected paths.
    """
    others = [change for change in changes if enclosing_git_folder(change.path) is None]
    bare = judge_git_changes(others, view)
    return _reason_to_ask(changes, GitJudgement(questions=bare.questions), view)


def _reason_to_ask(changes: Sequence[Change], git: GitJudgement, view: WorkspaceView) -> str:
    made_paths = _paths_made(changes)
    leaving = [
        f"`{path}` -> `{target}`"
        for path, target in links_created(changes).items()
        if link_leaves_workspace(path, target, view.within)
        and path not in git.judged
        and not _is_interpreter_of_venv(path, target, lambda each: each in made_paths or view.there(each))
    ]
    made = [f"`{path}`" for path in git_repositories_created(changes, view.there, judged=git.judged)]
    parts = {path: path.split("/") for path in sorted(made_paths)}
    lookalikes = {*filter(is_git_folder_lookalike, set[str]().union(*parts.values()))}
    aliases = [f"`{path}`" for path, names in parts.items() if not lookalikes.isdisjoint(names)]
    reasons = [
        (leaving, "symlinks that point outside the workspace"),
        (made, "folders that git would treat as a repository and run programs from"),
        (aliases, "names that other systems treat as `.git`"),
        (
            [f"`{path}`" for path in _altered_project_tables(changes, view)],
            "different handtools settings in the table `[tool.handtools]`",
        ),
        (changes_of_named_paths(changes, view.named_by_git), "changes to files named by git settings"),
    ]
    told = [f"{what} ({_shortened_list(names)})" for names, what in reasons if names]
    return " and ".join([*git_question_phrases(git, _shortened_list), *told])


def _altered_project_tables(changes: Iterable[Change], view: WorkspaceView) -> Iterator[str]:
    """Yield each pyproject.toml whose handtools table the changes alter, or may alter.

    As in loading, a file that is too large, unreadable or a symlink counts as having no table.
    """
    for change in changes:
        packed = [node for node in (change.before, change.after) if node and is_folder_moved_as_one(node)]
        inside = any(PYPROJECT_NAME.encode() in node.data.lower() for node in packed)
        for leaf in split_folder_change(change) if inside else [change]:
            if leaf.path.rpartition("/")[2].lower() != PYPROJECT_NAME:
                continue
            before, after = (_project_table(leaf.path, node, view) for node in (leaf.before, leaf.after))
            if before is None or before != after:
                yield leaf.path


def _project_table(path: str, node: Node | None, view: WorkspaceView) -> str | None:
    """The handtools table in a pyproject.toml; empty if there is none, None if the file can't be read."""
    unread = node is None or node.kind != "file" or node.bytes > MAX_PYPROJECT_BYTES
    if node is None or unread or (node.mode is not None and not node.mode & stat.S_IRUSR):
        return ""
    data = b"".join(view.pieces_of(path, node))
    return handtools_table(data.decode("utf-8", "replace")) if len(data) == node.bytes else None


def changes_of_named_paths(
    changes: Sequence[Change], named_by_git: Callable[[Collection[str]], Sequence[GitNamedPath]]
) -> list[str]:
    """List the changed paths that a git setting names, with the setting.

    Protected paths are left out, because the rule about them already requires approval.
    """
    named = named_by_git([change.path for change in changes])
    found: dict[str, str] = {}
    for each in named:
        place = each.path.casefold()
        for change in changes:
            for path in _paths_changed_at(change, place, is_whole_folder=each.is_whole_folder):
                if not any(rule.covers(path) for rule in PROTECTED_RULES):
                    found.setdefault(path, each.key)
    return [f"`{path}`, by `{key}`" for path, key in found.items()]


def _paths_changed_at(change: Change, place: str, *, is_whole_folder: bool) -> list[str]:
    """List the paths of a change that affect a place.

    These are the place itself, paths below it (with `is_whole_folder`), and a parent folder that the change
    replaces or moves, not one that it only creates.
    """
    own = change.path.casefold()
    if own == place or (is_whole_folder and own.startswith(f"{place}/")):
        return [change.path]
    if not place.startswith(f"{own}/"):
        return []
    nodes = [node for node in (change.before, change.after) if node is not None]
    if not any(map(is_folder_moved_as_one, nodes)):
        # Creating a parent folder or changing its mode does not change the named path.
        return [] if all(node.kind == "folder" for node in nodes) else [change.path]
    return [
        path
        for path in paths_in_moved_folders(change)
        if path.casefold() == place or (is_whole_folder and path.casefold().startswith(f"{place}/"))
    ]


def without_forbidden(
    delta: Sequence[Change], forbidden: Callable[[str, bool], bool]
) -> tuple[list[Change], list[str]]:
    """Return the permitted changes and the forbidden paths; a moved folder with forbidden paths is split."""
    links = links_created(delta)
    touched_paths = (path for change in delta for path in (change.path, *paths_in_moved_folders(change)))
    refused = [path for path in touched_paths if forbidden(path, path in links)]
    if not refused:
        return list(delta), []
    staying = folders_above(refused)
    kept = []
    for change in delta:
        kept += split_folder_change(change) if change.path in staying else [change]
    names, below = {*refused}, {"": False}
    landing = [
        change
        for change in kept
        if not inherited_value(change.path, below, lambda above, path: above or path in names)
        # A folder can't be removed or replaced by a file if forbidden changes keep something in it.
        and not (change.path in staying and (change.after is None or change.after.kind != "folder"))
    ]
    return sorted(landing, key=change_apply_order), refused


def link_leaves_workspace(path: str, target: str, within: PathPredicate) -> bool:
    """Whether a symlink's target is outside the workspace and the system folders, or unknown."""
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    # `..` after a name can lead anywhere if the name is a symlink.
    if ".." in parts[up:]:
        return True
    if not target.startswith("/"):
        return up > path.count("/")
    return bool(up) or not (target == NULL_DEVICE or target.startswith(SYSTEM_PREFIXES) or within(target))


def _is_interpreter_of_venv(path: str, target: str, there: PathPredicate) -> bool:
    """Whether a symlink is the `bin/python` of a virtual environment and leads to a Python interpreter."""
    link = _VENV_INTERPRETER.fullmatch(path)
    is_interpreter = _INTERPRETER_NAME.fullmatch(target.rpartition("/")[2]) is not None
    return link is not None and is_interpreter and there(f"{link[1]}pyvenv.cfg")


def git_repositories_created(
    changes: Iterable[Change], there: PathPredicate, *, judged: Collection[str] = ()
) -> list[str]:
    """List folders that become git repositories through changes, and repositories whose configuration changes.

    Paths in `judged` are left out.
    """
    made = _paths_made(changes).difference(judged)
    touched: dict[str, set[str]] = {}
    for path in made | folders_above(made):
        above, _, name = path.rpartition("/")
        if name in _GIT_NAMES:
            touched.setdefault(above, set()).add(name)
    return sorted(
        above or "." for above, names in touched.items() if _becomes_repository(above, names, made, there)
    )


def _paths_made(changes: Iterable[Change]) -> set[str]:
    """The paths that exist after the changes, including those in folders moved as one."""
    return {
        path
        for change in changes
        if change.after is not None
        for path in (
            change.path,
            *(paths_in_moved_folders(change) if is_folder_moved_as_one(change.after) else ()),
        )
    }


def _becomes_repository(folder: str, names: set[str], made: Collection[str], there: PathPredicate) -> bool:
    prefix = f"{folder}/" if folder else ""
    head = f"{prefix}HEAD"
    if head not in made and not there(head):
        return False
    if names & REPOSITORY_CONFIG_PARTS:
        return True
    was = there(head) and any(there(prefix + name) for name in GIT_REPOSITORY_MARKERS)
    is_now = names & GIT_REPOSITORY_MARKERS or any(there(prefix + name) for name in GIT_REPOSITORY_MARKERS)
    return bool(is_now) and not was


def _shortened_list(names: Sequence[str], most: int = MAX_NAMED_PATHS) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
