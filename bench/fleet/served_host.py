"""A host in a process of its own, with its own table of mounts: `python -m bench.fleet.served_host FOLDER OPEN`.

It serves on `FOLDER/socket`. On one machine several such hosts are compared; each sees the mounts that it made and
not those of the others, as if it were alone.
"""

import asyncio
import ctypes
import sys

from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspace_slots import HostLimits
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy

TOKEN = "bench"
RUNNING, WAITING = 32, 64
_NEW_MOUNTS, _RECURSIVE_PRIVATE = 0x20000, 0x44000


def _leave_the_mounts_of_others() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) or libc.mount(b"none", b"/", None, _RECURSIVE_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mounts of its own")


async def serve(folder: str, most_open: int) -> None:
    """Serve until standard input ends."""
    turns = TurnLimits(running=RUNNING, waiting=WAITING, workspace_waiting=WAITING)
    limits = HostLimits(slots=10_000, open=most_open, idle_seconds=3600.0, turns=turns)
    host = WorkspaceHost(WorkspaceStore(folder), limits=limits, policy=Policy(defaults={"run": "allow"}))
    server = HostServer(host, {TOKEN: ""})
    print(await server.start(f"unix:{folder}/socket"), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.aclose()
    await host.aclose()


if __name__ == "__main__":
    _leave_the_mounts_of_others()
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
