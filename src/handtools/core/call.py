"""The `Call` of a tool (name, arguments, session, owner, deadline) and the `CancelToken` that cancels it.

ADR 170.
"""

import hashlib
import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from handtools.core.errors import Cancelled, UsageError, exception_raised_by
from handtools.text.encoding import without_surrogates

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")


def new_call_id() -> str:
    """Return a random hex id for a tool call."""
    return secrets.token_hex(16)


def derived_call_id(*parts: object) -> str:
    """Return the call id, 32 hexadecimal digits, that the same JSON values always give.

    For the calls of a provider: session, the provider's id, tool and arguments. Its id alone is not enough, as
    models repeat ids across conversations and within one.
    """
    whole = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.sha256(whole).hexdigest()[:32]


def output_file_name(call_id: str, suffix: str) -> str:
    """Return the name under which a call's output is stored: its id where that is a valid name, else a digest."""
    fit = call_id if _FILE_NAME.fullmatch(call_id) else derived_call_id(call_id)
    return f"{fit}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call. Its id is an idempotency key: the same id again returns the recorded result."""

    tool: str
    args: Mapping[str, Any]
    id: str = field(default_factory=new_call_id)
    session: str = "default"
    turn: str = ""
    agent: str = ""
    owner: str = ""
    """The name of the access token that made the call, and so owns its records; empty for the local user."""
    parent: str = ""
    deadline: float | None = None
    """Seconds the call may take from its start; None applies the toolbox's default."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own JSON values, such as chat, user or provider; passed on without being read."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the commands of this call only; they override those that the session exports."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, Mapping):
            raise UsageError("The arguments of a call are an object; parse a provider's JSON text first.")
        if not self.id:
            raise UsageError(
                "The id of a call is not empty: leave it out, and the call gets one of its own."
            )
        # Copies: a call is a value, and what is handed on must not change on its way.
        object.__setattr__(self, "metadata", _json(self.metadata) if self.metadata else {})
        object.__setattr__(self, "env", dict(self.env))
        if not all(_NAME.fullmatch(name) and "\0" not in value for name, value in self.env.items()):
            raise UsageError(
                "A variable of a call has a name of letters, digits and `_`, and a text without NUL."
            )
        if "\n" in self.owner:
            raise UsageError("The name of an owner is one line.")
        names = (self.id, self.session, self.turn, self.agent, self.owner, self.parent)
        if any(without_surrogates(name) != name for name in names):
            raise UsageError("The id and the names of a call hold no half of a surrogate pair.")

    @property
    def session_key(self) -> str:
        """The session name as stored in the journal: prefixed with the owner, so that owners share no session."""
        return f"{self.owner}\n{self.session}" if self.owner else self.session


def _json(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Copy metadata through JSON; raises `UsageError` for values that JSON can't hold."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise UsageError(f"The metadata of a call are JSON values: {problem}.") from problem
    return copied


logger = logging.getLogger("handtools")


def caller_cancelled_error() -> Cancelled:
    """Return the `Cancelled` error of a call that its caller cancelled."""
    return Cancelled("The call was cancelled.", hint="Do not repeat it unasked.")


class CancelToken:
    """Thread-safe cancellation flag for a tool call, with callbacks; it can be set once and not reset."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the call and run the registered callbacks; one that raises is logged, and the others still
        run.
        """
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call_back(callback)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run a callback on cancellation, at once if that has happened; return a function to unregister it."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        _call_back(callback)
        return lambda: None

    def check(self) -> None:
        """Raise `Cancelled` if the call was cancelled."""
        if self._cancelled:
            raise caller_cancelled_error()

    def _forget(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def _call_back(callback: Callable[[], object]) -> None:
    if failure := exception_raised_by(callback):
        logger.warning("A callback on cancelling failed: %r", failure, exc_info=failure)


def call_to_json(call: Call) -> dict[str, Any]:
    """Convert a tool call to JSON values."""
    return asdict(call) | {"args": dict(call.args)}


def call_from_json(value: dict[str, Any]) -> Call:
    """Build a `Call` from JSON values made by `call_to_json`."""
    return Call(**value)
