"""Egress: a launch that may reach listed hosts, and the proxy that takes it there.

The command gets a network of its own that leads nowhere. Before it executes, its process binds a port there and
hands the listening socket out to us, so there is no bridge and no other program inside, and nothing to get past.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from handtools.core.errors import InvalidInput
from handtools.core.visits import Visit
from handtools.host.commands.launching import Launch
from handtools.host.commands.network.proxy import Proxy, Tell
from handtools.text.hosts import BadHost, read_hosts

NEW_NETWORK, NEW_USER = 0x40000000, 0x10000000
PORT = 61080
"""Inside, where it is the only one who listens; above the ports that the kernel gives out by itself."""
MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Egress:
    """A launch with its way out."""

    launch: Launch
    visits: list[Visit] = field(default_factory=list)
    """What it tried, so far."""

    def notes(self) -> tuple[str, ...]:
        """What the model should know: what was refused, since clients often hide the reason."""
        refused = list(dict.fromkeys(visit.refused for visit in self.visits if visit.refused))
        if len(refused) > MOST_TOLD:
            refused[MOST_TOLD:] = [f"{len(refused) - MOST_TOLD} more were refused."]
        return tuple(f"Network: {each}" for each in refused)


@contextmanager
def reaching(launch: Launch, tell: Tell = lambda _: None) -> Iterator[Egress]:
    """The launch with a proxy beside it, if it may reach listed hosts; else the launch as it is."""
    if launch.network != "listed":
        yield Egress(launch)
        return
    try:
        proxy = Proxy(read_hosts(launch.hosts), tell)
    except BadHost as error:
        raise InvalidInput(str(error), hint="List hosts as `name`, `*.name` or `name:port`.") from error
    ours, theirs = socket.socketpair()
    try:
        proxy.start(ours)
        yield Egress(_with_door(launch, theirs.fileno()), proxy.visits)
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        proxy.stop()
        ours.close()
        theirs.close()


def _with_door(launch: Launch, door: int) -> Launch:
    # Only root makes a network without a user namespace around it.
    own = NEW_NETWORK if os.geteuid() == 0 else NEW_NETWORK | NEW_USER
    return replace(
        launch,
        env={**launch.env, **proxy_environment(PORT)},
        unshare=launch.unshare | own,
        door=(door, PORT),
    )


def proxy_environment(port: int) -> dict[str, str]:
    """How programs are told about the proxy. Those that don't listen simply reach nothing."""
    address = f"http://127.0.0.1:{port}"
    near = "localhost,127.0.0.1,::1"
    both = {"http_proxy": address, "https_proxy": address, "all_proxy": address, "no_proxy": near}
    return {
        **both,
        **{name.upper(): value for name, value in both.items()},
        "PIP_PROXY": address,
        "npm_config_proxy": address,
        "npm_config_https_proxy": address,
        "npm_config_noproxy": near,
        "YARN_HTTP_PROXY": address,
        "YARN_HTTPS_PROXY": address,
        "CARGO_HTTP_PROXY": address,
        "NODE_USE_ENV_PROXY": "1",
    }
