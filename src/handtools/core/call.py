"""A call: what the model asked for, by whom, and until when."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handtools.core.errors import UsageError


def new_id() -> str:
    """A call id for callers that have none of their own."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to one tool. The id is an idempotency key: sent again, it returns what was recorded."""

    tool: str
    args: Mapping[str, Any]
    id: str = field(default_factory=new_id)
    session: str = "default"
    turn: str = ""
    agent: str = ""
    parent: str = ""
    deadline: float | None = None
    """Seconds from the start of the call; None leaves it to the toolbox's limits."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, Mapping):
            raise UsageError("The arguments of a call are an object; parse a provider's JSON text first.")
