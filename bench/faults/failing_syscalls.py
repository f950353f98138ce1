"""System calls of a forked child that fail on demand, decided by its parent: seccomp's user notification.

The child asks the kernel to hold each of its file calls until the parent has answered: go on, or fail with an
errno, or write only a half. So it is the call itself that fails, whoever makes it: our code, Python or SQLite.
Nothing is preloaded and nothing is traced. Needs Linux 5.7 on x86-64. decision 12.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench.children import drained, run_child
from handtools.host.sandbox.runners.seccomp import AUDIT_ARCHITECTURES

MARKS = "/handtools-faults/"
ARM, DISARM = f"{MARKS}arm", f"{MARKS}disarm"
"""Links that are never there: a child that reads one says that its calls are counted from here, or no more."""
MAX_SECONDS = 90.0
Where = Literal["fd", "path", "at"]


class Kind(NamedTuple):
    """A system call: its number, how it names a file, which argument does, and what may happen to it."""

    number: int
    where: Where
    argument: int
    faults: frozenset[str]


_EVERY = frozenset({"EIO"})
_GROWING = _EVERY | {"ENOSPC"}
_OPENING = _GROWING | {"EMFILE", "EINTR"}
_READING = _EVERY | {"EINTR", "short"}
_WRITING = _GROWING | {"EINTR", "short"}
_SYNCING = _GROWING | {"EINTR"}
KINDS = {
    "read": Kind(0, "fd", 0, _READING),
    "write": Kind(1, "fd", 0, _WRITING),
    "open": Kind(2, "path", 0, _OPENING),
    "stat": Kind(4, "path", 0, _EVERY),
    "fstat": Kind(5, "fd", 0, _EVERY),
    "lstat": Kind(6, "path", 0, _EVERY),
    "lseek": Kind(8, "fd", 0, _EVERY),
    "mmap": Kind(9, "fd", 4, frozenset({"ENOMEM"})),
    "pread64": Kind(17, "fd", 0, _READING),
    "pwrite64": Kind(18, "fd", 0, _WRITING),
    "sendfile": Kind(40, "fd", 0, _WRITING - {"short"}),
    "access": Kind(21, "path", 0, _EVERY),
    "fcntl": Kind(72, "fd", 0, _EVERY),
    "flock": Kind(73, "fd", 0, _EVERY | {"EINTR"}),
    "fsync": Kind(74, "fd", 0, _SYNCING),
    "fdatasync": Kind(75, "fd", 0, _SYNCING),
    "truncate": Kind(76, "path", 0, _GROWING),
    "ftruncate": Kind(77, "fd", 0, _GROWING | {"EINTR"}),
    "rename": Kind(82, "path", 0, _GROWING),
    "mkdir": Kind(83, "path", 0, _GROWING),
    "rmdir": Kind(84, "path", 0, _EVERY),
    "creat": Kind(85, "path", 0, _OPENING),
    "link": Kind(86, "path", 1, _GROWING),
    "unlink": Kind(87, "path", 0, _EVERY),
    "symlink": Kind(88, "path", 1, _GROWING),
    "readlink": Kind(89, "path", 0, _EVERY),
    "chmod": Kind(90, "path", 0, _EVERY),
    "fchmod": Kind(91, "fd", 0, _EVERY),
    "chown": Kind(92, "path", 0, _EVERY),
    "fchown": Kind(93, "fd", 0, _EVERY),
    "lchown": Kind(94, "path", 0, _EVERY),
    "statfs": Kind(137, "path", 0, _EVERY),
    "fstatfs": Kind(138, "fd", 0, _EVERY),
    "mount": Kind(165, "path", 1, _EVERY),
    "umount2": Kind(166, "path", 0, _EVERY),
    "setxattr": Kind(188, "path", 0, _GROWING),
    "lsetxattr": Kind(189, "path", 0, _GROWING),
    "fsetxattr": Kind(190, "fd", 0, _GROWING),
    "getxattr": Kind(191, "path", 0, _EVERY),
    "lgetxattr": Kind(192, "path", 0, _EVERY),
    "fgetxattr": Kind(193, "fd", 0, _EVERY),
    "listxattr": Kind(194, "path", 0, _EVERY),
    "llistxattr": Kind(195, "path", 0, _EVERY),
    "flistxattr": Kind(196, "fd", 0, _EVERY),
    "getdents64": Kind(217, "fd", 0, _EVERY),
    "openat": Kind(257, "at", 0, _OPENING),
    "mkdirat": Kind(258, "at", 0, _GROWING),
    "fchownat": Kind(260, "at", 0, _EVERY),
    "newfstatat": Kind(262, "at", 0, _EVERY),
    "unlinkat": Kind(263, "at", 0, _EVERY),
    "renameat": Kind(264, "at", 0, _GROWING),
    "linkat": Kind(265, "at", 2, _GROWING),
    "symlinkat": Kind(266, "at", 1, _GROWING),
    "readlinkat": Kind(267, "at", 0, _EVERY),
    "fchmodat": Kind(268, "at", 0, _EVERY),
    "faccessat": Kind(269, "at", 0, _EVERY),
    "utimensat": Kind(280, "at", 0, _EVERY),
    "fallocate": Kind(285, "fd", 0, _GROWING | {"EINTR"}),
    "renameat2": Kind(316, "at", 0, _GROWING),
    "copy_file_range": Kind(326, "fd", 2, _GROWING),
    "statx": Kind(332, "at", 0, _EVERY),
    "openat2": Kind(437, "at", 0, _OPENING),
    "faccessat2": Kind(439, "at", 0, _EVERY),
    "fchmodat2": Kind(452, "at", 0, _EVERY),
}
"""All that work on files, but `close`: a call that is failed does not happen, and Linux closes in any case."""
LOCKING = {"fcntl", "flock"}
"""Locks are in the kernel's memory: they fail once, and work on a disk that fails for good."""
_BY_NUMBER = {kind.number: name for name, kind in KINDS.items()}
_CREATE = os.O_CREAT
_DUPLICATING = {fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC}
_LARGEST_PATH = 4096

