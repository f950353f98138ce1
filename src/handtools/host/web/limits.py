"""Limits: how much of a server's answer is taken, and how long it may take."""

from dataclasses import dataclass

from handtools.core.web import PAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one answer may cost."""

    page_bytes: int = PAGE_BYTES
    """As it comes over the wire, and again unpacked."""
    connect: float = 10.0
    silence: float = 15.0
    """Seconds without a byte."""
    total: float = 45.0
    """Seconds for one server altogether, however it trickles."""
