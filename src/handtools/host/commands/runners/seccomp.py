"""Seccomp: which system calls a confined command may make, as the bytes the kernel loads.

A filter is a small program over the call's number and arguments. It is put together from rules here, without a
library: each rule denies one call, always or when all its checks hold; what no rule denies is allowed.
"""

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from handtools.host.commands.runners.seccomp_calls import ARCHITECTURES, NEWEST, NUMBERS

_LOAD, _AND, _EQUAL, _ABOVE, _BITS, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_WHOLE = 0xFFFFFFFF

_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80  # only unshare and clone3 take it here: for clone these bits are a signal
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM = 1, 2
_KIND = 0xF
_TYPING = (0x5412, 0x541C, 0x541D)  # TIOCSTI, TIOCLINUX, TIOCCONS: typing into a terminal, taking one over
_SHRINKING = (0x3, 0x8)  # of fallocate: making a hole, taking a part out
_HARMLESS = (
    0,
    0x20000,
    0x40000,
    0x60000,
    _WHOLE,
)  # of personality: asking, old version number, fixed addresses


@dataclass(frozen=True, slots=True)
class Check:
    """One condition on an argument. The kernel reads all of these as 32 bits, so the upper half says nothing."""

    argument: int
    test: Literal["among", "outside", "bits"]
    values: tuple[int, ...]
    mask: int = _WHOLE


@dataclass(frozen=True, slots=True)
class Rule:
    """A call that fails with an error when all checks hold."""

    call: str
    error: int
    checks: tuple[Check, ...] = ()


def _denied(error: int, *calls: str) -> list[Rule]:
    return [Rule(call, error) for call in calls]


_RULES = (
    # Other views of the file system, and other namespaces: the boundary itself.
    *_denied(errno.EPERM, "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr"),
    *_denied(errno.EPERM, "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *_denied(errno.EPERM, "setns", "open_by_handle_at"),
    Rule("clone", errno.EPERM, (Check(0, "bits", (_NEW_NAMESPACES,)),)),
    Rule("unshare", errno.EPERM, (Check(0, "bits", (_NEW_NAMESPACES | _NEW_TIME,)),)),
    # Its flags are behind a pointer, which no filter can follow; C libraries then take `clone`.
    Rule("clone3", errno.ENOSYS),
    # Reaching into other processes beyond what a debugger in the same sandbox needs.
    *_denied(errno.EPERM, "pidfd_getfd", "kcmp"),
    # Ways around this filter, and parts of the kernel with a history.
    *_denied(errno.ENOSYS, "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret"),
    *_denied(errno.EPERM, "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "move_pages", "migrate_pages"),
    *_denied(errno.EPERM, "add_key", "request_key", "keyctl"),
    # The machine: modules, clocks, swap, accounting, ports, names.
    *_denied(errno.EPERM, "init_module", "finit_module", "delete_module", "create_module", "kexec_load"),
    *_denied(errno.EPERM, "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd"),
    *_denied(errno.EPERM, "settimeofday", "clock_settime", "clock_adjtime", "syslog", "vhangup", "iopl", "ioperm"),
    *_denied(errno.EPERM, "sethostname", "setdomainname"),
    *_denied(errno.ENOSYS, "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl", "lookup_dcookie", "nfsservctl"),
    *_denied(errno.ENOSYS, "get_kernel_syms", "query_module"),
    # Room on a disk without writing: it would be gone before anybody could look. C libraries then write zeros.
    Rule("fallocate", errno.EOPNOTSUPP, (Check(1, "outside", _SHRINKING),)),
    Rule("personality", errno.EPERM, (Check(0, "outside", _HARMLESS),)),
    Rule("ioctl", errno.EPERM, (Check(1, "among", _TYPING),)),
)  # fmt: skip

_SOCKETS = (
    Rule("socket", errno.EAFNOSUPPORT, (Check(0, "outside", (_UNIX, _INET, _INET6, _NETLINK)),)),
    Rule(
        "socket",
        errno.EPERM,
        (Check(0, "among", (_INET, _INET6)), Check(1, "outside", (_STREAM, _DATAGRAM), _KIND)),
    ),
    # Only the question which addresses there are.
    Rule("socket", errno.EPERM, (Check(0, "among", (_NETLINK,)), Check(2, "outside", (0,)))),
    Rule("socketpair", errno.EAFNOSUPPORT, (Check(0, "outside", (_UNIX,)),)),
)

_NO_SOCKETS = (
    Rule("socket", errno.EPERM),
    Rule("socketpair", errno.EPERM, (Check(0, "outside", (_UNIX,)),)),
    # One end of a pair of datagram sockets can be addressed to any socket that has a path.
    Rule("socketpair", errno.EPERM, (Check(1, "among", (_DATAGRAM,), _KIND),)),
)

_SHARED_MEMORY = tuple(
    Rule(call, errno.EPERM)
    for call in (
        "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop",
        "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
    )
)  # fmt: skip

_PROCESSES = (
    # Limits of other processes of this user; namespaces and Landlock's own rules cover the rest.
    Rule("prlimit64", errno.EPERM, (Check(0, "outside", (0,)),)),
)

Sockets = Literal["own", "none"]
Shared = Literal["own", "host"]


def rules(*, sockets: Sockets, namespaces: Shared, countable: bool = False) -> tuple[Rule, ...]:
    """What is denied: more where sockets, shared memory or processes are the machine's own.

    Memory is `countable` when none of it can be in segments, which are nobody's.
    """
    return (
        *_RULES,
        *(_SOCKETS if sockets == "own" else _NO_SOCKETS),
        *(_SHARED_MEMORY if namespaces == "host" or countable else ()),
        *(_PROCESSES if namespaces == "host" else ()),
    )


def machine() -> str:
    """The kind of machine this is, as rules know it."""
    return os.uname().machine


def known() -> bool:
    """Whether a filter can be written for this machine."""
    return machine() in ARCHITECTURES


def assemble(denials: Iterable[Rule], *, architecture: str) -> bytes:
    """The program for one kind of machine; calls of any other kind end the process."""
    numbers = NUMBERS[architecture]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, ARCHITECTURES[architecture]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Newer calls, and those of the x32 convention, whose numbers begin far above.
        (_ABOVE, 0, 1, NEWEST),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for rule in denials:
        if rule.call in numbers:
            program += _block(rule, numbers[rule.call])
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in program)


_Step = tuple[int, int, int, int]


def _block(rule: Rule, number: int) -> list[_Step]:
    """The steps of one rule; they leave the number loaded for the next."""
    body: list[_Step] = []
    denial = (_RETURN, 0, 0, _ERROR | rule.error)
    if not rule.checks:
        return [(_EQUAL, 0, 1, number), denial]
    for check in reversed(rule.checks):
        # From behind, since a check that fails jumps over all that follows and the denial.
        body = _test(check, len(body) + 1) + body
    return [(_EQUAL, 0, len(body) + 2, number), *body, denial, (_LOAD, 0, 0, _NUMBER)]


def _test(check: Check, behind: int) -> list[_Step]:
    """Steps that go on when the check holds, and else jump over what is behind them."""
    load = [(_LOAD, 0, 0, _ARGUMENTS + 8 * check.argument), (_AND, 0, 0, check.mask)]
    last = len(check.values) - 1
    if check.test == "bits":
        return [*load, (_BITS, 0, behind, check.values[0])]
    if check.test == "among":
        return load + [
            (_EQUAL, last - at, behind if at == last else 0, value) for at, value in enumerate(check.values)
        ]
    return load + [(_EQUAL, last - at + behind, 0, value) for at, value in enumerate(check.values)]
