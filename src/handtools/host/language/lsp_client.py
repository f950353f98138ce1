"""A Language Server Protocol client: `initialize`, requests, open documents and their files."""

import asyncio
import contextlib
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from handtools.core.errors import SymlinkInPath
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.host.language.server_process import (
    InvalidMessage,
    LspMessage,
    ServerFailure,
    ServerLost,
    ServerProcess,
    encode_message,
    read_message,
)
from handtools.host.language.servers import LanguageServer, file_suffix
from handtools.text.encoding import decode

_SYMBOL_KIND_SET = {"valueSet": list(range(1, 27))}
_CODE_ACTION_KINDS = [
    "",
    "quickfix",
    "refactor",
    "refactor.rewrite",
    "source",
    "source.organizeImports",
    "source.fixAll",
]
_DOCUMENT_CAPABILITIES: dict[str, Any] = {
    "synchronization": {"didSave": True},
    "publishDiagnostics": {"versionSupport": True},
    "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    "definition": {},
    "references": {},
    "implementation": {},
    "hover": {"contentFormat": ["plaintext", "markdown"]},
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, "symbolKind": _SYMBOL_KIND_SET},
    "callHierarchy": {},
    "rename": {"prepareSupport": True},
    "codeAction": {
        "codeActionLiteralSupport": {"codeActionKind": {"valueSet": _CODE_ACTION_KINDS}},
        "resolveSupport": {"properties": ["edit"]},
        "dataSupport": True,
        "isPreferredSupport": True,
    },
}
_WORKSPACE_CAPABILITIES: dict[str, Any] = {
    "configuration": True,
    "workspaceFolders": True,
    "didChangeWatchedFiles": {"dynamicRegistration": True},
    "didChangeConfiguration": {},
    "symbol": {"symbolKind": _SYMBOL_KIND_SET},
    "applyEdit": True,
    "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
    "diagnostics": {"refreshSupport": True},
    "executeCommand": {},
}


def initialize_params(server: LanguageServer, root: str, folder: str) -> dict[str, Any]:
    """The parameters of the `initialize` request; `folder` contains the server's own packages."""
    uri = Path(root).as_uri()
    return {
        # Our pid does not exist in the sandbox's PID namespace, so the server would exit. The supervisor
        # kills the server when we exit.
        "processId": None,
        "clientInfo": {"name": "handtools"},
        "rootUri": uri,
        "rootPath": root,
        "workspaceFolders": [{"uri": uri, "name": Path(root).name}],
        "initializationOptions": _initialization_options(server, folder),
        "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": _DOCUMENT_CAPABILITIES,
            "workspace": _WORKSPACE_CAPABILITIES,
            "window": {"workDoneProgress": True},
            "experimental": {"serverStatusNotification": True},
        },
    }


def _initialization_options(server: LanguageServer, folder: str) -> dict[str, Any]:
    options = dict(server.options)
    if server.proof == "tsserver" and folder:
        # Fall back to the TypeScript next to the server for projects without TypeScript or tsserver.
        own = Path(folder, "typescript", "lib", "tsserver.js")
        if own.is_file():
            options["tsserver"] = {**options.get("tsserver", {}), "fallbackPath": str(own)}
    return options


LSP_REQUEST_SECONDS = 10.0
INITIALIZE_SECONDS = 45.0
LSP_SHUTDOWN_SECONDS = 2.0
MAX_OPEN_DOCUMENTS = 64
MAX_DOCUMENT_BYTES = 1 << 20
"""Larger files are not sent to a language server: they are data or generated."""
MAX_PUBLISHED = 4096
"""Maximum number of files whose published diagnostics are kept; the oldest are dropped."""
MAX_MESSAGES_PER_SECOND = 20_000
"""A server that sends more messages per second is treated as broken."""
_REQUEST_FAILED, _CONTENT_MODIFIED, _SERVER_CANCELLED = -32803, -32801, -32802


class ResponseTimeout(ServerFailure):
    """Raised when a language server did not answer in time."""


