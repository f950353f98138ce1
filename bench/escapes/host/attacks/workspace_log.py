"""The log of a workspace: what a command left, or somebody who writes to the object store, misleads the next host."""

import ctypes
import os
from pathlib import Path

from bench.escapes.host.fleet_sources import (
    HONEST,
    Entry,
    State,
    archive,
    begin_log,
    compressed,
    found_elsewhere,
    host,
    recover,
    segment,
    segment_of_zeros,
)
from bench.escapes.host.place import Place
from handtools import Call

_NEW_MOUNTS, _PRIVATE = 0x00020000, (1 << 14) | (1 << 18)


async def folder_that_became_a_link(place: Place) -> str | None:
    """A tenant's commands make an open folder and later a link in its place; recovery sets the folder's mode.

    The link has to lead to a folder of the system, since others are asked about: only root can have one to lose.
    """
    if os.geteuid() != 0:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    shared = b"/usr/local/games"
    if (
        libc.unshare(_NEW_MOUNTS)
        or libc.mount(None, b"/", None, _PRIVATE, None)
        or libc.mount(b"tmpfs", shared, b"tmpfs", 0, None)
    ):
        return None
    victim = Path(shared.decode(), "victim")
    victim.mkdir()
    victim.chmod(0o700)
    name = await begin_log(place, "mkdir d; chmod 777 d", f"rmdir d; ln -s {victim} d; ls -ld d")
    place.begin()
    said = await recover(place, name)
    mode = victim.stat().st_mode & 0o777
    return said or (None if mode == 0o700 else f"a folder outside has mode {mode:o}")


def _forged(place: Place) -> tuple[tuple[State, ...], ...]:
    out = State("l", "link", 0, str(place.outside).encode())
    up = tuple((State("../" * depth + "evil"),) for depth in range(1, 6))
    return (
        *up,
        (State(f"{place.outside}/evil"),),
        (out, State("l/evil")),
        (out, State("l/evil/y/z", "folder", 0o755)),
        (out, State("l/secret.txt", "gone", 0, b"")),
        (State("../../../../outside/secret.txt", "gone", 0, b""),),
        (State("d", "folder", 0o777, b""), State("d", "link", 0, str(place.outside).encode())),
        (out, State("l", "folder", 0o777, b"")),
        (out, State("l/.", "folder", 0o777, b"")),
        (State("..", "tree", 0o777, b""),),
        (State("a/../..", "folder", 0o777, b""),),
        (State("", "tree", 0o777, b""),),
        (State(".", "gone", 0, b""),),
    )


async def states_that_lead_out(place: Place) -> str | None:
    """Somebody adds segments whose paths go up, are absolute, or lead through a link that an earlier state made."""
    name = await begin_log(place)
    place.begin()
    if found := await recover(place, name, on=HONEST):
        return found
    for number, states in enumerate(_forged(place)):
        found = await recover(place, name, segment(states), on=f"host-{number}")
        if found := found_elsewhere(place, "evil") or found:
            return found
    return None


async def kept_files_that_lead_out(place: Place) -> str | None:
    """The same in the files that are kept beside the journal."""
    name = await begin_log(place)
    place.begin()
    for number, states in enumerate(_forged(place)):
        found = await recover(place, name, segment(kept=states), on=f"host-{number}")
        if found := found_elsewhere(place, "evil") or found:
            return found
    return None


async def modes_of_privilege(place: Place) -> str | None:
    """Somebody adds files that run with the rights of their owner, and kinds that there are not."""
    name = await begin_log(place)
    place.begin()
    odd = (
        State("s", "file", 0o6755),
        State("t", "folder", 0o7777, b""),
        State("u", "file", 1 << 40),
        State("v", "device", 0o666),
    )
    for number, state in enumerate(odd):
        if found := await recover(place, name, segment([state]), on=f"host-{number}"):
            return found
    return None


async def segment_that_unpacks_to_much(place: Place) -> None:
    """A segment of a few kilobytes is more than half a gigabyte when it is unpacked."""
    name = await begin_log(place)
    place.begin()
    await recover(place, name, segment_of_zeros("zeros", 700 << 20))


async def names_that_are_odd(place: Place) -> str | None:
    """Names that are empty, too long, hold a zero byte or no text, or go through a file."""
    name = await begin_log(place)
    place.begin()
    odd = ("", "/", "a\0b", "x" * 300, "/".join(["y" * 200] * 30), "\udcff", "a.txt/b", "./.", "a//b", "\n")
    for number, path in enumerate(odd):
        if found := await recover(place, name, segment([State(path)]), on=f"host-{number}"):
            return found
    return None


async def template_of_the_store_that_is_another(place: Place) -> str | None:
    """The template in the object store is exchanged: its content has another digest than its name."""
    name = await begin_log(place)
    place.begin()
    (template,) = (place.base / "log/templates").iterdir()
    template.write_bytes(compressed(archive(Entry("a.txt", data=b"evil\n"))))
    other = host(place, "second", log="log")
    result = await other.call(name, Call(tool="read", args={"path": "a.txt"}))
    await other.aclose()
    return "a template of another content was taken" if "evil" in result.text else None
