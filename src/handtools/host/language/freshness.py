"""Freshness: a verdict counts only if the server proves that it is about the text it was last given.

Servers differ in what they let us prove, so each has its own proof (see `servers`). All end the same way: with
what was found, or with no verdict and why. There is no third way: nothing old is ever taken for an answer.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from handtools.core.language import Diagnostic, Severity, Standing, Verdict
from handtools.host.language.client import Client, Document, Lost, Refused, Silent
from handtools.host.language.servers import Proof
from handtools.host.language.wire import Message
from handtools.text.lines import bare, split
from handtools.text.positions import column

QUIET_SECONDS = 0.15
"""Without a push this long, a server that tells no versions is taken to have said what it had to say."""
CHECKING = "server still checking"
_SEVERITIES: Mapping[object, Severity] = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_CATEGORIES = {"error": 1, "warning": 2, "suggestion": 4}
_PULL, _SYMBOLS = "textDocument/diagnostic", "textDocument/documentSymbol"

Found = tuple[Standing, Sequence[Message]]


async def prove(client: Client, document: Document, path: str, deadline: float) -> Verdict:
    """What the server says about a document as it was last told, with proof; or no verdict, and why."""
    began, version = time.monotonic(), document.version
    standing: Standing = "unknown"
    items: Sequence[Message] = ()
    why = ""
    try:
        standing, items = await _PROOFS[client.server.proof](client, document, deadline)
    except Silent:
        why = CHECKING
    except (Lost, Refused) as failure:
        why = str(failure)
    if standing != "unknown" and document.version != version:
        standing, items, why = "unknown", (), "the file changed again"
    client.proved = client.proved or standing != "unknown"
    found = read_items(items, path, document.text)
    return Verdict(path, client.server.name, standing, found, why, time.monotonic() - began)


def read_items(items: Sequence[Message], path: str, text: str) -> tuple[Diagnostic, ...]:
    """A server's complaints as values, each once."""
    rows = split(text) if items else []
    found = []
    for item in items:
        start = (item.get("range") or {}).get("start") or {}
        line, at = int(start.get("line", 0)), int(start.get("character", 0))
        place = column(bare(rows[line]), at) if line < len(rows) else 0
        code = item.get("code")
        if isinstance(code, dict):
            code = code.get("value")
        found.append(
            Diagnostic(
                path,
                line + 1,
                place,
                _words(item.get("message")),
                "" if code is None else str(code),
                str(item.get("source") or ""),
                # Without a severity the protocol leaves it to us: silence would be worse.
                _SEVERITIES.get(item.get("severity"), "error"),
            )
        )
    return tuple(dict.fromkeys(sorted(found, key=lambda each: (each.line, each.column))))


def _words(message: Any) -> str:
    return str(message.get("value", "")) if isinstance(message, dict) else str(message)


async def _pulled(client: Client, document: Document, deadline: float) -> Found:
    """P1: asked for after the change, of a server that has loaded."""
    while True:
        await _until(client, deadline, lambda: _loaded(client) and _pulls(client))
        options = client.registered(_PULL) or client.capabilities.get("diagnosticProvider") or {}
        question: Message = {"textDocument": {"uri": document.uri}}
        if isinstance(options, dict) and options.get("identifier"):
            question["identifier"] = options["identifier"]
        try:
            answer = await client.request(_PULL, question, deadline - time.monotonic())
        except Refused as refusal:
            if not refusal.passing:
                raise
            await client.news(0.05)
            continue
        # An answer that was begun while it loads may be empty because it had not looked.
        if _loaded(client):
            return "fresh", (answer or {}).get("items") or ()


async def _versioned(client: Client, document: Document, deadline: float) -> Found:
    """P2: pushed with the version that we told, or a later one."""

    def told() -> bool:
        push = client.pushes.get(document.uri)
        return push is not None and push.version is not None and push.version >= document.version

    await _until(client, deadline, told)
    return "fresh", client.pushes[document.uri].items


async def _synchronous(client: Client, document: Document, deadline: float) -> Found:
    """P3: tsserver's own commands, which answer in order and only when they have looked."""
    found: list[Message] = []
    path = document.uri.removeprefix("file://")
    for command in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
        arguments = [command, {"file": _unquoted(path)}]
        question = {"command": "typescript.tsserverRequest", "arguments": arguments}
        while True:
            answer = await client.request("workspace/executeCommand", question, deadline - time.monotonic())
            body = (answer or {}).get("body")
            if isinstance(body, list):
                break
            # No project yet: it says so instead of waiting.
            if deadline - time.monotonic() <= 0:
                raise Silent(command)
            await client.news(0.05)
        found += [_from_tsserver(each) for each in body]
    return "fresh", found


async def _after_save(client: Client, document: Document, deadline: float) -> Found:
    """P4: the end of the compiler's run that our save began, with what the server finds itself."""

    def checked() -> bool:
        ends = (number for token, number in client.progress.ended.items() if "flycheck" in token)
        running = any("flycheck" in token for token in client.progress.running)
        return not running and any(number > document.changed for number in ends)

    await _until(client, deadline, lambda: client.quiescent is not False and checked())
    push = client.pushes.get(document.uri)
    pushed = push.items if push is not None else ()
    own: Sequence[Message] = ()
    if _pulls(client):
        _, own = await _pulled(client, document, deadline)
    return "fresh", [*pushed, *own]


async def _settled(client: Client, document: Document, deadline: float) -> Found:
    """P5: pushed after a question that was answered after the change, and then quiet. Likely, not more."""
    # An error is an answer, too: it came after the change.
    with contextlib.suppress(Refused):
        await client.request(_SYMBOLS, {"textDocument": {"uri": document.uri}}, deadline - time.monotonic())

    def quiet() -> bool:
        push = client.pushes.get(document.uri)
        return (
            push is not None
            and push.number > document.changed
            and time.monotonic() - push.at >= QUIET_SECONDS
        )

    await _until(client, deadline, quiet, pause=QUIET_SECONDS / 3)
    return "likely", client.pushes[document.uri].items


_PROOFS: Mapping[Proof, Callable[[Client, Document, float], Awaitable[Found]]] = {
    "pull": _pulled,
    "version": _versioned,
    "tsserver": _synchronous,
    "flycheck": _after_save,
    "push": _settled,
}


async def _until(
    client: Client, deadline: float, holds: Callable[[], bool], *, pause: float | None = None
) -> None:
    """Wait until something holds; raises `Silent` when it does not in time."""
    while not holds():
        left = deadline - time.monotonic()
        if left <= 0:
            raise Silent("no proof")
        if not client.alive:
            raise Lost(client.fault or "it has ended")
        await client.news(left if pause is None else min(left, pause))


def _loaded(client: Client) -> bool:
    return client.quiescent is not False and not client.progress.running


def _pulls(client: Client) -> bool:
    return client.offers("diagnosticProvider", _PULL)


def _from_tsserver(item: Message) -> Message:
    start = item.get("start") or item.get("startLocation") or {}
    at = {"line": int(start.get("line", 1)) - 1, "character": int(start.get("offset", 1)) - 1}
    return {
        "range": {"start": at, "end": at},
        "severity": _CATEGORIES.get(str(item.get("category")), 1),
        "message": item.get("text") or item.get("message") or "",
        "code": item.get("code"),
        "source": "typescript",
    }


def _unquoted(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)
