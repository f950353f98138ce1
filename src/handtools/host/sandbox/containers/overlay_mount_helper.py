"""A helper process, run as root, that mounts an overlay over the workspace inside a running container.

It mounts in its own mount namespace, where it sees the host's paths, and moves the finished tree into the
container's namespace. Other processes never see the mount, and it disappears with the container.
"""

import contextlib
import ctypes
import os
import socket
from collections.abc import Sequence
from typing import Any

from handtools.core.errors import HostError
from handtools.host.programs import start_python, wait_or_kill
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message

_OPEN_TREE, _MOVE_MOUNT = 428, 429
_OPEN_TREE_CLONE, _AT_RECURSIVE, _MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 0x1, 0x8000, 0x4, 0x40
_CLONE_NEWNS, _MNT_DETACH = 0x20000, 2
_CALL_SECONDS = 20.0


class OverlayMounter:
    """Our handle to the helper process that mounts overlays in one container."""

    def __init__(self, pid: int, root: str) -> None:
        self._line, theirs = socket.socketpair()
        self._line.settimeout(_CALL_SECONDS)
        with theirs:
            self._process = start_python(
                "handtools.host.sandbox.containers.overlay_mount_helper",
                [str(theirs.fileno()), str(pid), root],
                pass_fds=(theirs.fileno(),),
            )

    def lay(self, mounts: Sequence[Sequence[Any]]) -> None:
        """Have the helper make these mounts over the workspace in the container."""
        self._ask({"order": "lay", "mounts": list(mounts)})

    def lift(self) -> None:
        """Have the helper unmount the overlay."""
        self._ask({"order": "lift"})

    def close(self) -> None:
        """Stop the helper process."""
        self._line.close()
        wait_or_kill(self._process, _CALL_SECONDS)

    def _ask(self, message: dict[str, Any]) -> None:
        try:
            send_message(self._line, message)
            answer, _ = receive_message_and_fds(self._line)
        except PeerGone:
            answer = {"refused": "the mount helper process has exited"}
        if "refused" in answer:
            raise HostError(f"Can't mount an overlay in the container: {answer['refused']}.")


_LIBC = ctypes.CDLL(None, use_errno=True)


class _MounterProcess:
    """The code in the helper process; single-threaded, otherwise it couldn't change namespaces."""

    def __init__(self, pid: int, root: str) -> None:
        self._root = root.encode()
        self._theirs = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        _checked_result(_LIBC.unshare(_CLONE_NEWNS))
        self._ours = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        # Open the workspace as the engine mounted it, before the first command: paths inside may change
        # later.
        self._enter_namespace(self._theirs)
        self._place = os.open(root, os.O_PATH | os.O_CLOEXEC)
        self._enter_namespace(self._ours)
        self._tree = -1

    def lay(self, mounts: Sequence[Sequence[Any]]) -> None:
        try:
            for source, target, kind, flags, options in mounts:
                words = (source.encode(), target.encode(), kind.encode() or None)
                _checked_result(_LIBC.mount(*words, ctypes.c_ulong(flags), options.encode() or None))
            flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
            self._tree = _checked_result(_LIBC.syscall(_OPEN_TREE, -100, self._root, flags))
        finally:
            _LIBC.umount2(self._root, _MNT_DETACH)
        self._enter_namespace(self._theirs)
        try:
            how = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
            _checked_result(_LIBC.syscall(_MOVE_MOUNT, self._tree, b"", self._place, b"", how))
        finally:
            self._enter_namespace(self._ours)

    def lift(self) -> None:
        self._enter_namespace(self._theirs)
        try:
            os.fchdir(self._tree)
            _checked_result(_LIBC.umount2(b".", _MNT_DETACH))
        finally:
            self._enter_namespace(self._ours)
            os.close(self._tree)

    def _enter_namespace(self, namespace: int) -> None:
        _checked_result(_LIBC.setns(namespace, _CLONE_NEWNS))
        os.chdir("/")


def _checked_result(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def main(line: str, pid: str, root: str) -> None:
    """Entry point of the helper process: serves mount requests until the client closes the connection."""
    with socket.socket(fileno=int(line)) as ours, contextlib.suppress(PeerGone):
        try:
            mounter = _MounterProcess(int(pid), root)
        except OSError as error:
            receive_message_and_fds(ours)
            send_message(ours, {"refused": str(error)})
            return
        while True:
            message, _ = receive_message_and_fds(ours)
            try:
                if message["order"] == "lay":
                    mounter.lay(message["mounts"])
                else:
                    mounter.lift()
                send_message(ours, {})
            except OSError as error:
                send_message(ours, {"refused": str(error)})
