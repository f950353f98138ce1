"""The bare thing: the smallest client that knows the best signal of one server. No pool, no sandbox, no thread."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.language.projects import SEARCH_PATH
from handtools.host.language.lsp_client import initialize_params
from handtools.host.language.servers import LANGUAGE_SERVERS, ServerFinder
from handtools.host.sandbox.program_dependencies import node_modules_folder


class BareClient:
    """One server over pipes, read as it is needed."""

    def __init__(self, name: str, root: Path, path: str, text: str) -> None:
        self.server = next(each for each in LANGUAGE_SERVERS if each.name == name)
        program = ServerFinder(
            str(root), [self.server], confined=lambda: True, search_path=SEARCH_PATH
        ).program(self.server, str(root))
        self.process = subprocess.Popen(
            [program, *self.server.command[1:]],
            cwd=root,
            env=os.environ
            | {"PATH": SEARCH_PATH, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.uri, self.version, self.identity = (root / path).as_uri(), 1, 0
        self.pulls: Any = None
        self.pushes: dict[int, list[dict[str, Any]]] = {}
        answer = self.ask(
            "initialize", initialize_params(self.server, str(root), node_modules_folder(program))
        )
        self.pulls = answer["capabilities"].get("diagnosticProvider")
        self.tell("initialized", {})
        self.tell("workspace/didChangeConfiguration", {"settings": dict(self.server.settings)})
        language = self.server.languages[Path(path).suffix]
        opened = {"uri": self.uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": opened})

    def check(self, text: str) -> tuple[float, list[str]]:
        """Change the text; how long until its errors are known, and what they say."""
        began = time.perf_counter()
        self.version += 1
        versioned = {"uri": self.uri, "version": self.version}
        self.tell("textDocument/didChange", {"textDocument": versioned, "contentChanges": [{"text": text}]})
        items = {"pull": self._pulled, "version": self._pushed, "tsserver": self._commanded}[
            self.server.proof
        ]()
        return time.perf_counter() - began, [str(each.get("message") or each.get("text")) for each in items]

    def _pulled(self) -> list[dict[str, Any]]:
        while self.pulls is None:
            self._take()
        question: dict[str, Any] = {"textDocument": {"uri": self.uri}}
        if isinstance(self.pulls, dict) and self.pulls.get("identifier"):
            question["identifier"] = self.pulls["identifier"]
        return [
            each
            for each in self.ask("textDocument/diagnostic", question)["items"]
            if each.get("severity") == 1
        ]

    def _pushed(self) -> list[dict[str, Any]]:
        while self.version not in self.pushes:
            self._take()
        return [each for each in self.pushes.pop(self.version) if each.get("severity") == 1]

    def _commanded(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for command in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
            arguments = [command, {"file": self.uri.removeprefix("file://")}]
            order = {"command": "typescript.tsserverRequest", "arguments": arguments}
            found += (self.ask("workspace/executeCommand", order) or {}).get("body") or []
        return [each for each in found if each.get("category") == "error"]

    def ask(self, method: str, params: Any) -> Any:
        self.identity += 1
        self._send({"id": self.identity, "method": method, "params": params})
        while True:
            message = self._take()
            if message.get("id") == self.identity and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def _take(self) -> dict[str, Any]:
        assert self.process.stdout
        size = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length"):
                size = int(line.split(b":")[1])
        message: dict[str, Any] = json.loads(self.process.stdout.read(size))
        method, params = message.get("method"), message.get("params") or {}
        if method == "textDocument/publishDiagnostics" and params["uri"] == self.uri:
            if params.get("version") is not None:
                self.pushes[params["version"]] = params["diagnostics"]
        elif method == "client/registerCapability":
            for each in params["registrations"]:
                if each["method"] == "textDocument/diagnostic":
                    self.pulls = each.get("registerOptions") or True
        if method and "id" in message:
            self._send({"id": message["id"], "result": self._reply(method, params)})
        return message

    def _reply(self, method: str, params: dict[str, Any]) -> Any:
        if method != "workspace/configuration":
            return None
        return [self.server.settings.get(each.get("section") or "", {}) for each in params["items"]]
