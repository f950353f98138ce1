"""Sweeping: after a crash, put away what a step left beside its target."""

import os

from handtools.core.changes import Node
from handtools.core.errors import Busy
from handtools.host.folders import kind_of
from handtools.host.handles import Place
from handtools.host.placing import discard, give_back, put_back, recover
from handtools.host.watching import Watched, holds


def sweep(place: Place, before: Node | None, after: Node | None) -> str | None:
    """Remove the temporary if its bytes are on record, else bring them back into sight and say so."""
    folder, _, temporary = place.parts
    if folder.find(temporary) is None:
        return None
    note = None
    known = next((node for node in (before, after) if _on_record(place, node)), None)
    if known is not None and known.held:
        put_back(place, known)
    elif known or any(_unfinished(place, node) for node in (before, after)) or _cut(place, before, after):
        if not discard(place):
            note = recover(place)
    elif place.is_copy(after) or place.is_copy(before):
        place.remove_temporary()
    elif before is None:
        note = recover(place)
    else:
        # Another writer's, displaced just before the crash: it gets its name back if that still holds only ours.
        note = give_back(place, before, after)
    folder.sync()
    return note


def _on_record(place: Place, node: Node | None) -> bool:
    return node is not None and _is_at(place, place.temporary, node)


def _is_at(place: Place, name: str, node: Node) -> bool:
    try:
        # What is held keeps its mode, which may be all that tells the old from the new.
        alike = node if node.held else Node(node.kind, node.data)
        same = Watched.take(place.folder, name, alike)
    except Busy:
        return False
    if same is not None:
        same.close()
    return same is not None


def _unfinished(place: Place, node: Node | None) -> bool:
    """Whether the temporary is what a cut-off write of the node leaves; of the old bytes, a cut-off recovery."""
    found = place.folder.stat(place.temporary)
    if node is None or node.held or node.kind != "file" or kind_of(found.st_mode) != "file":
        return False
    fd = place.folder.open_file(place.temporary)
    try:
        return holds(fd, node.data[: found.st_size])
    finally:
        os.close(fd)


def _cut(place: Place, before: Node | None, after: Node | None) -> bool:
    """Whether the temporary can only be a large file that was being written: too short, and nothing had landed."""
    if after is None or after.held is None or after.kind != "file":
        return False
    found = place.folder.stat(place.temporary)
    if kind_of(found.st_mode) != "file" or found.st_size >= after.held.bytes:
        return False
    if before is None:
        return place.folder.find(place.name) is None
    return _is_at(place, place.name, before)
