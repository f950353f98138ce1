"""Identity: which call a request is, so that the same request sent again never runs twice."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from handtools.core.call import new_id
from handtools.mcp.translate import CALL_ID

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Ids that are kept as they come: they become names of kept outputs, so nothing else may be in them."""
TOOL_USE_ID = "claudecode/toolUseId"
"""The key under which a well-known client sends the model's own id of the call."""


class Identity(NamedTuple):
    """A call's id, and whether the client chose it: then it can ask for the same call again."""

    call_id: str
    chosen: bool


def identify(
    meta: Mapping[str, Any] | None,
    request_id: object,
    scope: str,
    tool: str,
    args: Mapping[str, Any],
    *,
    key: str = "",
) -> Identity:
    """The id of a call: the client's own, or one made of what a repeated request has in common with the first.

    `key` is what came as Idempotency-Key, HTTP's own way to name a request that may come twice. `scope` names the
    connection or session within which request ids are unique; without one (HTTP of the current protocol keeps no
    sessions) two requests can't be told to be the same, and each is a call of its own.
    """
    named = (meta or {}).get(CALL_ID) or key
    if isinstance(named, str) and named:
        return Identity(named if SAFE.fullmatch(named) else digest("named", named), chosen=True)
    used = (meta or {}).get(TOOL_USE_ID)
    if isinstance(used, str) and used:
        return Identity(digest("used", used, tool, args), chosen=False)
    if scope and request_id is not None:
        return Identity(digest("sent", scope, repr(request_id), tool, args), chosen=False)
    return Identity(new_id(), chosen=False)


def digest(*parts: object) -> str:
    """One short name for all of the parts together."""
    whole = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.sha256(whole).hexdigest()[:32]
