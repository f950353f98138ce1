"""The filter on system calls, run by a small machine of our own, for both kinds of processor."""

import errno
import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.host.sandbox.runners import seccomp
from handtools.host.sandbox.runners.seccomp import AUDIT_ARCHITECTURES, NEWEST_SYSCALL, SYSCALL_NUMBERS

ALLOW, KILL = 0x7FFF0000, 0x80000000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
NEW_USER, NEW_TIME = 0x10000000, 0x80


def execute(program: bytes, architecture: int, number: int, arguments=()) -> int:
    """What the kernel would answer."""
    call = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, *[0] * (6 - len(arguments))))
    steps = list(struct.iter_unpack("<HBBI", program))
    at = held = 0
    while True:
        code, then, other, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = struct.unpack_from("<I", call, value)[0]
        elif code == 0x54:
            held &= value
        else:
            holds = {0x15: held == value, 0x25: held > value, 0x45: bool(held & value)}[code]
            at += then if holds else other


def answer(call, *arguments, machine="x86_64", sockets="own", namespaces="own") -> int:
    rules = seccomp.syscall_rules(sockets=sockets, namespaces=namespaces)
    number = SYSCALL_NUMBERS[machine][call] if isinstance(call, str) else call
    program = seccomp.assemble_filter(rules, architecture=machine)
    return execute(program, AUDIT_ARCHITECTURES[machine], number, arguments)


def refused(verdict: int) -> int:
    """The error of a refusal; 0 when it was none."""
    return verdict & 0xFFFF if verdict >> 16 == 5 else 0


@pytest.mark.parametrize("machine", AUDIT_ARCHITECTURES)
@pytest.mark.parametrize(
    "call", ["mount", "setns", "bpf", "keyctl", "open_by_handle_at", "reboot", "move_mount"]
)
def test_calls_at_the_boundary_are_refused(call, machine):
    assert refused(answer(call, machine=machine)) == errno.EPERM


@pytest.mark.parametrize("machine", AUDIT_ARCHITECTURES)
def test_a_call_of_another_kind_of_machine_ends_the_process(machine):
    program = seccomp.assemble_filter(
        seccomp.syscall_rules(sockets="own", namespaces="own"), architecture=machine
    )
    assert execute(program, 0x40000003, 20) == KILL


@pytest.mark.parametrize("number", [NEWEST_SYSCALL + 1, 0x40000000 + 41, 0xFFFFFFFF])
def test_what_is_newer_or_of_another_convention_does_not_exist(number):
    assert refused(answer(number)) == errno.ENOSYS


@pytest.mark.parametrize("machine", AUDIT_ARCHITECTURES)
def test_new_namespaces_are_refused_and_threads_are_not(machine):
    assert refused(answer("clone", NEW_USER | 17, machine=machine)) == errno.EPERM
    assert answer("clone", 0x3D0F00, machine=machine) == ALLOW
    assert refused(answer("unshare", NEW_TIME, machine=machine)) == errno.EPERM
    assert answer("unshare", 0x400, machine=machine) == ALLOW
    assert refused(answer("clone3", machine=machine)) == errno.ENOSYS


@pytest.mark.parametrize("upper", [0, 1 << 32, 1 << 63])
def test_bits_that_the_kernel_does_not_read_hide_nothing(upper):
    assert refused(answer("ioctl", 0, 0x5412 | upper)) == errno.EPERM
    assert refused(answer("socket", 40 | upper, 1)) == errno.EAFNOSUPPORT


@given(
    family=st.integers(0, 50),
    kind=st.integers(0, 15),
    flags=st.sampled_from([0, 0x80000, 0x800]),
    protocol=st.integers(0, 300),
)
def test_sockets_are_of_the_few_kinds_that_are_meant(family, kind, flags, protocol):
    verdict = answer("socket", family, kind | flags, protocol)
    meant = family == 1 or (family in {2, 10} and kind in {1, 2}) or (family == 16 and protocol == 0)
    assert (verdict == ALLOW) == meant


@given(kind=st.integers(0, 15), flags=st.sampled_from([0, 0x80000]))
def test_without_namespaces_no_socket_and_no_pair_that_can_be_addressed(kind, flags):
    assert refused(answer("socket", 1, kind | flags, sockets="none")) == errno.EPERM
    pair = answer("socketpair", 1, kind | flags, sockets="none")
    assert (pair == ALLOW) == (kind != 2)


@given(number=st.integers(0, NEWEST_SYSCALL), machine=st.sampled_from(sorted(AUDIT_ARCHITECTURES)))
def test_what_no_rule_names_is_allowed(number, machine):
    named = {
        SYSCALL_NUMBERS[machine].get(rule.call)
        for rule in seccomp.syscall_rules(sockets="own", namespaces="own")
    }
    verdict = answer(number, machine=machine)
    assert verdict == ALLOW or number in named


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_system(machine):
    if not HEADERS[machine].exists():
        pytest.skip("machine: no headers of the kernel")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text()))
    ours = SYSCALL_NUMBERS[machine]
    assert {name: number for name, number in ours.items() if name in found} == {
        name: int(found[name]) for name in ours if name in found
    }
    assert len(set(ours) & set(found)) > 50


def test_this_machine_is_known_or_said_not_to_be():
    assert seccomp.architecture_known() == (os.uname().machine in AUDIT_ARCHITECTURES)
