"""Visits: going to a host. One value is what rules judge, a person is shown, and listeners are told."""

from dataclasses import dataclass
from typing import Literal

from handtools.text.hosts import WEB_PORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A connection that a command or a tool wants to make."""

    host: str
    port: int
    url: str = ""
    """What is asked for there, where that is known: a command's connections show only where they go."""
    purpose: str = ""
    """Why, where the address does not say it: the words of a search."""
    addresses: tuple[str, ...] = ()
    """Where the host is, as far as it may be gone to."""
    refused: str = ""
    """Why it came to nothing, in a sentence."""
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def kind(self) -> Literal["visit"]:
        """As rules name it."""
        return "visit"

    @property
    def place(self) -> str:
        """The host as lists name it; without a usual port, so `https` after `http` is no other place."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in WEB_PORTS else f"{host}:{self.port}"
