"""The status that a host reports: its load and its workspaces."""

from dataclasses import dataclass, field

from handtools.fleet.metrics import HostMetrics


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The status of a host."""

    workspaces: int
    open: int
    running: int
    waiting: int
    shed: int
    """Number of calls refused with `Busy` since the host started."""
    draining: bool
    slots: int = 0
    tenants: dict[str, int] = field(default_factory=dict)
    """Number of workspaces by tenant. Workspaces without a tenant are under the empty name."""
    memory_bytes: int = 0
    """Memory of the host's process; 0 if the system does not report it."""
    disk_free_bytes: int = 0
    disk_bytes: int = 0
    has_log: bool = False
    """Whether workspaces are stored in a log, so that they can be moved."""
    unstored_seconds: float = 0.0
    """Age of the oldest change that is not yet stored in its log."""
    version: str = ""
    """Version of handtools on the host."""


@dataclass(frozen=True, slots=True)
class HostedWorkspace:
    """A workspace in a host's list."""

    name: str
    tenant: str
    parent: str
    is_open: bool
    has_running_job: bool


def update_metrics_from_status(metrics: HostMetrics, status: HostStatus, stored_bytes: int) -> None:
    """Update the metrics that are sampled, not counted, from a status."""
    sums = {"busy": status.shed, "stored_bytes": stored_bytes}
    gauges = {
        "slots": status.slots,
        "workspaces": status.workspaces,
        "open_workspaces": status.open,
        "running_calls": status.running,
        "waiting_calls": status.waiting,
        "memory_bytes": status.memory_bytes,
        "disk_free_bytes": status.disk_free_bytes,
        "unstored_seconds": status.unstored_seconds,
        "draining": status.draining,
    }
    metrics.set_totals_and_gauges(sums, gauges)
