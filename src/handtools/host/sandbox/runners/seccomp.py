"""Seccomp filters: the system calls that a confined command may make, as the BPF program the kernel loads.

Filters are assembled from rules here, without a library. Each rule denies one call, always or if all its
checks match; calls without a matching rule are allowed. Call numbers are known for x86-64 and AArch64.
"""

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

NEWEST_SYSCALL = 469
"""The highest system call number that was reviewed; a confined command gets ENOSYS for higher ones."""

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The AUDIT_ARCH constants that seccomp filters get, by machine name."""

_COMMON_SYSCALLS = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
    "open_tree_attr": 467,
}
"""Numbers of system calls from 424 on, which are the same on all architectures."""

_X86_64_SYSCALLS = {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "socketpair": 53, "clone": 56,
    "semget": 64, "semop": 65, "semctl": 66, "shmdt": 67, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "ptrace": 101, "syslog": 103, "uselib": 134, "personality": 135, "ustat": 136, "sysfs": 139, "vhangup": 153,
    "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "chroot": 161, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "setdomainname": 171, "iopl": 172, "ioperm": 173, "create_module": 174, "init_module": 175,
    "delete_module": 176, "get_kernel_syms": 177, "query_module": 178, "quotactl": 179, "nfsservctl": 180,
    "lookup_dcookie": 212, "semtimedop": 220, "clock_settime": 227, "mq_open": 240, "mq_unlink": 241,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272,
    "move_pages": 279, "fallocate": 285, "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304,
    "prlimit64": 302, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip

_AARCH64_SYSCALLS = {
    "lookup_dcookie": 18, "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42,
    "fallocate": 47, "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89, "personality": 92, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
    "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "mq_open": 180,
    "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190, "semctl": 191,
    "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196, "shmdt": 197, "socket": 198,
    "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224,
    "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241, "prlimit64": 261,
    "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294,
}  # fmt: skip

SYSCALL_NUMBERS = {
    "x86_64": _X86_64_SYSCALLS | _COMMON_SYSCALLS,
    "aarch64": _AARCH64_SYSCALLS | _COMMON_SYSCALLS,
}

_LOAD, _AND, _EQUAL, _ABOVE, _BITS, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_WHOLE = 0xFFFFFFFF

_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80  # only for unshare and clone3: in clone's flags these bits are a signal number
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM = 1, 2
_KIND = 0xF
_TERMINAL_IOCTLS = (
    0x5412,
    0x541C,
    0x541D,
)  # TIOCSTI, TIOCLINUX, TIOCCONS: inject input into a terminal or take over the console
_HOLE_PUNCHING = (0x3, 0x8)  # fallocate modes: punch a hole, collapse a range
_HARMLESS_PERSONALITIES = (
    0,
    0x20000,
    0x40000,
    0x60000,
    _WHOLE,
)  # arguments of personality: query, old version number, fixed addresses


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """A condition on one argument of a system call, compared as 32 bits."""

    argument: int
    test: Literal["among", "outside", "bits"]
    values: tuple[int, ...]
    mask: int = _WHOLE


@dataclass(frozen=True, slots=True)
class SyscallRule:
    """A system call that is denied with an errno if all checks match."""

    call: str
    error: int
    checks: tuple[ArgumentCheck, ...] = ()


def _deny(error: int, *calls: str) -> list[SyscallRule]:
    return [SyscallRule(call, error) for call in calls]


_ALWAYS_DENIED = (
    # Mounts and namespaces: the sandbox itself.
    *_deny(errno.EPERM, "mount", "umount2", "pivot_root", "chroot", "move_mount"),
    *_deny(errno.EPERM, "open_tree", "open_tree_attr"),
    *_deny(errno.EPERM, "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *_deny(errno.EPERM, "setns", "open_by_handle_at"),
    SyscallRule("clone", errno.EPERM, (ArgumentCheck(0, "bits", (_NEW_NAMESPACES,)),)),
    SyscallRule("unshare", errno.EPERM, (ArgumentCheck(0, "bits", (_NEW_NAMESPACES | _NEW_TIME,)),)),
    # The flags of clone3 are behind a pointer, which a filter can't follow; C libraries fall back to `clone`.
    SyscallRule("clone3", errno.ENOSYS),
    # Access to other processes beyond what a debugger in the same sandbox needs.
    *_deny(errno.EPERM, "pidfd_getfd", "kcmp"),
    # Ways around this filter, and parts of the kernel with a history of vulnerabilities.
    *_deny(errno.ENOSYS, "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret"),
    *_deny(errno.EPERM, "bpf", "perf_event_open", "userfaultfd", "fanotify_init"),
    *_deny(errno.EPERM, "move_pages", "migrate_pages"),
    *_deny(errno.EPERM, "add_key", "request_key", "keyctl"),
    # The machine: modules, clocks, swap, accounting, I/O ports, host names.
    *_deny(errno.EPERM, "init_module", "finit_module", "delete_module", "create_module", "kexec_load"),
    *_deny(errno.EPERM, "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd"),
    *_deny(errno.EPERM, "settimeofday", "clock_settime", "clock_adjtime", "syslog", "vhangup", "iopl", "ioperm"),
    *_deny(errno.EPERM, "sethostname", "setdomainname"),
    *_deny(errno.ENOSYS, "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl", "lookup_dcookie", "nfsservctl"),
    *_deny(errno.ENOSYS, "get_kernel_syms", "query_module"),
    # Allocating disk space without writing could fill the disk between two polls. C libraries write zeros
    # instead.
    SyscallRule("fallocate", errno.EOPNOTSUPP, (ArgumentCheck(1, "outside", _HOLE_PUNCHING),)),
    SyscallRule("personality", errno.EPERM, (ArgumentCheck(0, "outside", _HARMLESS_PERSONALITIES),)),
    SyscallRule("ioctl", errno.EPERM, (ArgumentCheck(1, "among", _TERMINAL_IOCTLS),)),
)  # fmt: skip

_SOCKET_RULES = (
    SyscallRule(
        "socket", errno.EAFNOSUPPORT, (ArgumentCheck(0, "outside", (_UNIX, _INET, _INET6, _NETLINK)),)
    ),
    SyscallRule(
        "socket",
        errno.EPERM,
        (
            ArgumentCheck(0, "among", (_INET, _INET6)),
            ArgumentCheck(1, "outside", (_STREAM, _DATAGRAM), _KIND),
        ),
    ),
    # Only NETLINK_ROUTE, to query network addresses.
    SyscallRule(
        "socket", errno.EPERM, (ArgumentCheck(0, "among", (_NETLINK,)), ArgumentCheck(2, "outside", (0,)))
    ),
    SyscallRule("socketpair", errno.EAFNOSUPPORT, (ArgumentCheck(0, "outside", (_UNIX,)),)),
)

_NO_SOCKET_RULES = (
    SyscallRule("socket", errno.EPERM),
    SyscallRule("socketpair", errno.EPERM, (ArgumentCheck(0, "outside", (_UNIX,)),)),
    # One end of a datagram socketpair can send to any socket that has a path.
    SyscallRule("socketpair", errno.EPERM, (ArgumentCheck(1, "among", (_DATAGRAM,), _KIND),)),
)

_SHARED_MEMORY_RULES = tuple(
    SyscallRule(call, errno.EPERM)
    for call in (
        "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop",
        "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
    )
)  # fmt: skip

_PROCESS_RULES = (
    # Changing the limits of the user's other processes; namespaces and Landlock cover the rest.
    SyscallRule("prlimit64", errno.EPERM, (ArgumentCheck(0, "outside", (0,)),)),
)

SeccompSocketMode = Literal["own", "none"]
OwnOrHostNamespaces = Literal["own", "host"]


def syscall_rules(
    *, sockets: SeccompSocketMode, namespaces: OwnOrHostNamespaces, countable: bool = False
) -> tuple[SyscallRule, ...]:
    """Return the denied system calls: more if sockets, shared memory or processes are shared with the host.

    With `countable`, System V shared memory is denied, since it is not accounted to any process.
    """
    return (
        *_ALWAYS_DENIED,
        *(_SOCKET_RULES if sockets == "own" else _NO_SOCKET_RULES),
        *(_SHARED_MEMORY_RULES if namespaces == "host" or countable else ()),
        *(_PROCESS_RULES if namespaces == "host" else ()),
    )


def machine_architecture() -> str:
    """Return this machine's architecture, as named in the tables above."""
    return os.uname().machine


