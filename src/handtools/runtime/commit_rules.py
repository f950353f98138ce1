"""Commit rules: what of a command's changes may land, what a person must be asked about, and what is left out.

The kernel kept the command inside; these rules keep what it leaves behind from working outside, or later. What a
person is asked about is the same for a change by any tool.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from handtools.core.changes import Change
from handtools.core.trees import folders_above, inside, is_tree, links_made, order, unfolded

SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/")
"""Where links may point although it is outside: only the machine's owner writes there."""
NOWHERE = "/dev/null"
REPOSITORY = frozenset({"commondir", "objects", "refs", "config", "packed-refs"})
"""Beside a HEAD, each makes git look for a repository: it needs objects and refs, or to be told where they are."""
PROGRAMS = frozenset(
    {"config", "config.worktree", "commondir", "gitdir", "hooks", "info", "worktrees", "modules"}
)
"""In a repository: what says which programs git runs, or leads to what does. Objects and refs are only data."""
_OF_GIT = REPOSITORY | PROGRAMS | {"HEAD"}
SHOWN = 5

Holds = Callable[[str], bool]
"""Whether a path is in the workspace already; whether a target is inside it."""
Forbids = Callable[[str, bool], bool]
"""Whether a path is off limits; and as what, for a link brings along what is below it."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """A delta after the rules."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    question: str = ""
    """Why a person must see it first; empty when nobody has to."""


def rule(delta: Sequence[Change], *, forbidden: Forbids, there: Holds, within: Holds) -> Ruled:
    """Drop what is off limits, and say what has to be asked about."""
    changes, left_out = without(delta, forbidden)
    notes = (
        (f"Off limits, and left as it was: {_few([f'`{path}`' for path in left_out])}.",)
        if left_out
        else ()
    )
    asked = question(changes, there=there, within=within)
    return Ruled(tuple(changes), notes, f"The command made {asked}." if asked else "")


def question(changes: Sequence[Change], *, there: Holds, within: Holds) -> str:
    """What was made that a person must see first; empty when there is no such thing."""
    links = links_made(changes).items()
    leaving = [f"`{path}` -> `{target}`" for path, target in links if leads_out(path, target, within)]
    made = [f"`{path}`" for path in repositories(changes, there)]
    reasons = [
        (leaving, "links that lead out of the workspace"),
        (made, "what git would take for a repository, and run programs from"),
    ]
    return " and ".join(f"{what} ({_few(names)})" for names, what in reasons if names)


def without(delta: Sequence[Change], forbidden: Forbids) -> tuple[list[Change], list[str]]:
    """The changes that are not off limits, and the paths that are; a folder in which some are comes apart."""
    links = links_made(delta)
    touched_paths = (path for change in delta for path in (change.path, *inside(change)))
    refused = [path for path in touched_paths if forbidden(path, path in links)]
    if not refused:
        return list(delta), []
    kept = []
    for change in delta:
        touched = any(path == change.path or path.startswith(f"{change.path}/") for path in refused)
        kept += unfolded(change) if touched else [change]
    staying = {above for path in refused for above in folders_above(path)}
    landing = [
        change
        for change in kept
        if not _below(change.path, refused)
        # A folder can't go, or give way to a file, while something stays in it.
        and not (change.path in staying and (change.after is None or change.after.kind != "folder"))
    ]
    return sorted(landing, key=order), refused


def leads_out(path: str, target: str, within: Holds) -> bool:
    """Whether a link at a path points outside, and not to the system; also when text alone can't tell."""
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    # After a name, `..` is above whatever that name stands for: a link may take it anywhere.
    if ".." in parts[up:]:
        return True
    if not target.startswith("/"):
        return up > path.count("/")
    return bool(up) or not (target == NOWHERE or target.startswith(SYSTEM) or within(target))


def repositories(changes: Iterable[Change], there: Holds) -> list[str]:
    """Folders that become repositories, in whichever shape; and repositories that get other programs to run."""
    made = {
        path
        for change in changes
        if change.after is not None
        for path in (change.path, *(inside(change) if is_tree(change.after) else ()))
    }
    touched: dict[str, set[str]] = {}
    for path in made:
        if _OF_GIT.isdisjoint(path.split("/")):
            continue
        for part in (path, *folders_above(path)):
            above, _, name = part.rpartition("/")
            if name in _OF_GIT:
                touched.setdefault(above, set()).add(name)
    return sorted(above or "." for above, names in touched.items() if _is_asked(above, names, made, there))


def _is_asked(folder: str, names: set[str], made: Collection[str], there: Holds) -> bool:
    prefix = f"{folder}/" if folder else ""
    head = f"{prefix}HEAD"
    if head not in made and not there(head):
        return False
    if names & PROGRAMS:
        return True
    was = there(head) and any(there(prefix + name) for name in REPOSITORY)
    is_now = names & REPOSITORY or any(there(prefix + name) for name in REPOSITORY)
    return bool(is_now) and not was


def _below(path: str, refused: Collection[str]) -> bool:
    return path in refused or any(above in refused for above in folders_above(path))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
