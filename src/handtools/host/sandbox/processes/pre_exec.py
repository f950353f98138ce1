"""Setup of a new process between fork and exec: namespaces, mounts, limits, Landlock, seccomp.

Runs only in a supervisor's child. A supervisor is single-threaded, so its forked child can safely run
Python code that would otherwise need `preexec_fn` or a launcher program.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import termios
from collections.abc import Sequence

from handtools.host.sandbox.supervisor_messages import NetworkOrder, StartOrder

IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
"""Signals that a supervisor ignores; a command gets their default handlers back."""
OOM_SCORE_ADJ = 300
"""The oom_score_adj of commands: the kernel kills them before the program that started them."""
CLONE_NEWUSER = 0x10000000
LISTEN_BACKLOG = 1024
_SET_PDEATHSIG, _SET_SECCOMP, _SET_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 22, 36, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_RESTRICT_SELF = 446
_OPEN_TREE, _MOVE_MOUNT = 428, 429
_CLONED_WITH_ALL_BELOW = 0x1 | 0x8000 | 0x80000  # closed at exec
_BY_HANDLE_ALONE, _RELATIVE_TO_CWD, _MNT_DETACH = 0x4, -100, 2
_GET_FLAGS, _SET_FLAGS, _IFF_UP = 0x8913, 0x8914, 1  # of a network interface
_LIBC = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Become the subreaper of all descendants, ignore SIGTERM etc., and set fds to close on exec."""
    _checked_result(_LIBC.prctl(_SET_SUBREAPER, 1, 0, 0, 0))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN if number in IGNORED_SIGNALS else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the fd used for listing is already closed
            fcntl.ioctl(int(name), termios.FIOCLEX)


