"""The greeting: the first questions of every client, answered before the SDK is loaded.

A client shows our tools once it has an answer to `initialize` and `tools/list`. Both are known without the SDK,
whose import takes longer than all the rest: so they are answered first, and the SDK is loaded then. What it has
to know of is handed to it afterwards, and its own answers to that are kept back; a test holds that both are alike.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handtools.mcp.introduction import IDENTITY, INSTRUCTIONS, OFFERED

PATIENCE = 0.3
"""Seconds to wait for the next question before the SDK is loaded anyway."""
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CURRENT = "2026-07-28"
KEYS = "io.modelcontextprotocol/"

LATER = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
"""Questions for the SDK, which can wait until the tools are told."""

Json = dict[str, Any]


@dataclass(slots=True)
class Greeting:
    """Answers the first lines of a client."""

    listed: Callable[[], Json]
    """The answer to `tools/list`."""
    say: Callable[[bytes], None]
    heard: list[bytes] = field(default_factory=list)
    """Lines that the SDK is to hear."""
    silent: set[str | int] = field(default_factory=set)
    """Requests among them that have been answered."""

    async def greet(self, reader: asyncio.StreamReader) -> None:
        """Answer until something else is asked, the tools were told, or nothing more comes."""
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
            patience = PATIENCE

    def _answer(self, line: bytes) -> bool:
        """Answer a line; False when it is time for the SDK."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        match message:
            case {
                "method": "initialize",
                "id": str() | int() as name,
                "params": {"protocolVersion": str() as version},
            }:
                self.heard.append(line)
                self.silent.add(name)
                self._say(name, _handshake(version))
                return True
            case {"method": "notifications/initialized"} if self.silent:
                self.heard.append(line)
                return True
            case {"method": str() as method} if method in LATER and (self.silent or _envelops(message)):
                # Clients ask for these beside the tools, and wait for the tools alone: they come first.
                self.heard.append(line)
                return True
            case {"method": "server/discover", "id": str() | int() as name, "params": {"_meta": meta}} if (
                _current(meta)
            ):
                self._say(name, _stamped({**_current_marks(), **_offer(), "supportedVersions": [CURRENT]}))
                return True
            case {"method": "tools/list", "id": str() | int() as name, "params": {"_meta": meta}} if (
                _current(meta)
            ):
                self._say(name, _stamped(self.listed()))
                return False
            case {"method": "tools/list", "id": str() | int() as name} if self.silent:
                self._say(name, {"tools": self.listed()["tools"]})
                return False
        self.heard.append(line)
        return False

    def _say(self, name: str | int, result: Json) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": name, "result": result}).encode() + b"\n")


def _handshake(version: str) -> Json:
    agreed = version if version in HANDSHAKES else HANDSHAKES[-1]
    return {"protocolVersion": agreed, "serverInfo": IDENTITY, **_offer()}


def _offer() -> Json:
    return {"capabilities": {part: {} for part in OFFERED}, "instructions": INSTRUCTIONS}


def _current_marks() -> Json:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _stamped(result: Json) -> Json:
    return {**result, "_meta": {f"{KEYS}serverInfo": IDENTITY}}


def _envelops(message: Json) -> bool:
    """Whether a request brings the envelope of the current protocol along."""
    match message:
        case {"params": {"_meta": meta}}:
            return _current(meta)
    return False


def _current(meta: Any) -> bool:
    """Whether the envelope is one that the SDK would take; any other is left to it."""
    if not isinstance(meta, dict) or meta.get(f"{KEYS}protocolVersion") != CURRENT:
        return False
    return isinstance(meta.get(f"{KEYS}clientCapabilities"), dict)