_SECCOMP, _PIDFD_GETFD, _NO_NEW_PRIVILEGES = 317, 438, 38
_SET_FILTER, _ALL_THREADS, _NEW_LISTENER, _ALL_OR_ERROR = 1, 1, 8, 16
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND, _SET_FLAGS, _TAKE_TURNS = 0xC0502100, 0xC0182101, 0x40082104, 1
_NOTIFICATION, _ANSWER = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_GO_ON = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to which call: the first one from `index` on that it can happen to."""

    index: int
    what: str
    stays: bool = False
    """Whether it happens to all such calls from there on, as on a disk that is full and stays full."""


@dataclass(slots=True)
class Observed:
    """What a child did while its calls were counted, and what it had to say."""

    calls: list[tuple[str, str, frozenset[str]]]
    """Name and path of each counted call, and what could happen to it."""
    failed: list[str]
    """The calls that the fault happened to."""
    report: bytes = b""
    hung: bool = False


class HeldCall(NamedTuple):
    """A call of the child that is about to happen: its arguments, and how to read the child's memory and paths."""

    name: str
    path: str
    arguments: list[int]
    child: int
    memory: int
    path_of: Callable[[Kind], str]
    """Returns the path that an argument of the call names."""


def run_with_fault(
    action: Callable[[], bytes],
    below: str,
    fault: Fault | None,
    note: Callable[[HeldCall], None] | None = None,
) -> Observed:
    """Fork, run an action, and let calls on files below a folder fail; an action reports with its bytes.

    The child calls `hold_calls` when its preparations are done, then reads ARM and DISARM around what is counted.
    Each counted call is passed to `note` before it happens, and so is every link below MARKS that the child reads.
    """
    ours, theirs = socket.socketpair()
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        ours.close()
        os.close(told)
        os.environ[_SOCKET] = str(theirs.fileno())
        run_child(lambda: os.write(tell, action()))
    theirs.close()
    os.close(tell)
    watch = _Watch(child, os.fsencode(below), fault, note)
    try:
        with ours:
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        if fds:
            watch.answer_until_end(fds[0], told)
        watch.observed.report += drained(told)
    finally:
        os.waitpid(child, 0)
    return watch.observed


_SOCKET = "HANDTOOLS_FAULTS_SOCKET"


