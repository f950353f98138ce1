"""The user at the other end of a connection on loopback."""

import contextlib
import os
import socket
import sys

import pytest

from handtools.host.loopback_peers import SOCKET_TABLES, client_uids, is_peer_of_other_user

pytestmark = pytest.mark.skipif(not os.path.exists(SOCKET_TABLES[0]), reason="machine: no table of sockets")
MAPPED = "0000000000000000FFFF0000"
SERVER, CLIENT = ("127.9.8.7", 0x1F90), ("127.0.0.1", 0xC001)


@pytest.fixture
def connect():
    """Connects to a server at an address of its own; gives both ends and their addresses."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server((SERVER[0], 0)))

        def made(family=socket.AF_INET, form="{}"):
            client = stack.enter_context(socket.socket(family))
            client.connect((form.format(SERVER[0]), listening.getsockname()[1]))
            accepted, address = listening.accept()
            stack.enter_context(accepted)
            return client, address, accepted.getsockname()

        yield made


def test_a_connection_of_this_user_is_known_as_such(connect):
    _, client, server = connect()
    assert not is_peer_of_other_user(client, server)


@pytest.mark.skipif(not socket.has_ipv6, reason="machine: no IPv6")
def test_a_connection_by_a_mapped_address_is_known(connect):
    _, client, server = connect(socket.AF_INET6, "::ffff:{}")
    assert not is_peer_of_other_user(client, server)


@pytest.mark.parametrize("leave", [socket.socket.close, lambda end: end.shutdown(socket.SHUT_WR)])
def test_a_socket_that_says_no_more_is_nobodys(connect, leave):
    """The kernel lists closed sockets as root's."""
    client, address, server = connect()
    leave(client)
    assert is_peer_of_other_user(address, server)


def test_a_connection_that_is_not_on_this_machine_is_nobodys(connect):
    _, (host, port), server = connect()
    assert is_peer_of_other_user((host, port % 65_535 + 1), server)


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: only root can become another user")
def test_a_connection_of_another_user_is_told_apart(connect):
    os.seteuid(65534)
    try:
        _, client, server = connect()
        assert not is_peer_of_other_user(client, server), "it is this user's now"
    finally:
        os.seteuid(0)
    assert is_peer_of_other_user(client, server)


@pytest.mark.skipif(
    sys.byteorder != "little", reason="machine: the rows are written as a little-endian one has them"
)
@pytest.mark.parametrize(
    ("row", "uids"),
    [
        (
            "0: 0100007F:C001 0708097F:1F90 01 00000000:00000000 00:00000000 00000000  1001 0 812 1 00",
            [1001],
        ),
        ("0: 0708097F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1001 0 812 1 00", []),
        ("0: 0100007F:C001 0708097F:1F90 06 00000000:00000000 03:00000000 00000000     0 0 0 3 00", []),
        ("0: 0100007F:C001 0708097F:1F90 01 00000000:00000000 00:00000000 00000000     0 0 0 3 00", []),
        ("0: 0100007F:C002 0708097F:1F90 01 00000000:00000000 00:00000000 00000000     0 0 812 1 00", []),
        (
            f"1: {MAPPED}0100007F:C001 {MAPPED}0708097F:1F90 01 00000000:00000000 00:00000000 0  1002 0 99 1 00",
            [1002],
        ),
    ],
    ids=["client", "the server's own end", "waits for its end", "closed", "another port", "mapped"],
)
def test_only_an_open_socket_of_the_client_tells_a_user(row, uids):
    heading = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    )
    assert list(client_uids([heading, row], CLIENT, SERVER)) == uids
