"""The ports on which a process listens, as /proc shows them."""

import os
import socket

import pytest

from handtools.host.sandbox.processes.listening_ports import listening_ports, listening_sockets


@pytest.mark.parametrize(
    ("family", "address", "reached"),
    [
        (socket.AF_INET, "127.0.0.1", (socket.AF_INET, "127.0.0.1")),
        (socket.AF_INET, "127.1.2.3", (socket.AF_INET, "127.1.2.3")),
        (socket.AF_INET, "0.0.0.0", (socket.AF_INET, "127.0.0.1")),
        (socket.AF_INET6, "::1", (socket.AF_INET6, "::1")),
        (socket.AF_INET6, "::", (socket.AF_INET6, "::1")),
        (socket.AF_INET6, "::ffff:127.0.0.1", (socket.AF_INET, "127.0.0.1")),
    ],
)
def test_a_listening_socket_is_found_with_the_address_that_reaches_it(family, address, reached):
    with socket.socket(family) as listening:
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((address, 0))
        port = listening.getsockname()[1]
        assert port not in listening_ports(os.getpid())
        listening.listen()
        assert port in listening_ports(os.getpid())
        (found,) = [each for each in listening_sockets(os.getpid()) if each.port == port]
        assert found.connectable == reached
        with socket.socket(reached[0]) as client:
            client.connect((reached[1], port))