def hold_calls() -> None:
    """In the child: from here on, the parent is asked about every call on files, of all threads."""
    library = ctypes.CDLL(None, use_errno=True)
    numbers = sorted(_BY_NUMBER)
    program = struct.pack("HBBI", _LOAD, 0, 0, 4)
    program += struct.pack("HBBI", _EQUAL, 1, 0, AUDIT_ARCHITECTURES["x86_64"])
    program += struct.pack("HBBI", _RETURN, 0, 0, _ALLOW) + struct.pack("HBBI", _LOAD, 0, 0, 0)
    for place, number in enumerate(numbers):
        program += struct.pack("HBBI", _EQUAL, len(numbers) - place, 0, number)
    program += struct.pack("HBBI", _RETURN, 0, 0, _ALLOW) + struct.pack("HBBI", _RETURN, 0, 0, _ASK)
    kept = ctypes.create_string_buffer(program)
    filter_program = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(kept))
    if os.geteuid() and library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter without privileges")
    flags = _ALL_THREADS | _NEW_LISTENER | _ALL_OR_ERROR
    listener = library.syscall(_SECCOMP, _SET_FILTER, flags, ctypes.c_char_p(filter_program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with socket.socket(fileno=int(os.environ[_SOCKET])) as parent:
        socket.send_fds(parent, [b"x"], [listener])
    os.close(listener)


def mark(moment: str) -> None:
    """In the child: say ARM or DISARM."""
    try:
        os.readlink(moment)
    except OSError:
        return


class _Watch:
    """The parent's side: answers the calls of one child."""

    def __init__(
        self, child: int, below: bytes, fault: Fault | None, note: Callable[[HeldCall], None] | None
    ) -> None:
        self._child, self._below, self._fault, self._note = child, below, fault, note
        self._armed = False
        self.observed = Observed([], [])

    def answer_until_end(self, listener: int, told: int) -> None:
        ended = os.pidfd_open(self._child)
        memory = os.open(f"/proc/{self._child}/mem", os.O_RDONLY)
        with contextlib.suppress(
            OSError
        ):  # from Linux 6.6 on: parent and child take turns on one processor
            fcntl.ioctl(listener, _SET_FLAGS, _TAKE_TURNS)
        poll = select.poll()
        for fd in (listener, ended, told):
            poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + MAX_SECONDS
        try:
            while time.monotonic() < deadline:
                # A pipe or listener whose other side has ended is ready, too, but with nothing in it.
                ready = {fd for fd, events in poll.poll(1000) if events & select.POLLIN or fd == ended}
                if told in ready:
                    self.observed.report += os.read(told, 1 << 16)
                if listener in ready:
                    self._answer(listener, memory)
                elif ended in ready:
                    return
            self.observed.hung = True
            os.kill(self._child, signal.SIGKILL)
        finally:
            for fd in (listener, ended, memory):
                os.close(fd)

    def _answer(self, listener: int, memory: int) -> None:
        asked = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, asked)
        except OSError:
            return  # it is gone
        number, thread, _, call, _, _, *arguments = _NOTIFICATION.unpack(asked)
        value, error, flags = 0, 0, _GO_ON
        if _is_thread(self._child, thread):
            decided = self._decided(_BY_NUMBER[call], arguments, memory)
            if decided is not None:
                value, error = decided
                flags = 0
        try:
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, value, error, flags))
        except OSError:
            return  # a signal has taken the call back

    def _decided(self, name: str, arguments: list[int], memory: int) -> tuple[int, int] | None:
        kind = KINDS[name]
        path = self._path(kind, arguments, memory)
        if path in {ARM.encode(), DISARM.encode()}:
            self._armed = path == ARM.encode()
        is_mark = path.startswith(MARKS.encode())
        if self._note and (is_mark or (self._armed and path.startswith(self._below))):
            path_of = lambda kind: os.fsdecode(self._path(kind, arguments, memory))  # noqa: E731
            self._note(HeldCall(name, os.fsdecode(path), arguments, self._child, memory, path_of))
        if is_mark:
            return 0, -errno.ENOENT
        if not self._armed or not path.startswith(self._below):
            return None
        index = len(self.observed.calls)
        possible = self._possible(name, kind, arguments, memory, path)
        shown = os.fsdecode(path[len(self._below) :])
        self.observed.calls.append((name, shown, possible))
        fault = self._fault
        if fault is None or index < fault.index or fault.what not in possible:
            return None
        if self.observed.failed and not (fault.stays and name not in LOCKING):
            return None
        done = self._half(name, arguments, memory) if fault.what == "short" else None
        if fault.what == "short" and done is None:
            return None
        self.observed.failed.append(f"{name} {shown}")
        return (done, 0) if done is not None else (0, -getattr(errno, fault.what))

    def _path(self, kind: Kind, arguments: list[int], memory: int) -> bytes:
        if kind.where == "fd":
            return self._of_handle(arguments[kind.argument])
        if kind.where == "path":
            text = _text(memory, arguments[kind.argument])
            return text if text.startswith(b"/") else self._of_handle(None) + b"/" + text
        pointer = arguments[kind.argument + 1]
        text = _text(memory, pointer) if pointer else b""
        if text.startswith(b"/"):
            return text
        folder = ctypes.c_int(arguments[kind.argument] & 0xFFFFFFFF).value
        above = self._of_handle(None if folder == -100 else folder)
        return above + b"/" + text if text else above

    def _of_handle(self, fd: int | None) -> bytes:
        link = f"/proc/{self._child}/cwd" if fd is None else f"/proc/{self._child}/fd/{fd & 0xFFFFFFFF}"
        try:
            return os.readlink(os.fsencode(link))
        except OSError:
            return b""

    def _possible(
        self, name: str, kind: Kind, arguments: list[int], memory: int, path: bytes
    ) -> frozenset[str]:
        """An open that creates nothing needs no room, a second handle no disk, and no kernel refuses to unlock."""
        if name == "fcntl" and arguments[1] in _DUPLICATING:
            return frozenset({"EMFILE"})
        if name in LOCKING:
            return kind.faults if not _unlocks(name, arguments, memory) else frozenset()
        place = {"open": 1, "openat": 2}.get(name)
        if place is not None:
            flags = arguments[place]
        elif name == "openat2":
            flags = int.from_bytes(os.pread(memory, 8, arguments[2]), "little")
        else:
            return kind.faults
        creates = flags & _CREATE and not os.path.lexists(path)
        return kind.faults if creates else kind.faults - {"ENOSPC"}

    def _half(self, name: str, arguments: list[int], memory: int) -> int | None:
        """Do a half of a read or write for the child, through its own handle."""
        fd, buffer, size = arguments[0], arguments[1], arguments[2] // 2
        if not size:
            return None
        handle = _own_handle(self._child, fd & 0xFFFFFFFF)
        try:
            if name == "write":
                return os.write(handle, os.pread(memory, size, buffer))
            if name == "pwrite64":
                return os.pwrite(handle, os.pread(memory, size, buffer), arguments[3])
            data = os.pread(handle, size, arguments[3]) if name == "pread64" else os.read(handle, size)
            with open(f"/proc/{self._child}/mem", "r+b", buffering=0) as writable:
                writable.seek(buffer)
                writable.write(data)
            return len(data)
        finally:
            os.close(handle)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _own_handle(process: int, fd: int) -> int:
    """The same open file as another process has, with the same position."""
    whose = os.pidfd_open(process)
    try:
        handle: int = _library().syscall(_PIDFD_GETFD, whose, fd, 0)
    finally:
        os.close(whose)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "the file of the child can't be had")
    return handle


def _unlocks(name: str, arguments: list[int], memory: int) -> bool:
    if name == "flock":
        return bool(arguments[1] & fcntl.LOCK_UN)
    if arguments[1] not in {fcntl.F_SETLK, fcntl.F_SETLKW}:
        return False
    return int.from_bytes(os.pread(memory, 2, arguments[2]), "little") == fcntl.F_UNLCK


def _is_thread(process: int, thread: int) -> bool:
    return process == thread or os.path.exists(f"/proc/{process}/task/{thread}")


def _text(memory: int, address: int) -> bytes:
    # Up to the end of its page first: the next one may not be there.
    size = 4096 - address % 4096
    try:
        data = os.pread(memory, size, address)
        while b"\0" not in data and len(data) < _LARGEST_PATH:
            data += os.pread(memory, 4096, address + len(data))
    except OSError:
        return b""
    return data.partition(b"\0")[0]
