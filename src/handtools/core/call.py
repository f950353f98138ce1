"""The `Call` of a tool (name, arguments, session, owner, deadline) and its `CancelToken`."""

import hashlib
import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
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
    """Return a call id of 32 hex digits that is always the same for the same JSON values.

    For calls from a model provider, pass session, provider id, tool and arguments. The provider id alone is
    not enough, since models repeat ids within and across conversations.
    """
    whole = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.sha256(whole).hexdigest()[:32]


def output_file_name(call_id: str, suffix: str) -> str:
    """Return the file name of a call's output: its id, or a digest if the id is not a valid name."""
    fit = call_id if _FILE_NAME.fullmatch(call_id) else derived_call_id(call_id)
    return f"{fit}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call. Its id is an idempotency key: repeating the id returns the recorded result."""

    tool: str
    args: Mapping[str, Any]
    id: str = field(default_factory=new_call_id)
    session: str = "default"
    turn: str = ""
    agent: str = ""
    owner: str = ""
    """Name of the access token that made the call and owns its records; empty for the local user."""
    parent: str = ""
    deadline: float | None = None
    """Time limit in seconds from the call's start; None means the toolbox's default."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own JSON values, such as chat, user or provider; passed on unchanged and unread."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for this call's commands only.

    They override the session's exported variables.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.args, Mapping):
            raise UsageError("A call's arguments must be a mapping; parse the provider's JSON text first.")
        if not self.id:
            raise UsageError("A call's id must not be empty. Leave it out to get a generated one.")
        # Copied, so that the caller can't change the mappings of a call that is already running.
        object.__setattr__(self, "metadata", _json_copy(self.metadata) if self.metadata else {})
        object.__setattr__(self, "env", dict(self.env))
        if not all(_NAME.fullmatch(name) and "\0" not in value for name, value in self.env.items()):
            raise UsageError(
                "A call's variables need names of letters, digits and `_`, and values without NUL."
            )
        if "\n" in self.owner:
            raise UsageError("An owner's name must be a single line.")
        names = (self.id, self.session, self.turn, self.agent, self.owner, self.parent)
        if any(without_surrogates(name) != name for name in names):
            raise UsageError("A call's id and names must not contain lone surrogates.")

    @property
    def session_key(self) -> str:
        """The session name in the journal: prefixed with the owner, so that owners don't share sessions."""
        return f"{self.owner}\n{self.session}" if self.owner else self.session


def _json_copy(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Copy metadata through JSON; raises `UsageError` for values that JSON can't represent."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise UsageError(f"A call's metadata must be JSON values: {problem}.") from problem
    return copied


logger = logging.getLogger("handtools")


def caller_cancelled_error() -> Cancelled:
    """Return the `Cancelled` error of a call that its caller cancelled."""
    return Cancelled("The call was cancelled.", hint="Do not repeat it unless asked.")


class CancelToken:
    """Thread-safe cancellation flag for a tool call, with callbacks; once set, it can't be reset."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the call and run the registered callbacks; exceptions in them are logged."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call_back(callback)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run a callback on cancellation, or now if already cancelled.

        Return a function to unregister it.
        """
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._remove_callback(callback)
        _call_back(callback)
        return lambda: None

    def check(self) -> None:
        """Raise `Cancelled` if the call was cancelled."""
        if self._cancelled:
            raise caller_cancelled_error()

    def _remove_callback(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


def _call_back(callback: Callable[[], object]) -> None:
    if failure := exception_raised_by(callback):
        logger.warning("A cancellation callback failed: %r", failure, exc_info=failure)


class CancelTokens:
    """Cancel tokens of running calls, by key. Each caller that waits for the same call has its own token."""

    def __init__(self) -> None:
        self._tokens: dict[Hashable, list[CancelToken]] = {}

    @contextmanager
    def registered(self, key: Hashable, token: CancelToken | None) -> Iterator[CancelToken]:
        """Register the token, or a new one, so that `cancel` cancels it while the block runs."""
        token = token or CancelToken()
        self._tokens.setdefault(key, []).append(token)
        try:
            yield token
        finally:
            self._tokens[key].remove(token)
            if not self._tokens[key]:
                del self._tokens[key]

    def cancel(self, key: Hashable) -> bool:
        """Cancel the registered tokens, from any thread; False if there are none."""
        tokens = tuple(self._tokens.get(key, ()))
        for token in tokens:
            token.cancel()
        return bool(tokens)


def call_to_json(call: Call) -> dict[str, Any]:
    """Convert a tool call to JSON values."""
    return asdict(call) | {"args": dict(call.args)}


def call_from_json(value: dict[str, Any]) -> Call:
    """Build a `Call` from JSON values made by `call_to_json`."""
    return Call(**value)
