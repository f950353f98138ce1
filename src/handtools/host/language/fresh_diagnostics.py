"""Get diagnostics that are proved to be for the text last sent to a language server, not for an older one.

Servers support different proofs (see `servers`). Each proof returns the diagnostics or an `unknown` report
with the reason; stale diagnostics are never returned.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from handtools.core.language import Diagnostic, DiagnosticCertainty, DiagnosticReport, Severity
from handtools.host.language.lsp_client import LspClient, OpenDocument, ResponseError, ResponseTimeout
from handtools.host.language.server_process import LspMessage, ServerLost
from handtools.host.language.servers import FreshnessProof
from handtools.text.lines import column_of_utf16, split_lines, without_line_ending

QUIET_PUSH_SECONDS = 0.15
"""Seconds without a push after which a server that sends no versions is assumed to have finished."""
STILL_CHECKING = "server still checking"
_SEVERITIES: Mapping[object, Severity] = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_CATEGORIES = {"error": 1, "warning": 2, "suggestion": 4}
_PULL_METHOD, _SYMBOLS_METHOD = "textDocument/diagnostic", "textDocument/documentSymbol"

ProofResult = tuple[DiagnosticCertainty, Sequence[LspMessage]]


async def proved_diagnostics(
    client: LspClient, document: OpenDocument, path: str, deadline: float
) -> DiagnosticReport:
    """The proved diagnostics of a document's current version; or an `unknown` report with the reason."""
    began, version = time.monotonic(), document.version
    standing: DiagnosticCertainty = "unknown"
    items: Sequence[LspMessage] = ()
    why = ""
    try:
        standing, items = await _PROOFS[client.server.proof](client, document, deadline)
    except ResponseTimeout:
        why = STILL_CHECKING
    except (ServerLost, ResponseError) as failure:
        why = str(failure)
    if standing != "unknown" and document.version != version:
        standing, items, why = "unknown", (), "the file changed again"
    client.proved = client.proved or standing != "unknown"
    found = diagnostics_from_lsp(items, path, document.text)
    return DiagnosticReport(path, client.server.name, standing, found, why, time.monotonic() - began)


def diagnostics_from_lsp(items: Sequence[LspMessage], path: str, text: str) -> tuple[Diagnostic, ...]:
    """Convert a server's LSP diagnostics to `Diagnostic` values, without duplicates."""
    rows = split_lines(text) if items else []
    found = []
    for item in items:
        start = (item.get("range") or {}).get("start") or {}
        line, at = int(start.get("line", 0)), int(start.get("character", 0))
        place = column_of_utf16(without_line_ending(rows[line]), at) if line < len(rows) else 0
        code = item.get("code")
        if isinstance(code, dict):
            code = code.get("value")
        found.append(
            Diagnostic(
                path,
                line + 1,
                place,
                _message_text(item.get("message")),
                "" if code is None else str(code),
                str(item.get("source") or ""),
                # The severity is optional in the protocol: default to error instead of hiding it.
                _SEVERITIES.get(item.get("severity"), "error"),
            )
        )
    return tuple(dict.fromkeys(sorted(found, key=lambda each: (each.line, each.column))))


def _message_text(message: Any) -> str:
    return str(message.get("value", "")) if isinstance(message, dict) else str(message)


async def _prove_by_pull(client: LspClient, document: OpenDocument, deadline: float) -> ProofResult:
    """Proof 1: diagnostics pulled after the change from a server that has finished loading."""
    while True:
        await _wait_until(
            client, deadline, lambda: _has_finished_loading(client) and _supports_pulled_diagnostics(client)
        )
        options = client.registered(_PULL_METHOD) or client.capabilities.get("diagnosticProvider") or {}
        question: LspMessage = {"textDocument": {"uri": document.uri}}
        if isinstance(options, dict) and options.get("identifier"):
            question["identifier"] = options["identifier"]
        try:
            answer = await client.request(_PULL_METHOD, question, deadline - time.monotonic())
        except ResponseError as refusal:
            if not refusal.passing:
                raise
            await client.wait_for_message(0.05)
            continue
        # A response started while the server was loading may be empty.
        if _has_finished_loading(client):
            return "fresh", (answer or {}).get("items") or ()


