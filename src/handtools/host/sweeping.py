"""Sweeping: after a crash, put away what a step left beside its target."""

import os

from handtools.core.changes import Node
from handtools.core.errors import Busy
from handtools.host.folders import kind_of
from handtools.host.handles import Place
from handtools.host.placing import discard, give_back, recover
from handtools.host.watching import Watched, holds


def sweep(place: Place, before: Node | None, after: Node | None) -> str | None:
    """Remove the temporary if its bytes are on record, else bring them back into sight and say so."""
    folder, _, temporary = place.parts
    if folder.find(temporary) is None:
        return None
    note = None
    # A recovery that was itself cut short leaves the beginning of the old bytes.
    if any(_on_record(place, node) or _unfinished(place, node) for node in (before, after)):
        if not discard(place):
            note = recover(place)
    elif before is None:
        note = recover(place)
    else:
        # Another writer's, displaced just before the crash: it gets its name back if that still holds only ours.
        note = give_back(place, before, after)
    folder.sync()
    return note


def _on_record(place: Place, node: Node | None) -> bool:
    if node is None:
        return False
    try:
        same = Watched.take(place.folder, place.temporary, Node(node.kind, node.data))
    except Busy:
        return False
    if same is not None:
        same.close()
    return same is not None


def _unfinished(place: Place, node: Node | None) -> bool:
    """Whether the temporary is what a cut-off write of the node leaves."""
    found = place.folder.stat(place.temporary)
    if node is None or node.kind != "file" or kind_of(found.st_mode) != "file":
        return False
    fd = place.folder.open_file(place.temporary)
    try:
        return holds(fd, node.data[: found.st_size])
    finally:
        os.close(fd)