def architecture_known() -> bool:
    """Whether a filter can be assembled for this machine's architecture."""
    return machine_architecture() in AUDIT_ARCHITECTURES


def assemble_filter(denying_rules: Iterable[SyscallRule], *, architecture: str) -> bytes:
    """Assemble the BPF program of a filter; system calls of another architecture kill the process."""
    numbers = SYSCALL_NUMBERS[architecture]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCHITECTURES[architecture]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # Newer calls, and calls of the x32 ABI, whose numbers are much higher.
        (_ABOVE, 0, 1, NEWEST_SYSCALL),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for rule in denying_rules:
        if rule.call in numbers:
            program += _rule_instructions(rule, numbers[rule.call])
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in program)


_Instruction = tuple[int, int, int, int]


def _rule_instructions(rule: SyscallRule, number: int) -> list[_Instruction]:
    """Return the BPF instructions of one rule; the call number stays loaded for the next rule."""
    body: list[_Instruction] = []
    denial = (_RETURN, 0, 0, _ERROR | rule.error)
    if not rule.checks:
        return [(_EQUAL, 0, 1, number), denial]
    for check in reversed(rule.checks):
        # Built backwards, since a failed check jumps over all following instructions and the denial.
        body = _check_instructions(check, len(body) + 1) + body
    return [(_EQUAL, 0, len(body) + 2, number), *body, denial, (_LOAD, 0, 0, _NUMBER)]


def _check_instructions(check: ArgumentCheck, behind: int) -> list[_Instruction]:
    """Return BPF instructions that continue if the check matches, otherwise skip the next `behind` ones."""
    load = [(_LOAD, 0, 0, _ARGUMENTS + 8 * check.argument), (_AND, 0, 0, check.mask)]
    last = len(check.values) - 1
    if check.test == "bits":
        return [*load, (_BITS, 0, behind, check.values[0])]
    if check.test == "among":
        return load + [
            (_EQUAL, last - at, behind if at == last else 0, value) for at, value in enumerate(check.values)
        ]
    return load + [(_EQUAL, last - at + behind, 0, value) for at, value in enumerate(check.values)]
