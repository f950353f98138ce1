"""A client: one language server, what it was told and what it said."""

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handtools.host.language.child import Child
from handtools.host.language.greeting import greeting
from handtools.host.language.servers import Server, suffix
from handtools.host.language.wire import Garbage, Message, encode, receive

REQUEST_SECONDS = 10.0
START_SECONDS = 45.0
SHUTDOWN_SECONDS = 2.0
OPEN_DOCUMENTS = 64
PUSHES = 4096
"""Files whose complaints are kept, the newest."""
FLOOD = 20_000
"""Messages within a second that no honest server sends."""
_FAILED, _MODIFIED, _CANCELLED = -32803, -32801, -32802


class Silent(Exception):
    """No answer came in time."""


class Lost(Exception):
    """The server is gone, or speaks nonsense."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def passing(self) -> bool:
        """Whether it says to ask again: the text changed while it looked, or it was busy."""
        return self.code in {_MODIFIED, _CANCELLED}


@dataclass(slots=True)
class Document:
    """A file as the server was told it is."""

    uri: str
    version: int
    text: str
    changed: int
    """Pushes with a higher number came after it was told."""


@dataclass(frozen=True, slots=True)
class Push:
    """What a server said unasked."""

    version: int | None
    items: Sequence[Message]
    number: int
    at: float


@dataclass(slots=True)
class _Progress:
    """Work that the server says it is doing."""

    running: set[str] = field(default_factory=set)
    ended: dict[str, int] = field(default_factory=dict)
    """The number of the message with which a token last ended."""


class Client:
    """Lives on one event loop; every method is called there."""

    def __init__(self, server: Server, root: str, child: Child) -> None:
        self.server = server
        self.root = root
        self.child = child
        self.capabilities: Mapping[str, Any] = {}
        self._registered: dict[str, tuple[str, Message]] = {}
        self.documents: OrderedDict[str, Document] = OrderedDict()
        self.pushes: OrderedDict[str, Push] = OrderedDict()
        self.progress = _Progress()
        self.quiescent: bool | None = None
        """What it says about its own readiness, if it says anything."""
        self.proved = False
        """Whether it has proved something since it started: until then it may be loading."""
        self.fault = ""
        """Why it can't be used any more."""
        self.proposed: list[Message] = []
        """Edits that it asked us to make while it ran a command."""
        self.number = 0
        """Counts messages; what is larger came later."""
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._listening: set[asyncio.Future[bool]] = set()
        self._reading = asyncio.create_task(self._read())

    async def start(self, folder: str, settings: Mapping[str, Any]) -> None:
        """Greet it; afterwards it can be asked."""
        self._settings = settings
        answer = await self.request("initialize", greeting(self.server, self.root, folder), START_SECONDS)
        self.capabilities = (answer or {}).get("capabilities") or {}
        self.notify("initialized", {})
        if settings:
            self.notify("workspace/didChangeConfiguration", {"settings": settings})

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self.fault and not self.child.over

    def offers(self, capability: str, method: str) -> bool:
        """Whether it can do something."""
        # An empty object is a yes: there is nothing to say about how.
        given = self.capabilities.get(capability)
        return given not in (None, False) or self.registered(method) is not None

    def registered(self, method: str) -> Message | None:
        """The options of an ability that it announced after it was greeted."""
        return next((options for name, options in self._registered.values() if name == method), None)

    async def request(self, method: str, params: Any, seconds: float = REQUEST_SECONDS) -> Any:
        """Ask, and wait for the answer; a question that is given up is taken back."""
        if not self.alive:
            raise Lost(self.fault or "it has ended")
        identity, loop = next(self._ids), asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting[identity] = answer
        self._send({"id": identity, "method": method, "params": params})
        # Not `wait_for`: with it every answer goes round the loop once more.
        timer = loop.call_later(max(seconds, 0.0), _fail, answer, Silent(method))
        try:
            return await answer
        except Silent:
            self.notify("$/cancelRequest", {"id": identity})
            raise
        except asyncio.CancelledError:
            if answer.cancelled():
                self.notify("$/cancelRequest", {"id": identity})
            raise
        finally:
            timer.cancel()
            self._waiting.pop(identity, None)

    def notify(self, method: str, params: Any) -> None:
        """Tell it something."""
        self._send({"method": method, "params": params})

    def tell(self, uri: str, text: str) -> Document:
        """Have it know a file's text: opened, or changed if it is not this already."""
        document = self.documents.get(uri)
        if document is None:
            return self._open(uri, text, 1)
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
        """A file on disk is as it was told."""
        document = self.documents.get(uri)
        if document is not None:
            self.notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": document.text})

    def reopen(self, uri: str) -> Document:
        """Have it look at a file again from the start."""
        document = self.documents[uri]
        self.close(uri)
        return self._open(uri, document.text, document.version + 1)

    def close(self, uri: str) -> None:
        """The file is no longer ours to speak for."""
        if self.documents.pop(uri, None) is not None:
            self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def news(self, seconds: float) -> bool:
        """Wait until it has said something; False when it did not in time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._listening.add(waiter)
        timer = loop.call_later(max(seconds, 0.0), _release, waiter, False)  # noqa: FBT003 - not a flag: what came
        try:
            return await waiter
        finally:
            timer.cancel()
            self._listening.discard(waiter)

    async def stop(self, why: str = "it was ended") -> None:
        """Ask it to go, and see to it that it has."""
        if self.alive and not self.child.clogged:
            with contextlib.suppress(Silent, Lost, Refused):
                await self.request("shutdown", None, SHUTDOWN_SECONDS)
                self.notify("exit", None)
        self._fail(why)
        await self.child.end()
        self._reading.cancel()

    def _open(self, uri: str, text: str, version: int) -> Document:
        document = self.documents[uri] = Document(uri, version, text, self.number)
        language = self.server.languages.get(suffix(uri), "plaintext")
        opened = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": opened})
        while len(self.documents) > OPEN_DOCUMENTS:
            self.close(next(iter(self.documents)))
        return document

    def _send(self, message: Message) -> None:
        if self.alive:
            self.child.send(encode(message))

    async def _read(self) -> None:
        second, count = 0, 0
        try:
            while (message := await receive(self.child.reader)) is not None:
                self.number += 1
                count = count + 1 if second == int(time.monotonic()) else 1
                second = int(time.monotonic())
                if count > FLOOD:
                    raise Garbage("it floods us with messages")
                self._take(message)
                # A reader that always finds something never lets others run.
                await asyncio.sleep(0)
            why = "it ended"
        except Garbage as garbage:
            why = f"it speaks nonsense: {garbage}"
        complaint = self.child.complaint
        self._fail(f"{why} ({complaint})" if complaint else why)
        await self.child.end()

    def _fail(self, why: str) -> None:
        self.fault = self.fault or why
        for answer in self._waiting.values():
            _fail(answer, Lost(self.fault))
        self._wake()

    def _wake(self) -> None:
        for waiter in self._listening:
            _release(waiter, True)  # noqa: FBT003

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            self._settle(message)
        elif "id" in message:
            self._send({"id": message["id"], "result": self._reply(method, message.get("params") or {})})
        else:
            self._hear(method, message.get("params") or {})
        self._wake()

    def _settle(self, message: Message) -> None:
        identity = message.get("id")
        answer = self._waiting.get(identity) if isinstance(identity, int) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error:
            answer.set_exception(Refused(int(error.get("code") or _FAILED), str(error.get("message"))))
        else:
            answer.set_result(message.get("result"))

    def _reply(self, method: str, params: Message) -> Any:
        """What we say when it asks us. Nothing at all, where we have nothing: an error would end some of them."""
        if method == "workspace/configuration":
            return [self._setting(str(item.get("section") or "")) for item in params.get("items") or ()]
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

    def _setting(self, section: str) -> Any:
        if not section:
            return dict(self._settings)
        if section in self._settings:
            return self._settings[section]
        found: Any = self._settings
        for part in section.split("."):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found

    def _hear(self, method: str, params: Message) -> None:
        if method == "textDocument/publishDiagnostics":
            uri = str(params.get("uri"))
            push = Push(
                params.get("version"), params.get("diagnostics") or (), self.number, time.monotonic()
            )
            self.pushes[uri] = push
            self.pushes.move_to_end(uri)
            while len(self.pushes) > PUSHES:
                self.pushes.popitem(last=False)
        elif method == "$/progress":
            self._work(str(params.get("token")), (params.get("value") or {}).get("kind"))
        elif method == "experimental/serverStatus":
            self.quiescent = bool(params.get("quiescent"))

    def _work(self, token: str, kind: Any) -> None:
        if kind == "begin":
            self.progress.running.add(token)
        elif kind == "end":
            self.progress.running.discard(token)
            self.progress.ended[token] = self.number


def _fail(answer: "asyncio.Future[Any]", failure: Silent | Lost) -> None:
    if not answer.done():
        answer.set_exception(failure)


def _release(waiter: "asyncio.Future[bool]", came: bool) -> None:  # noqa: FBT001
    if not waiter.done():
        waiter.set_result(came)
