"""The status of all hosts of a fleet, including hosts that do not respond."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from handtools.core.errors import HandtoolsError
from handtools.fleet.host_status import HostStatus
from handtools.fleet.ray_fleet import Fleet, RayHostClient

ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FleetHostStatus:
    """A host of a fleet and its reported status."""

    host: str
    node: str = ""
    """The address of the node it runs on."""
    status: HostStatus | None = None
    """None if the host does not respond."""

    @property
    def state(self) -> str:
        """The status in one word: `ready`, `draining` or `away`."""
        if self.status is None:
            return "away"
        return "draining" if self.status.draining else "ready"


async def query_all_hosts(fleet: Fleet, *, seconds: float = ANSWER_SECONDS) -> list[FleetHostStatus]:
    """Query all hosts concurrently, waiting at most `seconds` for each."""
    asked = [_query_host(name, client, seconds) for name, client in list(fleet.hosts.items())]
    return list(await asyncio.gather(*asked))


async def _query_host(name: str, client: RayHostClient, seconds: float) -> FleetHostStatus:
    try:
        async with asyncio.timeout(seconds):
            status = await client.status()
            return FleetHostStatus(name, await client.node_address(), status)
    except (TimeoutError, OSError, HandtoolsError):
        return FleetHostStatus(name)


def workspace_counts_by_tenant(hosts: Sequence[FleetHostStatus]) -> dict[str, int]:
    """The number of workspaces of each tenant on all hosts that responded, largest first."""
    total: Counter[str] = Counter()
    for each in hosts:
        if each.status is not None:
            total.update(each.status.tenants)
    return dict(total.most_common())
