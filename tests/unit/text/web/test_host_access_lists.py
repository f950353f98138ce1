"""A list of hosts, as people write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.web.host_access import BadHostEntry, parse_host_list

NAMES = st.from_regex(r"[a-z]{1,5}(\.[a-z]{1,5}){1,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("listed", "host", "port"),
    [
        ("example.com", "example.com", 443),
        ("example.com", "example.com", 80),
        ("example.com", "EXAMPLE.com.", 443),
        ("Example.COM", "example.com", 443),
        ("example.com:8080", "example.com", 8080),
        ("example.com:*", "example.com", 22),
        ("*.example.com", "a.example.com", 443),
        ("*.example.com", "a.b.example.com", 443),
        ("bücher.example", "xn--bcher-kva.example", 443),
        ("10.0.0.5", "10.0.0.5", 443),
        ("10.0.0.0/8:*", "10.9.9.9", 5432),
        ("10.0.0.5", "0xa.5", 443),
        ("::1", "::1", 80),
        ("[::1]:5000", "::1", 5000),
        ("fd00::/8", "fd12::1", 443),
    ],
)
def test_what_is_listed_is_let_through(listed, host, port):
    assert parse_host_list((listed,)).lists(host, port)


@pytest.mark.parametrize(
    ("listed", "host", "port"),
    [
        ("example.com", "example.com", 22),
        ("example.com", "www.example.com", 443),
        ("example.com", "example.com.evil.net", 443),
        ("example.com", "notexample.com", 443),
        ("example.com", "example.com\0.evil.net", 443),
        ("example.com:8080", "example.com", 443),
        ("*.example.com", "example.com", 443),
        ("*.example.com", ".example.com", 443),
        ("*.example.com", "evilexample.com", 443),
        ("example.com", "93.184.216.34", 443),
        ("10.0.0.5", "10.0.0.6", 443),
        ("10.0.0.0/8", "example.com", 443),
        ("::1", "127.0.0.1", 443),
    ],
)
def test_nothing_else_is(listed, host, port):
    assert not parse_host_list((listed,)).lists(host, port)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.",
        "a b",
        "http://a.com",
        "a.com/",
        "a..b",
        "-a.com",
        "a.com:0",
        "a.com:65536",
        "a.com:",
        "2130706433",
        "a*.com",
        "a.*.com",
    ],
)
def test_an_entry_that_says_something_else_is_refused(entry):
    with pytest.raises(BadHostEntry):
        parse_host_list((entry,))


def test_an_empty_list_lets_nothing_through():
    assert not parse_host_list(()).lists("example.com", 443)


@given(NAMES, NAMES)
def test_a_name_lets_itself_through_and_no_other(one, other):
    hosts = parse_host_list((one,))
    assert hosts.lists(one, 443)
    assert hosts.lists(other, 443) == (one == other)
    assert not hosts.lists(f"{other}.{one}", 443)
    assert parse_host_list((f"*.{one}",)).lists(f"{other}.{one}", 443)
