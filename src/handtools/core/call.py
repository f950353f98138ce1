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
    owner: str = ""
    """Whose call it is, and so whose all that is kept of it: a token's name; the local user has none."""
    parent: str = ""
    deadline: float | None = None
    """Seconds from the start of the call; None leaves it to the toolbox's limits."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, Mapping):
            raise UsageError("The arguments of a call are an object; parse a provider's JSON text first.")
        if "\n" in self.owner:
            raise UsageError("The name of an owner is one line.")

    @property
    def session_key(self) -> str:
        """The session as it is kept: what one owner calls by a name is not what another calls by it."""
        return f"{self.owner}\n{self.session}" if self.owner else self.session
