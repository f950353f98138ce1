"""Idempotency of MCP tool calls: derive a call id from a request, and lock it across server replicas."""

import hashlib
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from handtools.core.call import derived_call_id, new_call_id
from handtools.host.files.file_locks import try_lock, unlock
from handtools.mcp.tool_and_result_json import CALL_ID_META_KEY

SAFE_CALL_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Call ids from clients that are safe to use as file names; others are replaced by a digest."""
TOOL_USE_ID_KEY = "claudecode/toolUseId"
"""Key in `_meta` for the model's tool call id, which Claude Code sends."""


class DerivedCallId(NamedTuple):
    """A call's id, and whether the client chose it; if so, the client can request the same call again."""

    call_id: str
    chosen: bool


def derive_call_id(
    meta: Mapping[str, Any] | None,
    request_id: object,
    scope: str,
    tool: str,
    args: Mapping[str, Any],
    *,
    key: str = "",
) -> DerivedCallId:
    """Derive the id of a tool call from its MCP request, so that a repeated request gets the same id.

    The client's id in `_meta`, or `key` (the Idempotency-Key header), takes precedence. Otherwise the id is a
    digest of the data that a repeated request has in common with the first. `scope` names the connection or
    session within which request ids are unique. If it is empty (the current protocol has no HTTP sessions),
    every request gets a new id.
    """
    named = (meta or {}).get(CALL_ID_META_KEY) or key
    if isinstance(named, str) and named:
        return DerivedCallId(
            named if SAFE_CALL_ID_PATTERN.fullmatch(named) else derived_call_id("named", named), chosen=True
        )
    used = (meta or {}).get(TOOL_USE_ID_KEY)
    if isinstance(used, str) and used:
        return DerivedCallId(derived_call_id("used", used, tool, args), chosen=False)
    if scope and request_id is not None:
        return DerivedCallId(derived_call_id("sent", scope, repr(request_id), tool, args), chosen=False)
    return DerivedCallId(new_call_id(), chosen=False)


LOCK_POLL_SECONDS = 0.05


class ReplicaCallLocks:
    """File locks, one for each call id, in a folder that server replicas share.

    The kernel releases the locks of a process that dies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def hold(self, call_id: str) -> AsyncIterator[None]:
        """Lock a call id within the block; wait first if another replica has locked it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Hash the id, because ids chosen by callers may not be valid file names.
        path = self._folder / hashlib.sha256(call_id.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        while (lock := _try_claim(path)) is None:  # noqa: ASYNC110 - no file tells when its lock is free
            await anyio.sleep(LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            unlock(lock)


def _try_claim(path: Path) -> int | None:
    lock = try_lock(path)
    if lock is None:
        return None
    # The previous owner of the lock may have deleted the file after we opened it; then our lock protects nothing.
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    unlock(lock)
    return None
