"""A call: which tool, with what arguments, by whom and until when; and the `CancelToken` that cancels it.

ADR 170.
"""

import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from handtools.core.errors import Cancelled, UsageError, caught_exception

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


log = logging.getLogger("handtools")


def cancelled_by_caller() -> Cancelled:
    """What a call ends with that its caller took back."""
    return Cancelled("The call was cancelled.", hint="Do not repeat it unasked.")


class CancelToken:
    """Cancelled once, for good; callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Take the call back. A callback that fails is logged: it stops neither the others nor the caller."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call_back(callback)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back on cancellation, at once if it has happened; returns what unregisters it."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        _call_back(callback)
        return lambda: None

    def check(self) -> None:
        """Raise `Cancelled` if the call was taken back."""
        if self._cancelled:
            raise cancelled_by_caller()

    def _forget(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def _call_back(callback: Callable[[], object]) -> None:
    if failure := caught_exception(callback):
        log.warning("A callback on cancelling failed: %r", failure, exc_info=failure)


def call_to_json(call: Call) -> dict[str, Any]:
    """A call as JSON values."""
    return asdict(call) | {"args": dict(call.args)}


def call_from_json(value: dict[str, Any]) -> Call:
    """The inverse of `call_to_json`."""
    return Call(**value)