async def _prove_by_version(client: LspClient, document: OpenDocument, deadline: float) -> ProofResult:
    """Proof 2: pushed diagnostics with the version we sent or a later one."""

    def told() -> bool:
        push = client.pushes.get(document.uri)
        return push is not None and push.version is not None and push.version >= document.version

    await _wait_until(client, deadline, told)
    return "fresh", client.pushes[document.uri].items


async def _prove_by_tsserver(client: LspClient, document: OpenDocument, deadline: float) -> ProofResult:
    """Proof 3: tsserver's own commands, which it answers in order and only after checking."""
    found: list[LspMessage] = []
    path = document.uri.removeprefix("file://")
    for command in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
        arguments = [command, {"file": unquote(path)}]
        question = {"command": "typescript.tsserverRequest", "arguments": arguments}
        while True:
            answer = await client.request("workspace/executeCommand", question, deadline - time.monotonic())
            body = (answer or {}).get("body")
            if isinstance(body, list):
                break
            # The project is not loaded yet; tsserver reports that instead of waiting.
            if deadline - time.monotonic() <= 0:
                raise ResponseTimeout(command)
            await client.wait_for_message(0.05)
        found += [_lsp_diagnostic_from_tsserver(each) for each in body]
    return "fresh", found


async def _prove_by_flycheck(client: LspClient, document: OpenDocument, deadline: float) -> ProofResult:
    """Proof 4: the end of the compiler run (flycheck) after our save, plus the server's diagnostics."""

    def checked() -> bool:
        ends = (number for token, number in client.ended_progress.items() if "flycheck" in token)
        running = any("flycheck" in token for token in client.running_progress)
        return not running and any(number > document.changed for number in ends)

    await _wait_until(client, deadline, lambda: client.quiescent is not False and checked())
    push = client.pushes.get(document.uri)
    pushed = push.items if push is not None else ()
    own: Sequence[LspMessage] = ()
    if _supports_pulled_diagnostics(client):
        _, own = await _prove_by_pull(client, document, deadline)
    return "fresh", [*pushed, *own]


async def _prove_by_quiet_push(client: LspClient, document: OpenDocument, deadline: float) -> ProofResult:
    """Proof 5: diagnostics pushed after the change, a later request answered, and no push for a while.

    The diagnostics are likely, but not certain, to be current.
    """
    # An error response also proves that the server has processed the change.
    with contextlib.suppress(ResponseError):
        await client.request(
            _SYMBOLS_METHOD, {"textDocument": {"uri": document.uri}}, deadline - time.monotonic()
        )

    def quiet() -> bool:
        push = client.pushes.get(document.uri)
        return (
            push is not None
            and push.number > document.changed
            and time.monotonic() - push.at >= QUIET_PUSH_SECONDS
        )

    await _wait_until(client, deadline, quiet, pause=QUIET_PUSH_SECONDS / 3)
    return "likely", client.pushes[document.uri].items


_PROOFS: Mapping[FreshnessProof, Callable[[LspClient, OpenDocument, float], Awaitable[ProofResult]]] = {
    "pull": _prove_by_pull,
    "version": _prove_by_version,
    "tsserver": _prove_by_tsserver,
    "flycheck": _prove_by_flycheck,
    "push": _prove_by_quiet_push,
}


async def _wait_until(
    client: LspClient, deadline: float, holds: Callable[[], bool], *, pause: float | None = None
) -> None:
    """Wait until a condition is true; raises `ResponseTimeout` at the deadline."""
    while not holds():
        left = deadline - time.monotonic()
        if left <= 0:
            raise ResponseTimeout("no proof")
        if not client.alive:
            raise ServerLost(client.fault or "it has exited")
        await client.wait_for_message(left if pause is None else min(left, pause))


def _has_finished_loading(client: LspClient) -> bool:
    return client.quiescent is not False and not client.running_progress


def _supports_pulled_diagnostics(client: LspClient) -> bool:
    return client.offers("diagnosticProvider", _PULL_METHOD)


def _lsp_diagnostic_from_tsserver(item: LspMessage) -> LspMessage:
    start = item.get("start") or item.get("startLocation") or {}
    at = {"line": int(start.get("line", 1)) - 1, "character": int(start.get("offset", 1)) - 1}
    return {
        "range": {"start": at, "end": at},
        "severity": _CATEGORIES.get(str(item.get("category")), 1),
        "message": item.get("text") or item.get("message") or "",
        "code": item.get("code"),
        "source": "typescript",
    }
