"""Landing: all steps of a transaction or none of them.

New files are made beside their targets and are durable before any target changes; then the targets are compared
and held, and change places with the new files; then the folders are made durable. Only after a last look at what
was displaced is it removed: the lease has been held all that time, so a writer who had found the old file by name
just before it was displaced is seen as well. Any failure takes the earlier steps back, in reverse.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from handtools.core.errors import NotFound, ToolError
from handtools.core.ports import Step
from handtools.host.faults import fault
from handtools.host.folders import Folder
from handtools.host.handles import Handles, Place
from handtools.host.moves import Making, Move, Permitting, Removing, stale
from handtools.host.placing import Placing, Replacing
from handtools.host.vault import Vault

_UNTOUCHED = re.compile(r"; nothing was written(?=\.)| Nothing was changed\.")
"""What faults say of a transaction that was taken back whole."""
WATCH_LIMIT = 64
"""Files held at once; the rest of a large transaction is compared twice instead."""


def land(steps: Sequence[Step], open_folder: Callable[[str], Folder], vault: Vault | None = None) -> None:
    """Do all steps or none."""
    handles = Handles(open_folder)
    moves = _moves(steps, handles, vault)
    begun: list[Move] = []
    try:
        for move in moves:
            _enter(move.place)
            begun.append(move)
            _do(move, move.begin)
            if len(begun) > WATCH_LIMIT:
                move.release()
        _change(moves, handles)
    except ToolError as error:
        left = _take_back(begun)
        if left:
            # What could not be put back has changed after all, or is another program's by now.
            error.message = _UNTOUCHED.sub("", error.message)
        error.hint = " ".join([error.hint, *left]).strip()
        raise
    except BaseException:
        _take_back(begun)
        raise
    finally:
        handles.close()


def _change(moves: Sequence[Move], handles: Handles) -> None:
    for move in moves[:WATCH_LIMIT]:
        _do(move, move.watch)
    for number, move in enumerate(moves):
        _do(move, move.land)
        if number >= WATCH_LIMIT:
            move.release()
    _sync(moves, handles)
    for move in moves:
        _do(move, move.confirm)
    for move in moves:
        _do(move, move.settle)
    for move in reversed(moves):
        _do(move, move.seal)
    if any(isinstance(move, Removing | Replacing) for move in moves):
        _sync(moves, handles)


def _moves(steps: Sequence[Step], handles: Handles, vault: Vault | None) -> list[Move]:
    leaving: defaultdict[str, set[str]] = defaultdict(set)
    for step in steps if len(steps) > 1 else ():
        parent, _, name = step.change.path.rpartition("/")
        leaving[parent] |= {name, step.temporary}
    places = [Place(handles, step.change.path, step.temporary, vault) for step in steps]
    return [_move(step, place, leaving) for step, place in zip(steps, places, strict=True)]


def _move(step: Step, place: Place, leaving: dict[str, set[str]]) -> Move:
    before, after = step.change.before, step.change.after
    if before is None or before.kind != "folder" or before.held:
        if before is None and after is not None and after.kind == "folder" and not after.held:
            return Making(place, after)
        return Placing(place, before, after)
    if after is not None and after.kind == "folder" and not after.held:
        return Permitting(place, before, after)
    removing = Removing(place, before, leaving[place.path])
    return Replacing(removing, Placing(place, None, after)) if after else removing


def _enter(place: Place) -> None:
    try:
        place.folder  # noqa: B018 — opened here, where a missing folder can be named
    except FileNotFoundError:
        raise NotFound(
            f"There is no folder `{place.parent}`; nothing was written.", hint="Create it first."
        ) from None
    except OSError as error:
        raise fault(error, place.parent) from error


def _do(move: Move, act: Callable[[], None]) -> None:
    try:
        act()
    except FileNotFoundError as error:
        raise stale(move.place) from error
    except OSError as error:
        raise fault(error, move.place.path) from error


def _sync(moves: Sequence[Move], handles: Handles) -> None:
    try:
        handles.sync()
    except OSError as error:
        raise fault(error, moves[0].place.path) from error


def _take_back(begun: Sequence[Move]) -> list[str]:
    kept = []
    for move in reversed(begun):
        try:
            note = move.take_back()
        except OSError as error:
            note = f"`{move.place.path}` could not be put back: {error.strerror}."
        if note:
            kept.append(note)
    return kept