class ResponseError(ServerFailure):
    """Raised when a language server answered a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def passing(self) -> bool:
        """Whether the error is temporary (ContentModified, ServerCancelled) and a retry makes sense."""
        return self.code in {_CONTENT_MODIFIED, _SERVER_CANCELLED}


@dataclass(slots=True)
class OpenDocument:
    """An open document: the text and version last sent to the server."""

    uri: str
    version: int
    text: str
    changed: int
    """The number of the last message received before the text was sent; later diagnostics have a higher one."""


@dataclass(frozen=True, slots=True)
class PublishedDiagnostics:
    """Diagnostics that a server pushed (`publishDiagnostics`), with version and message number."""

    version: int | None
    items: Sequence[LspMessage]
    number: int
    at: float


class LspClient:
    """A connection to one language server; all methods must be called on its event loop."""

    def __init__(self, server: LanguageServer, root: str, process: ServerProcess) -> None:
        self.server = server
        self.root = root
        self.process = process
        self.capabilities: Mapping[str, Any] = {}
        self._registered: dict[str, tuple[str, LspMessage]] = {}
        self.documents: OrderedDict[str, OpenDocument] = OrderedDict()
        self.pushes: OrderedDict[str, PublishedDiagnostics] = OrderedDict()
        self.running_progress: set[str] = set()
        """Tokens of the work-done progress that the server has begun and not ended."""
        self.ended_progress: dict[str, int] = {}
        """For each ended progress token, the number of the message that ended it."""
        self.quiescent: bool | None = None
        """Whether the server reported that it has finished loading; None if it never did."""
        self.proved = False
        """Whether the server has given proved diagnostics; before that, it may still be loading."""
        self.fault = ""
        """Why the server can no longer be used; empty while it can."""
        self.proposed: list[LspMessage] = []
        """Workspace edits that the server asked us to apply while it ran a command."""
        self.number = 0
        """Number of received messages; orders messages by arrival."""
        self._ids = itertools.count(1)
        self._open_requests: dict[int, asyncio.Future[Any]] = {}
        self._message_waiters: set[asyncio.Future[bool]] = set()
        self._reading = asyncio.create_task(self._read_messages())

    async def start(self, folder: str) -> None:
        """Send `initialize`, `initialized` and the settings; requests can be sent afterwards.

        `folder` contains the server's own packages.
        """
        answer = await self.request(
            "initialize", initialize_params(self.server, self.root, folder), INITIALIZE_SECONDS
        )
        self.capabilities = (answer or {}).get("capabilities") or {}
        self.notify("initialized", {})
        if self.server.settings:
            self.notify("workspace/didChangeConfiguration", {"settings": self.server.settings})

    @property
    def alive(self) -> bool:
        """Whether requests can still be sent to the server."""
        return not self.fault and not self.process.over

    def offers(self, capability: str, method: str) -> bool:
        """Whether the server announced a capability, statically or by dynamic registration."""
        # An empty object means supported, without options.
        given = self.capabilities.get(capability)
        return given not in (None, False) or self.registered(method) is not None

    def registered(self, method: str) -> LspMessage | None:
        """The options of a dynamically registered method; None if the server did not register it."""
        return next((options for name, options in self._registered.values() if name == method), None)

    async def request(self, method: str, params: Any, seconds: float = LSP_REQUEST_SECONDS) -> Any:
        """Send a request and wait for its result; cancels the request on timeout.

        Raises `ResponseTimeout`, `ResponseError` or `ServerLost`.
        """
        if not self.alive:
            raise ServerLost(self.fault or "it has exited")
        identity, loop = next(self._ids), asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._open_requests[identity] = answer
        self._send_message({"id": identity, "method": method, "params": params})
        # Not `wait_for`: it costs an extra event loop iteration per response.
        timer = loop.call_later(
            max(seconds, 0.0), _set_exception_if_pending, answer, ResponseTimeout(method)
        )
        try:
            return await answer
        except ResponseTimeout:
            self.notify("$/cancelRequest", {"id": identity})
            raise
        except asyncio.CancelledError:
            if answer.cancelled():
                self.notify("$/cancelRequest", {"id": identity})
            raise
        finally:
            timer.cancel()
            self._open_requests.pop(identity, None)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification, which has no response."""
        self._send_message({"method": method, "params": params})

    def tell(self, uri: str, text: str) -> OpenDocument:
        """Send a file's text: `didOpen`, or `didChange` if it is open with a different text."""
        document = self.documents.get(uri)
        if document is None:
            return self._open_document(uri, text, 1)
        self.documents.move_to_end(uri)
        if document.text == text:
            return document
        document.version += 1
        document.text, document.changed = text, self.number
        versioned = {"uri": uri, "version": document.version}
        self.notify(
            "textDocument/didChange", {"textDocument": versioned, "contentChanges": [{"text": text}]}
        )
        return document

    def saved(self, uri: str) -> None:
        """Send `didSave` for an open document."""
        document = self.documents.get(uri)
        if document is not None:
            self.notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": document.text})

    def reopen(self, uri: str) -> OpenDocument:
        """Close and open a document again, so that the server checks it from the start."""
        document = self.documents[uri]
        self.close_document(uri)
        return self._open_document(uri, document.text, document.version + 1)

    def close_document(self, uri: str) -> None:
        """Send `didClose` for a document."""
        if self.documents.pop(uri, None) is not None:
            self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def wait_for_message(self, seconds: float) -> bool:
        """Wait until the server sends any message; False if none came within `seconds`."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._message_waiters.add(waiter)
        timer = loop.call_later(max(seconds, 0.0), _set_result_if_pending, waiter, False)  # noqa: FBT003 - a result, not a flag
        try:
            return await waiter
        finally:
            timer.cancel()
            self._message_waiters.discard(waiter)

    async def stop(self, why: str = "it was stopped") -> None:
        """Send `shutdown` and `exit`, then kill the process if it is still running."""
        if self.alive and not self.process.clogged:
            with contextlib.suppress(ServerFailure):
                await self.request("shutdown", None, LSP_SHUTDOWN_SECONDS)
                self.notify("exit", None)
        self._fail_open_requests(why)
        await self.process.kill()
        self._reading.cancel()

    def _open_document(self, uri: str, text: str, version: int) -> OpenDocument:
        document = self.documents[uri] = OpenDocument(uri, version, text, self.number)
        language = self.server.languages.get(file_suffix(uri), "plaintext")
        opened = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": opened})
        while len(self.documents) > MAX_OPEN_DOCUMENTS:
            self.close_document(next(iter(self.documents)))
        return document

    def _send_message(self, message: LspMessage) -> None:
        if self.alive:
            self.process.send(encode_message(message))

    async def _read_messages(self) -> None:
        second, count = 0, 0
        try:
            while (message := await read_message(self.process.reader)) is not None:
                self.number += 1
                count = count + 1 if second == int(time.monotonic()) else 1
                second = int(time.monotonic())
                if count > MAX_MESSAGES_PER_SECOND:
                    raise InvalidMessage("it sends too many messages")
                self._handle_message(message)
                # Yield to other tasks: reading buffered data never suspends.
                await asyncio.sleep(0)
            why = "it exited"
        except InvalidMessage as garbage:
            why = f"it sent invalid data: {garbage}"
        complaint = self.process.complaint
        self._fail_open_requests(f"{why} ({complaint})" if complaint else why)
        await self.process.kill()

    def _fail_open_requests(self, why: str) -> None:
        self.fault = self.fault or why
        for answer in self._open_requests.values():
            _set_exception_if_pending(answer, ServerLost(self.fault))
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        for waiter in self._message_waiters:
            _set_result_if_pending(waiter, True)  # noqa: FBT003

    def _handle_message(self, message: LspMessage) -> None:
        method = message.get("method")
        if method is None:
            self._handle_response(message)
        elif "id" in message:
            self._send_message(
                {
                    "id": message["id"],
                    "result": self._result_for_server_request(method, message.get("params") or {}),
                }
            )
        else:
            self._handle_notification(method, message.get("params") or {})
        self._wake_waiters()

    def _handle_response(self, message: LspMessage) -> None:
        identity = message.get("id")
        answer = self._open_requests.get(identity) if isinstance(identity, int) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error:
            answer.set_exception(
                ResponseError(int(error.get("code") or _REQUEST_FAILED), str(error.get("message")))
            )
        else:
            answer.set_result(message.get("result"))

    def _result_for_server_request(self, method: str, params: LspMessage) -> Any:
        """The result for a request from the server; null if it is unknown, since some servers exit on an error."""
        if method == "workspace/configuration":
            return [
                self._setting_of_section(str(item.get("section") or ""))
                for item in params.get("items") or ()
            ]
        if method == "client/registerCapability":
            for each in params.get("registrations") or ():
                self._registered[each["id"]] = (each["method"], each.get("registerOptions") or {})
        elif method == "client/unregisterCapability":
            for each in params.get("unregisterations") or ():
                self._registered.pop(each["id"], None)
        elif method == "workspace/workspaceFolders":
            return [{"uri": Path(self.root).as_uri(), "name": Path(self.root).name}]
        elif method == "workspace/applyEdit":
            self.proposed.append(params.get("edit") or {})
            return {"applied": True}
        return None

    def _setting_of_section(self, section: str) -> Any:
        if not section:
            return dict(self.server.settings)
        if section in self.server.settings:
            return self.server.settings[section]
        found: Any = self.server.settings
        for part in section.split("."):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found

    def _handle_notification(self, method: str, params: LspMessage) -> None:
        if method == "textDocument/publishDiagnostics":
            uri = str(params.get("uri"))
            published = PublishedDiagnostics(
                params.get("version"), params.get("diagnostics") or (), self.number, time.monotonic()
            )
            self.pushes[uri] = published
            self.pushes.move_to_end(uri)
            while len(self.pushes) > MAX_PUBLISHED:
                self.pushes.popitem(last=False)
        elif method == "$/progress":
            self._handle_progress(str(params.get("token")), (params.get("value") or {}).get("kind"))
        elif method == "experimental/serverStatus":
            self.quiescent = bool(params.get("quiescent"))

    def _handle_progress(self, token: str, kind: Any) -> None:
        if kind == "begin":
            self.running_progress.add(token)
        elif kind == "end":
            self.running_progress.discard(token)
            self.ended_progress[token] = self.number


def _set_exception_if_pending(answer: "asyncio.Future[Any]", failure: ResponseTimeout | ServerLost) -> None:
    if not answer.done():
        answer.set_exception(failure)


def _set_result_if_pending(waiter: "asyncio.Future[bool]", came: bool) -> None:  # noqa: FBT001
    if not waiter.done():
        waiter.set_result(came)


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """Converts between workspace paths and file URIs, and reads the files from disk."""

    workspace: str

    def uri(self, path: str) -> str:
        return _file_uri(self.workspace, path)

    def path(self, uri: str) -> str | None:
        """The workspace path of a file URI; None if it is outside the workspace."""
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return None
        name = os.path.normpath(unquote(parts.path))
        inside = name.startswith(f"{self.workspace.rstrip('/')}/")
        return os.path.relpath(name, self.workspace) if inside else None

    def read(self, path: str) -> bytes | None:
        """A file's bytes on disk; None unless it is a small regular file without symlinks in its path.

        The path comes from a server, and policy rules match paths, so they can't check a symlink's target.
        """
        try:
            status, fd = _workspace_root(self.workspace).stat_and_open_path(path)
        except (OSError, SymlinkInPath):
            return None
        if fd is None:
            return None
        with open(fd, "rb", 0) as file:
            return file.read() if status.st_size <= MAX_DOCUMENT_BYTES else None

    def stamp(self, path: str) -> tuple[int, int] | None:
        """A file's modification time and size, to detect later writes; None if it is missing."""
        try:
            status = os.stat(os.path.join(self.workspace, path))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _workspace_root(workspace: str) -> WorkspaceRoot:
    return WorkspaceRoot(Path(workspace), kernel=True)


@lru_cache(maxsize=1024)
def _file_uri(workspace: str, path: str) -> str:
    return Path(workspace, path).as_uri()


def document_text(data: bytes | None) -> str | None:
    """Decode bytes as text; None if the data is binary or too large."""
    if data is None or len(data) > MAX_DOCUMENT_BYTES or b"\0" in data[:8192]:
        return None
    return decode(data).body
