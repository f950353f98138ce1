"""A call: what the model asked for, by whom, and until when."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handtools.core.errors import UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own facts as JSON values, such as a chat, a user, a provider: handed on, never looked at."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the commands of this call alone; they go before those that the session exports."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, Mapping):
            raise UsageError("The arguments of a call are an object; parse a provider's JSON text first.")
        # Copies: a call is a value, and what is handed on must not change on its way.
        object.__setattr__(self, "metadata", _json(self.metadata) if self.metadata else {})
        object.__setattr__(self, "env", dict(self.env))
        if not all(_NAME.fullmatch(name) and "\0" not in value for name, value in self.env.items()):
            raise UsageError(
                "A variable of a call has a name of letters, digits and `_`, and a text without NUL."
            )
        if "\n" in self.owner:
            raise UsageError("The name of an owner is one line.")

    @property
    def session_key(self) -> str:
        """The session as it is kept: what one owner calls by a name is not what another calls by it."""
        return f"{self.owner}\n{self.session}" if self.owner else self.session


def _json(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes out of a record; what would not is refused before anything happens."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise UsageError(f"The metadata of a call are JSON values: {problem}.") from problem
    return copied
