"""Marking: tell whether a thing is still the same without keeping its bytes."""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping

from handtools.core.changes import Held, Node, digest
from handtools.core.trees import Leaf, tree, unpack
from handtools.host.folders import Folder, kind_of
from handtools.host.subtrees import everything_below

HASHED_BYTES = 256 << 10
"""Files up to this size are told by their bytes, larger ones by size and time."""
KNOWN_BYTES = 64 << 10
"""Files up to this size are read along, so that they can be shown and merged."""
_SEEN = "stat:"
_CHUNK_BYTES = 1 << 20


def seen_mark(found: os.stat_result) -> str:
    """The mark of a file by what a look from outside shows."""
    return f"{_SEEN}{found.st_size}-{found.st_mtime_ns}"


def coming_mark(size: int) -> str:
    """The mark that a file yet to be written will have: its time is given to it."""
    return f"{_SEEN}{size}-{time.time_ns()}"


def marked_time(mark: str) -> int:
    """The time, in nanoseconds, of a file with a mark by a look from outside."""
    return int(mark.rpartition("-")[2])


def is_seen(mark: str) -> bool:
    """Whether a mark was made by a look from outside."""
    return mark.startswith(_SEEN)


def file_mark(fd: int, found: os.stat_result, *, like: str = "") -> str:
    """The mark of an open file, made the same way as another mark was."""
    if like.startswith(_SEEN) or (not like and found.st_size > HASHED_BYTES):
        return seen_mark(found)
    return content_mark(fd)


def content_mark(fd: int) -> str:
    """The digest of an open file, a piece at a time."""
    seen = hashlib.sha256()
    start = 0
    while part := os.pread(fd, _CHUNK_BYTES, start):
        seen.update(part)
        start += len(part)
    return seen.hexdigest()


def look(folder: Folder, name: str, *, like: Node) -> Node | None:
    """What is at a name, seen as something held like `like`; None when nothing is."""
    found = folder.find(name)
    if found is None:
        return None
    kind, mode = kind_of(found.st_mode), stat.S_IMODE(found.st_mode)
    if kind == "folder":
        if like.kind != "folder" or like.held is None:
            return Node("folder", mode=mode)
        marks = {leaf.path: leaf.mark for leaf in unpack(like.data)}
        return tree(list(leaves(folder, name, marks)), mode=mode, ref=like.held.ref)
    if kind == "link":
        target = folder.link_target(name)
        return Node("link", target, None, like.held and Held(like.held.ref, digest(target), 0))
    return _file(folder, name, like) if kind == "file" else Node("folder")


def _file(folder: Folder, name: str, like: Node) -> Node:
    ref = like.held.ref if like.held else ""
    try:
        fd = folder.open_file(name)
    except PermissionError:
        found = folder.stat(name)
        held = Held(ref, seen_mark(found), found.st_size)
        return Node("file", b"", stat.S_IMODE(found.st_mode), held)
    try:
        found = os.fstat(fd)
        wanted = like.held.mark if like.held and like.kind == "file" else ""
        data = os.pread(fd, KNOWN_BYTES, 0) if found.st_size <= KNOWN_BYTES else b""
        mark = digest(data) if data and not wanted.startswith(_SEEN) else file_mark(fd, found, like=wanted)
        held = Held(ref, mark, found.st_size)
        if like.held and _may_be_alike(like.held, held):
            held = Held(ref, mark, found.st_size, content=content_mark(fd))
        return Node("file", data, stat.S_IMODE(found.st_mode), held)
    finally:
        os.close(fd)


def _may_be_alike(held: Held, found: Held) -> bool:
    """Whether only the bytes can tell: written since, and of the same size."""
    return bool(held.content) and held.mark != found.mark and held.bytes == found.bytes


def leaves(folder: Folder, name: str, marks: Mapping[str, str]) -> Iterator[Leaf]:
    """Everything below a folder; files are marked as `marks` has them, and new ones by a look."""
    with folder.child(name) as top:
        for path, inside, own, facts in everything_below(top):
            kind, mode = kind_of(facts.st_mode), stat.S_IMODE(facts.st_mode)
            if kind == "folder":
                yield Leaf(path, "folder", mode, "", 0)
            elif kind == "link":
                yield Leaf(path, "link", 0, os.fsdecode(inside.link_target(own)), 0)
            elif kind == "file":
                mark = marks.get(path, _SEEN)
                yield Leaf(path, "file", mode, _marked(inside, own, facts, mark), facts.st_size)
            else:
                yield Leaf(path, "file", mode, "special", 0)


def _marked(folder: Folder, name: str, found: os.stat_result, like: str) -> str:
    if like.startswith(_SEEN):
        return seen_mark(found)
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(folder.name(name), flags, dir_fd=folder.fd)
        try:
            return file_mark(fd, found, like=like)
        finally:
            os.close(fd)
    return "unreadable"
