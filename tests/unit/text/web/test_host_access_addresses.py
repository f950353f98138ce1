"""Addresses that lead to this machine or its neighbours, however they are written."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.web.host_access import (
    METADATA_ADDRESSES,
    ip_address_refusal,
    ip_literal,
    is_address_of_this_machine,
)

LOCAL = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "100.64.0.1", "169.254.1.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
]  # fmt: skip
LOCAL_6 = ["::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fdff::1", "ff02::1", "fec0::1", "100::1"]
OPEN = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"]


def wrapped(address: str) -> list[str]:
    """Every way to write an address of IPv4 as one of IPv6."""
    number = int(IPv4Address(address))
    high, low = number >> 16, number & 0xFFFF
    return [
        f"::ffff:{address}",
        f"::ffff:0:{address}",
        f"64:ff9b::{address}",
        f"64:ff9b:1::{high:x}:{low:x}",
        f"2002:{high:x}:{low:x}::1",
        f"2001:0:0808:0808::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        f"2001:0:{high:x}:{low:x}::f7f7:f7f7",
    ]


@pytest.mark.parametrize("address", [*LOCAL, *LOCAL_6, *METADATA_ADDRESSES])
def test_what_is_near_is_refused_with_a_reason(address):
    assert address in ip_address_refusal(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "2002:7f00:1::1"]
)
def test_addresses_of_this_machine_are_known_as_such(address):
    assert is_address_of_this_machine(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1", *METADATA_ADDRESSES, *OPEN, "x"]
)
def test_other_addresses_are_not_this_machine(address):
    assert not is_address_of_this_machine(address)


@pytest.mark.parametrize("address", OPEN)
def test_what_is_far_is_not(address):
    assert ip_address_refusal(address) == ""


@pytest.mark.parametrize("address", LOCAL)
def test_what_is_near_stays_refused_inside_another_address(address):
    assert [each for each in wrapped(address) if not ip_address_refusal(each)] == []


def test_what_is_far_may_be_inside_another_address():
    assert [each for each in wrapped("8.8.4.4") if ip_address_refusal(each)] == []


def test_the_old_way_of_carrying_an_address_is_refused_too():
    assert ip_address_refusal("::127.0.0.1")
    assert ip_address_refusal("::10.0.0.1")


@pytest.mark.parametrize("text", ["", "example.com", "1.2.3", "1.2.3.4.5", "::g", "127.0.0.1 "])
def test_what_is_no_address_is_refused(text):
    assert ip_address_refusal(text) == "It is not an address."


def test_a_network_that_a_person_listed_is_open():
    listed = (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert ip_address_refusal("10.1.2.3", but=listed) == ""
    assert ip_address_refusal("::ffff:10.1.2.3", but=listed) == ""
    assert ip_address_refusal("::1", but=listed) == ""
    assert ip_address_refusal("127.0.0.1", but=listed)
    assert ip_address_refusal("192.168.0.1", but=listed)


@pytest.mark.parametrize(
    "spelling",
    [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7F.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
    ],
)
def test_every_spelling_of_an_address_is_that_address(spelling):
    assert ip_literal(spelling) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize(
    "name", ["localhost", "a.b", "1.2.3.4.example", "256.0.0.1", "1.2.3.4.5", "08.1", "", "."]
)
def test_a_name_is_no_address(name):
    assert ip_literal(name) is None


def test_brackets_hold_an_address():
    assert ip_literal("[::1]") == IPv6Address("::1")


@given(st.ip_addresses(v=4))
def test_an_address_and_its_disguises_are_judged_alike(address):
    near = bool(ip_address_refusal(str(address)))
    mapped = bool(ip_address_refusal(f"::ffff:{address}"))
    assert near == mapped
    assert ip_literal(str(int(address))) == address
    assert ip_literal(hex(int(address))) == address


@given(st.ip_addresses(v=6))
def test_what_python_calls_local_is_refused(address):
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        assert ip_address_refusal(str(address))


@given(st.ip_addresses(v=4))
def test_what_python_calls_global_is_open_and_what_it_calls_local_is_refused(address):
    if address.is_global and not address.is_multicast and str(address) not in METADATA_ADDRESSES:
        assert (
            ip_address_refusal(str(address)) == ""
            or address in ip_network("192.0.0.0/24")
            or address in ip_network("192.88.99.0/24")
        )
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_reserved:
        assert ip_address_refusal(str(address))
