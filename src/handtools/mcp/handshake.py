"""The MCP handshake on stdio: answer `initialize` and the first `tools/list` before the toolbox is opened.

A client shows our tools once it has both responses. Neither needs the toolbox, whose import takes longer than
everything else. The session gets the lines that are not answered afterwards, and the client's `initialize`. A
test checks that our responses and the SDK's are the same.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handtools import __version__

SERVER_NAME = "handtools"
SERVER_INFO = {"name": SERVER_NAME, "version": __version__, "title": SERVER_NAME}
SERVER_CAPABILITIES = ("tools", "resources", "prompts")
REMOTE_WORKSPACE_CAPABILITIES = ("tools",)
"""Capabilities for a workspace on another machine. The others need the journal, which is on that machine."""
SERVER_INSTRUCTIONS = """\
Tools for working on code in one folder. Paths are relative to it; nothing outside it is accessible.
Use these for files and commands, even if the client has its own tools for that: only these calls are
confined, logged and can be undone.
Every call is checked against a policy and logged: `undo` reverts a call, a turn or the last change to a
path. Long output is cut but stored in full: `read` its `output:` path by range. A call waiting for approval
has changed nothing yet."""

STORED_TOOLS_LIST_FILE = Path(__file__).with_name("coding.json")
"""The stored result of `tools/list` for the coding preset, on a machine that runs commands.

Building it imports pydantic and every tool, which would take up most of the time to the first response.
`just docs` regenerates the file, and a test compares it with the tools.
"""


def stored_tools_list() -> dict[str, Any] | None:
    """Load the stored result of `tools/list`; None if it must be built because the system is not Linux."""
    if not sys.platform.startswith("linux"):
        return None
    found: dict[str, Any] = json.loads(STORED_TOOLS_LIST_FILE.read_bytes())
    return found


NEXT_HANDSHAKE_LINE_SECONDS = 0.3
"""Seconds to wait for the client's next handshake message before the toolbox is opened anyway."""
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CURRENT_PROTOCOL_VERSION = "2026-07-28"
MCP_META_PREFIX = "io.modelcontextprotocol/"

CURRENT_RESULT_MARKS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Fields of results that older protocol versions do not have."""

DEFERRED_METHODS = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
"""MCP methods that are answered after the tools are listed."""

Json = dict[str, Any]


@dataclass(slots=True)
class HandshakeResponder:
    """Answers a client's first JSON-RPC lines on stdio and keeps those that the session must still process."""

    listed: Callable[[], Json]
    """Returns the result of `tools/list`."""
    say: Callable[[bytes], None]
    heard: list[bytes] = field(default_factory=list)
    """Lines already read that the session must process."""
    silent: set[str | int] = field(default_factory=set)
    """Ids of requests in these lines that were already answered."""
    capabilities: tuple[str, ...] = SERVER_CAPABILITIES

    async def greet(self, reader: asyncio.StreamReader) -> None:
        """Answer lines until `tools/list` is answered, another method is called, or the client pauses."""
        patience: float | None = None
        while True:
            try:
                line = await asyncio.wait_for(reader.readline(), patience)
            except TimeoutError:
                return
            except ValueError:
                line = b"{\n"
            if not self._answer(line):
                return
            patience = NEXT_HANDSHAKE_LINE_SECONDS

    def _answer(self, line: bytes) -> bool:
        """Answer one JSON-RPC line or keep it; return False if the session must take over now."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        match message:
            case {
                "method": "initialize",
                "id": str() | int() as name,
                "params": {"protocolVersion": str() as version},
            }:
                self.heard.append(line)
                self.silent.add(name)
                self._send_result(
                    name,
                    {
                        "protocolVersion": agreed_version(version),
                        "serverInfo": SERVER_INFO,
                        **self._capabilities_and_instructions(),
                    },
                )
                return True
            case {"method": "notifications/initialized"} if self.silent:
                self.heard.append(line)
                return True
            case {"method": str() as method} if method in DEFERRED_METHODS and (
                self.silent or _is_current_request(message)
            ):
                # Clients send these along with `tools/list` but wait only for the tools, so list the tools first.
                self.heard.append(line)
                return True
            case {"method": "server/discover", "id": str() | int() as name, "params": {"_meta": meta}} if (
                is_current_meta(meta)
            ):
                discovered = {
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                    **self._capabilities_and_instructions(),
                    "supportedVersions": [CURRENT_PROTOCOL_VERSION],
                }
                self._send_result(name, result_for_version(discovered, CURRENT_PROTOCOL_VERSION))
                return True
            case {"method": "tools/list", "id": str() | int() as name, "params": {"_meta": meta}} if (
                is_current_meta(meta)
            ):
                self._send_result(name, result_for_version(self.listed(), CURRENT_PROTOCOL_VERSION))
                return False
            case {"method": "tools/list", "id": str() | int() as name} if self.silent:
                self._send_result(name, result_for_version(self.listed(), HANDSHAKE_VERSIONS[-1]))
                return False
        self.heard.append(line)
        return False

    def _capabilities_and_instructions(self) -> Json:
        return {
            "capabilities": {part: {} for part in self.capabilities},
            "instructions": SERVER_INSTRUCTIONS,
        }

    def _send_result(self, name: str | int, result: Json) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": name, "result": result}).encode() + b"\n")


def agreed_version(version: str) -> str:
    """The protocol version of a session whose client requests this one in `initialize`."""
    return version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def result_for_version(result: Json, version: str) -> Json:
    """A result as a protocol version defines it: only the current one has marks and the server's name."""
    if version == CURRENT_PROTOCOL_VERSION:
        return {**result, "_meta": {**result.get("_meta", {}), f"{MCP_META_PREFIX}serverInfo": SERVER_INFO}}
    return {key: value for key, value in result.items() if key not in CURRENT_RESULT_MARKS}


def _is_current_request(message: Json) -> bool:
    """Whether a request has the `_meta` of the current protocol version."""
    match message:
        case {"params": {"_meta": meta}}:
            return is_current_meta(meta)
    return False


def is_current_meta(meta: Any) -> bool:
    """Whether a `_meta` names the current protocol version and the client's capabilities."""
    if (
        not isinstance(meta, dict)
        or meta.get(f"{MCP_META_PREFIX}protocolVersion") != CURRENT_PROTOCOL_VERSION
    ):
        return False
    return isinstance(meta.get(f"{MCP_META_PREFIX}clientCapabilities"), dict)
