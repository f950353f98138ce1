"""Memory files: a workspace that is a dictionary, under the same contract as one on disk."""

import os
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from handtools.core.changes import Change, Held, Node
from handtools.core.errors import (
    InvalidInput,
    NotFound,
    OutsideWorkspace,
    Stale,
    UsageError,
    WrongKind,
)
from handtools.core.ports import FileFacts, Step
from handtools.core.trees import leaf, tree
from handtools.host.resolving import redirected
from handtools.host.staging import is_temporary, temporary_name
from handtools.text.paths import BadPath, relative

ROOT = "/workspace"
"""What an absolute path below the workspace starts with."""
LINK_LIMIT = 40
_MODES = {"file": 0o644, "folder": 0o755, "link": 0o777}
_PRIVILEGE = 0o6000


class MemoryVault:
    """Things by their ref; each as nodes by the path below it."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Node]] = {}

    def has(self, ref: str) -> bool:
        """Whether the thing is here."""
        return ref in self.things

    def read(self, ref: str, most: int) -> bytes | None:
        """The bytes of a file that is here."""
        node = self.things.get(ref, {}).get("")
        return node.data if node and node.kind == "file" and len(node.data) <= most else None

    def drop(self, ref: str, *, erase: bool = False) -> None:  # noqa: ARG002
        """Let go of a thing."""
        self.things.pop(ref, None)

    def clear(self, name: str) -> None:
        """Nothing is left over here."""

    def tidy(self, wanted: Collection[str]) -> list[str]:
        """Remove what the record does not name."""
        for ref in [ref for ref in self.things if ref.partition("/")[0] not in wanted]:
            del self.things[ref]
        return []


class MemoryFiles:
    """Files in memory. Give bytes by path, or nodes for links, folders and modes; parents are made."""

    def __init__(self, files: Mapping[str, bytes | Node] | None = None) -> None:
        self._lock = threading.RLock()
        self._nodes: dict[str, Node] = {"": Node("folder", mode=_MODES["folder"])}
        self._modified: dict[str, float] = {}
        self.vault = MemoryVault()
        for path, content in (files or {}).items():
            node = Node("file", content) if isinstance(content, bytes) else content
            parts = _exact(path).split("/")
            for depth in range(1, len(parts)):
                self._nodes.setdefault("/".join(parts[:depth]), Node("folder", mode=0o755))
            self._put("/".join(parts), node)

    @property
    def quick(self) -> bool:
        """Memory needs no thread."""
        return True

    @property
    def files(self) -> dict[str, bytes]:
        """The bytes of every regular file."""
        with self._lock:
            return {path: node.data for path, node in self._nodes.items() if node.kind == "file"}

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """The bytes of a regular file, or a part of them."""
        if start < 0 or (size is not None and size < 0):
            raise InvalidInput("`start` and `size` can't be negative.", hint="Count from 0.")
        with self._lock:
            node = self._nodes.get(self._straight(_exact(path)))
        if node is None:
            raise _nothing(path)
        if node.kind != "file":
            raise WrongKind(f"`{path}` is a folder, not a file.", hint="Look into it with `list`.")
        return node.data[start : None if size is None else start + size]

    def facts(self, path: str) -> FileFacts | None:
        """What is at a located path; None when nothing is."""
        inside = _exact(path)
        with self._lock:
            return self._facts(inside or ".", self._straight(inside))

    def names(self, path: str) -> list[FileFacts]:
        """What a folder holds, by name, links not followed."""
        inside = _exact(path)
        with self._lock:
            real = self._straight(inside)
            node = self._nodes.get(real)
            if node is None:
                raise _nothing(path)
            if node.kind != "folder":
                raise WrongKind(f"`{path}` is not a folder.", hint="Read it instead.")
            prefix = f"{inside}/" if inside else ""
            found = [
                self._facts(prefix + child.rpartition("/")[2], child)
                for child in sorted(self._children(real))
            ]
        return [facts for facts in found if facts]

    def node(self, path: str, *, like: Node | None = None) -> Node | None:
        """What is at the path itself, with its bytes and mode; links are not followed."""
        with self._lock:
            real = self._straight(_exact(path), end=False)
            node = self._nodes.get(real)
            if node and like and like.held:
                return self._held(real, node, like.held)
        return Node("link", node.data) if node and node.kind == "link" else node

    def moved(self, path: str) -> str | None:
        """Memory has no history."""
        _exact(path)
        return None

    def writable(self, path: str) -> bool:
        """Whether the owner may write to what is there."""
        node = self.node(path)
        return node is None or node.mode is None or bool(node.mode & 0o200)

    def locate(self, path: str) -> str:
        """The path with inner links resolved; it need not exist."""
        with self._lock:
            return self._resolve(_relative(path)) or "."

    def plan(self, changes: Iterable[Change]) -> list[Step]:
        """Name the temporary of each step; touches nothing."""
        return [Step(change, temporary_name()) for change in changes]

    def perform(self, steps: Sequence[Step]) -> None:
        """Do all steps or none: each only if `before` is still there."""
        with self._lock:
            saved, modified = dict(self._nodes), dict(self._modified)
            kept = dict(self.vault.things)
            try:
                for step in steps:
                    self._do(step)
            except BaseException:
                self._nodes, self._modified, self.vault.things = saved, modified, kept
                raise

    def sweep(self, step: Step) -> str | None:
        """Nothing is ever left here: a crash takes all of it."""
        _checked(step)
        return None

    def _do(self, step: Step) -> None:
        change, path = step.change, _checked(step)
        parent = path.rpartition("/")[0]
        holder = self._nodes.get(self._straight(parent))
        if holder is None or holder.kind != "folder":
            message = f"There is no folder `{parent}`; nothing was written."
            raise NotFound(message, hint="Create it first.")
        real = path
        now = self._nodes.get(real)
        if now and change.before and change.before.held:
            now = self._held(real, now, change.before.held)
        same = now is None if change.before is None else change.before.same(now)
        both_folders = change.before and change.after and change.after.kind == "folder"
        whole = change.before and change.before.held
        if now and now.kind == "folder" and not both_folders and not whole and any(self._children(real)):
            same = False
        if not same:
            raise Stale(
                f"`{path}` is no longer what this change was based on; nothing was written.",
                hint="Read it again and redo the change.",
            )
        if change.before and change.before.held:
            self.vault.things[change.before.held.ref] = self._lift(real)
        if change.after and change.after.held and change.after.moved:
            for below, node in self.vault.things.pop(change.after.held.ref).items():
                self._nodes[real + below] = node
        else:
            self._put(real, change.after)

    def _held(self, real: str, node: Node, like: Held) -> Node:
        """What is at a path, seen as something held."""
        if node.kind != "folder":
            held = Held(like.ref, node.digest, len(node.data) if node.kind == "file" else 0)
            return Node(node.kind, node.data, node.mode if node.kind == "file" else None, held)
        below = {
            path.removeprefix(f"{real}/"): it
            for path, it in self._nodes.items()
            if path.startswith(f"{real}/")
        }
        return tree([leaf(path, it) for path, it in below.items()], mode=node.mode or 0, ref=like.ref)

    def _lift(self, real: str) -> dict[str, Node]:
        """Take a thing out, with everything below it."""
        paths = [path for path in self._nodes if path == real or path.startswith(f"{real}/")]
        return {path.removeprefix(real): self._nodes.pop(path) for path in paths}

    def _put(self, path: str, node: Node | None) -> None:
        old = self._nodes.pop(path, None)
        self._modified[path] = time.time()
        if node is None:
            return
        mode = node.mode
        if mode is None:
            alike = old is not None and old.kind == node.kind
            mode = old.mode if old and alike else _MODES[node.kind]
        elif node.kind == "file":
            kept = (old.mode or 0) & _PRIVILEGE if old else 0
            mode = mode & ~_PRIVILEGE | mode & kept
        self._nodes[path] = Node(node.kind, node.data, mode)

    def _facts(self, shown: str, path: str) -> FileFacts | None:
        node = self._nodes.get(path)
        if node is None:
            return None
        modified = self._modified.get(path, 0.0)
        return FileFacts(shown, node.kind, len(node.data), node.mode or 0, modified)

    def _children(self, folder: str) -> list[str]:
        return [path for path in self._nodes if path and path.rpartition("/")[0] == folder]

    def _straight(self, path: str, *, end: bool = True) -> str:
        """A located path as it is; a link on its way is refused, and one at its `end`."""
        parts = path.split("/")
        for depth in range(1, len(parts) + end):
            node = self._nodes.get("/".join(parts[:depth]))
            if node is not None and node.kind == "link":
                raise redirected(path)
        return path

    def _resolve(self, path: str) -> str:
        """Where a path leads, every link followed; nothing need be there."""
        names: list[str] = []
        todo = deque(_parts(path))
        links = 0
        while todo:
            part = todo.popleft()
            if part == "..":
                if not names:
                    raise _outside(path)
                names.pop()
                continue
            here = "/".join([*names, part])
            node = self._nodes.get(here)
            if node is not None and node.kind == "link":
                links += 1
                target = os.fsdecode(node.data)
                if links > LINK_LIMIT or (target.startswith("/") and not _below_root(target)):
                    raise _outside(path)
                if target.startswith("/"):
                    names, target = [], target.removeprefix(ROOT)
                todo.extendleft(reversed(_parts(target)))
                continue
            if todo and (node is None or node.kind != "folder"):
                if node is None and ".." not in todo:
                    return "/".join([*names, part, *todo])
                raise _nothing(path)
            names.append(part)
        return "/".join(names)


def _checked(step: Step) -> str:
    path = _exact(step.change.path)
    if not path or not is_temporary(step.temporary):
        raise UsageError("A step has a path below the workspace and a name given by `plan`.")
    return path


def _relative(path: str) -> str:
    try:
        inside = relative(path, ROOT)
    except BadPath as problem:
        message = f"`{path[:200]}` {problem.reason}."
        raise OutsideWorkspace(message, hint=problem.hint) from None
    return "" if inside == "." else inside


def _exact(path: str) -> str:
    odd = {"", ".", ".."}.intersection(path.split("/"))
    return _relative(path) if odd or "\0" in path else path


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _below_root(target: str) -> bool:
    return target == ROOT or target.startswith(f"{ROOT}/")


def _nothing(path: str) -> NotFound:
    return NotFound(f"There is nothing at `{path}`.", hint="List the folder to see its names.")


def _outside(path: str) -> OutsideWorkspace:
    return OutsideWorkspace(
        f"`{path}` leads outside the workspace.", hint="Use a path inside the workspace."
    )