def start_own_session() -> None:
    """Start a new session that dies with the supervisor, with default signals and a raised OOM score."""
    os.setsid()
    _checked_result(_LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    _write_file("/proc/self/oom_score_adj", str(OOM_SCORE_ADJ))
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def set_up_and_exec(order: StartOrder, fds: dict[int, int]) -> None:
    """Set up this process as ordered and exec the command. Never returns; raises if something fails."""
    _place_fds(fds)
    if order["terminal"]:
        size = struct.pack("HHHH", *order["terminal"], 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        if order["controls_terminal"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for name, value in order["limits"].items():
        _set_rlimit(name, value)
    join_namespaces(order["namespaces"])
    if order["unshare"]:
        _unshare(order["unshare"], order["identity"])
    for source, target, kind, flags, options in order["mounts"]:
        mounting = (source.encode(), target.encode(), kind.encode() or None)
        _checked_result(_LIBC.mount(*mounting, ctypes.c_ulong(flags), options.encode() or None))
    if order["mounts_left"]:
        _leave_mounts(order["mounts_left"], [mounted_at for _, mounted_at, *_ in order["layers"]])
    for line, folder in order["views"]:
        _send_folder_handle(line, folder)
    os.chdir(order["cwd"])
    if order["user"]:
        user, group = order["user"]
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    restrict_self(order["landlock"], bytes.fromhex(order["seccomp"]))
    os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606


def _place_fds(fds: dict[int, int]) -> None:
    """Duplicate each fd to its target number; the supervisor's own fds close at exec."""
    clear = max(fds) + 1
    aside = {wanted: fcntl.fcntl(held, fcntl.F_DUPFD_CLOEXEC, clear) for wanted, held in fds.items()}
    for wanted, held in aside.items():
        os.dup2(held, wanted)


def _set_rlimit(name: str, value: int) -> None:
    number = getattr(resource, name)
    soft, hard = resource.getrlimit(number)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    least = most if soft == resource.RLIM_INFINITY else min(most, soft)
    resource.setrlimit(number, (least, most))


def _unshare(flags: int, identity: Sequence[int] | None) -> None:
    user, group = os.geteuid(), os.getegid()
    _checked_result(_LIBC.unshare(flags))
    if not flags & CLONE_NEWUSER:
        return
    inside = identity or (user, group)
    _write_file("/proc/self/setgroups", "deny")
    _write_file("/proc/self/uid_map", f"{inside[0]} {user} 1")
    _write_file("/proc/self/gid_map", f"{inside[1]} {group} 1")
    _limit_inotify()


def _limit_inotify() -> None:
    """Reserve half of the user's inotify instances and watches for programs outside this user namespace.

    Otherwise a command could use all of them, leaving none for editors or our own watch for private files.
    """
    for name in ("instances", "watches"):
        with (
            contextlib.suppress(OSError),
            open(f"/proc/sys/fs/inotify/max_user_{name}", encoding="ascii") as limit,
        ):
            _write_file(f"/proc/sys/user/max_inotify_{name}", str(int(limit.read()) // 2))


def _leave_mounts(folder: str, kept: Sequence[str]) -> None:
    """Unmount a mount point and everything below it in this mount namespace, except `kept`.

    Bubblewrap scans all mounts for each mount it makes: with the mounts of a hundred workspaces it takes
    twice as long. They are detached in one call, since the kernel waits after each unmount.
    """
    handles = []
    for path in kept:
        cloned = (_RELATIVE_TO_CWD, path.encode(), _CLONED_WITH_ALL_BELOW)
        handles.append(_checked_result(_LIBC.syscall(_OPEN_TREE, *cloned)))
    if (
        _LIBC.umount2(folder.encode(), _MNT_DETACH) == 0
    ):  # otherwise it is no longer a mount, so there is nothing to unmount
        for path, handle in zip(kept, handles, strict=True):
            placed = (handle, b"", _RELATIVE_TO_CWD, path.encode(), _BY_HANDLE_ALONE)
            _checked_result(_LIBC.syscall(_MOVE_MOUNT, *placed))
    for handle in handles:
        os.close(handle)


def join_namespaces(fds: Sequence[int]) -> None:
    """Join namespaces by their fds and close the fds, so that the command doesn't inherit them."""
    for fd in fds:
        _checked_result(_LIBC.setns(fd, 0))
        os.close(fd)


def open_network(order: NetworkOrder, joined: Sequence[int]) -> tuple[list[int], list[int]]:
    """Create or join a network namespace with loopback up; returns its fds and the requested sockets.

    A socket stays in the namespace where it was created, so a process can use it without entering the
    namespace.
    """
    if not order["unshare"] and not joined:
        # Otherwise the sockets would be opened in the host's network.
        raise OSError(errno.EINVAL, "no namespace was given")
    join_namespaces(joined)
    made: list[int] = []
    if order["unshare"]:
        _unshare(order["unshare"], None)
        with socket.socket() as any_socket:
            _set_interface_up(any_socket, b"lo")
        kinds = ("user", "net") if order["unshare"] & CLONE_NEWUSER else ("net",)
        made = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    sockets = [socket.socket() for _ in range(order["listening"])]
    for listening in sockets:
        listening.bind(("127.0.0.1", 0))
        listening.listen(LISTEN_BACKLOG)
    sockets += [socket.socket(family) for family in order["connecting"]]
    return made, [each.detach() for each in sockets]


def _send_folder_handle(line: int, path: str) -> None:
    """Send out the fd of a folder, as mounted here, over `line`, and close both."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with socket.socket(fileno=line) as outside:
        socket.send_fds(outside, [b"f"], [folder])
    os.close(folder)


def _set_interface_up(any_socket: socket.socket, name: bytes) -> None:
    request = bytearray(struct.pack("16sH22x", name, 0))
    fcntl.ioctl(any_socket, _GET_FLAGS, request)
    (flags,) = struct.unpack_from("H", request, 16)
    fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH22x", name, flags | _IFF_UP))


def restrict_self(landlock: int | None, seccomp: bytes) -> None:
    """Permanently restrict this process with a Landlock ruleset and a seccomp filter."""
    if landlock is None and not seccomp:
        return
    _checked_result(_LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if landlock is not None:
        _checked_result(_LIBC.syscall(_LANDLOCK_RESTRICT_SELF, landlock, 0))
        fcntl.ioctl(landlock, termios.FIOCLEX)
    if seccomp:
        code = ctypes.create_string_buffer(seccomp, len(seccomp))
        program = struct.pack("HxxxxxxP", len(seccomp) // 8, ctypes.addressof(code))
        _checked_result(_LIBC.prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0))


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _checked_result(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
