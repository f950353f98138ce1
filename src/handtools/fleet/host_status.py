"""What a host says of itself: its load, and the workspaces that it has."""

from dataclasses import dataclass, field

from handtools.fleet.metrics import HostMetrics


@dataclass(frozen=True, slots=True)
class HostStatus:
    """What a host is doing."""

    workspaces: int
    open: int
    running: int
    waiting: int
    shed: int
    """Calls that were refused as `busy` since the start."""
    draining: bool
    slots: int = 0
    tenants: dict[str, int] = field(default_factory=dict)
    """How many workspaces each tenant has; those without one under the empty name."""
    memory_bytes: int = 0
    """Of the host's process; 0 where the system does not tell."""
    disk_free_bytes: int = 0
    disk_bytes: int = 0
    has_log: bool = False
    """Whether workspaces are stored elsewhere, so that they can be moved."""
    unstored_seconds: float = 0.0
    """How old the oldest change is that its log does not have."""
    version: str = ""
    """Of handtools on the host."""


@dataclass(frozen=True, slots=True)
class HostedWorkspace:
    """A workspace in the list of a host."""

    name: str
    tenant: str
    parent: str
    is_open: bool
    has_running_job: bool


def sample_status(metrics: HostMetrics, now: HostStatus, stored_bytes: int) -> None:
    """Bring those metrics up to date that are looked at from time to time."""
    sums = {"busy": now.shed, "stored_bytes": stored_bytes}
    gauges = {
        "slots": now.slots,
        "workspaces": now.workspaces,
        "open_workspaces": now.open,
        "running_calls": now.running,
        "waiting_calls": now.waiting,
        "memory_bytes": now.memory_bytes,
        "disk_free_bytes": now.disk_free_bytes,
        "unstored_seconds": now.unstored_seconds,
        "draining": now.draining,
    }
    metrics.sample(sums, gauges)
