"""A language server that behaves badly, in the way its first argument says. Small, and only for tests."""

import json
import os
import signal
import sys

WAY = sys.argv[1]


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    sys.stdout.buffer.flush()


def receive():
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length"):
            size = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(size)) if size else None


def errors(text):
    return [
        {
            "range": {"start": {"line": n, "character": 0}, "end": {"line": n, "character": 1}},
            "severity": 1,
            "message": row.strip(),
        }
        for n, row in enumerate(text.splitlines())
        if "ERROR" in row
    ]


def main():
    texts = {}
    if WAY == "exits":
        sys.exit(3)
    if WAY == "stays":
        # Deaf to everything that asks it to go, with a child that is, too.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            while True:
                signal.pause()
    while (message := receive()) is not None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            if WAY == "mute":
                continue
            send({"id": message["id"], "result": {"capabilities": {"diagnosticProvider": {}}}})
        elif method == "textDocument/didOpen":
            texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            texts[params["textDocument"]["uri"]] = params["contentChanges"][0]["text"]
        elif method == "textDocument/diagnostic":
            text = texts[params["textDocument"]["uri"]]
            if WAY == "hangs" and "ERROR" in text:
                continue
            if WAY == "garbage" and "ERROR" in text:
                sys.stdout.buffer.write(b"\x00\xff no message at all \r\n\r\n" * 100)
                sys.stdout.buffer.flush()
                continue
            if WAY == "dies" and "ERROR" in text:
                os.kill(os.getpid(), signal.SIGKILL)
            while WAY == "floods" and "ERROR" in text:
                send({"method": "window/logMessage", "params": {"type": 4, "message": "x" * 1000}})
            send({"id": message["id"], "result": {"kind": "full", "items": errors(text)}})
        elif method == "shutdown":
            if WAY != "stays":
                send({"id": message["id"], "result": None})
        elif method == "exit" and WAY != "stays":
            sys.exit(0)


main()
