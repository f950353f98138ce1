"""A model service on loopback that plays a script, and remembers what the model was given at each step."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.e2e.clients.wires.anthropic_messages import AnthropicMessages
from tests.e2e.clients.wires.chat_completions import ChatCompletions
from tests.e2e.clients.wires.gemini import Gemini
from tests.e2e.clients.wires.openai_responses import OpenaiResponses
from tests.e2e.clients.wires.shapes import Chosen, Json, Reply, Returned, Wire, in_json

WIRES: dict[str, Wire] = {
    "/messages": AnthropicMessages(),
    "/responses": OpenaiResponses(),
    "/chat/completions": ChatCompletions(),
    "GenerateContent": Gemini(),
    "generateContent": Gemini(),
    "countTokens": Gemini(),
}


@dataclass(frozen=True)
class Step:
    """One call that the model makes."""

    tool: str
    args: Json | Callable[[Sequence[Returned]], Json]
    """Or what makes them of the results so far."""
    before: Callable[[Sequence[Returned]], object] = lambda _: None
    """What happens in the world before the model speaks."""


@dataclass
class ScriptedModel:
    """The script, and how far it got."""

    steps: Sequence[Step]
    prefix: str
    """What the client puts before the names of our tools."""
    returned: list[Returned] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    """At each step, the full names of all tools."""
    requests: list[str] = field(default_factory=list)
    """What was asked, for a report when something goes wrong."""
    problem: str = ""
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def serve(self) -> Iterator["ScriptedModel"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def respond(self, path: str, body: Json) -> Reply:
        """The answer to any request: how far the script got is told by the results that the request carries."""
        plain = path.partition("?")[0]
        wire = next((wire for word, wire in WIRES.items() if word in plain), None)
        with self._lock:
            if wire is None:
                self.requests.append(path)
                return in_json({"data": [], "object": "list"})
            chosen = None
            if "ount" not in plain.rpartition("/")[2]:
                chosen = self._next(wire, path, body)
            return wire.answer(plain, body, chosen)

    def _next(self, wire: Wire, path: str, body: Json) -> Chosen | None:
        offered, returned = wire.offered(body), wire.returned(body)
        self.requests.append(f"{path}: {len(offered)} tools, {len(returned)} results")
        ours = {name.removeprefix(self.prefix) for name in offered if name.startswith(self.prefix)}
        if not self.steps or self.steps[0].tool not in ours:
            self.problem = f"our tools are not among {offered}"
            return None  # or it is about a title for the session, or the like
        # A request that is sent again carries what was noted before.
        self.returned += returned[len(self.returned) :]
        number = len(returned)
        if number >= len(self.steps):
            return None
        step = self.steps[number]
        if step.tool not in ours:
            self.problem = f"{self.prefix}{step.tool} is not offered: {offered}"
            return None
        if number == len(self.offered):
            self.offered.append(offered)
            step.before(self.returned)
        args = step.args(self.returned) if callable(step.args) else step.args
        return Chosen(self.prefix + step.tool, args, number)

    def report(self) -> str:
        return "\n".join([*self.requests, self.problem, *(str(each)[:400] for each in self.returned[-1:])])


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing: the test's output is for the test."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            self.reply(model.respond(self.path, json.loads(raw or b"{}")))

        def do_GET(self) -> None:
            self.reply(in_json({"data": [], "object": "list"}))

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

        def reply(self, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("content-type", reply.kind)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

    return Handler
