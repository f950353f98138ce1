"""Commit rules: what of a command's changes may land, what a person must be asked about, and what is left out.

The kernel kept the command inside; these rules keep what it leaves behind from working outside, or later.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from handtools.core.changes import Change
from handtools.core.trees import inside, is_tree, order, unfolded, unpack

SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/", "/dev/null")
"""Where links may point although it is outside: only the machine's owner writes there."""
SHOWN = 5

Holds = Callable[[str], bool]
"""Whether a path is in the workspace already; whether a target is inside it."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """A delta after the rules."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    question: str = ""
    """Why a person must see it first; empty when nobody has to."""


def rule(delta: Sequence[Change], *, forbidden: Holds, there: Holds, within: Holds) -> Ruled:
    """Drop what is off limits, and say what has to be asked about."""
    changes, left_out = without(delta, forbidden)
    notes = (f"Off limits, and left as it was: {_few(left_out)}.",) if left_out else ()
    reasons = [
        (_leaving(changes, within), "links that lead out of the workspace"),
        (_repositories(changes, there), "what git would take for a repository, and run programs from"),
    ]
    asked = [f"{what} ({_few(paths)})" for paths, what in reasons if paths]
    question = f"The command made {' and '.join(asked)}." if asked else ""
    return Ruled(tuple(changes), notes, question)


def without(delta: Sequence[Change], forbidden: Holds) -> tuple[list[Change], list[str]]:
    """The changes that are not off limits, and the paths that are; a folder in which some are comes apart."""
    refused = [path for change in delta for path in (change.path, *inside(change)) if forbidden(path)]
    if not refused:
        return list(delta), []
    kept = []
    for change in delta:
        touched = any(path == change.path or path.startswith(f"{change.path}/") for path in refused)
        kept += unfolded(change) if touched else [change]
    staying = {above for path in refused for above in _above(path)}
    landing = [
        change
        for change in kept
        if not _below(change.path, refused)
        # A folder can't go, or give way to a file, while something stays in it.
        and not (change.path in staying and (change.after is None or change.after.kind != "folder"))
    ]
    return sorted(landing, key=order), refused


def leads_out(path: str, target: str, within: Holds) -> bool:
    """Whether a link at a path points outside, and not to the system."""
    if target.startswith("/"):
        return not (target.startswith(SYSTEM) or within(target))
    depth = path.count("/")
    for part in target.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _leaving(changes: Iterable[Change], within: Holds) -> list[str]:
    return [path for path, target in _links(changes) if leads_out(path, target, within)]


def _links(changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        node = change.after
        if node and node.kind == "link":
            yield change.path, node.data.decode(errors="surrogateescape")
        elif node and is_tree(node):
            for leaf in unpack(node.data):
                if leaf.kind == "link":
                    yield f"{change.path}/{leaf.path}", leaf.mark


def _repositories(changes: Iterable[Change], there: Holds) -> list[str]:
    """Folders that got a HEAD or a config and now have both: git runs what such a config says."""
    made = {
        path
        for change in changes
        if change.after is not None
        for path in (change.path, *(inside(change) if is_tree(change.after) else ()))
    }
    found = set()
    for path in made:
        above, _, name = path.rpartition("/")
        other = {"HEAD": "config", "config": "HEAD"}.get(name)
        if other is not None:
            beside = f"{above}/{other}" if above else other
            if beside in made or there(beside):
                found.add(above or ".")
    return sorted(found)


def _below(path: str, refused: Collection[str]) -> bool:
    return path in refused or any(above in refused for above in _above(path))


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _few(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(f"`{path}`" for path in paths[:SHOWN]) + more
