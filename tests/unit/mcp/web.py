"""HTTP requests to an ASGI application, without a web server between."""

import json

import anyio

ACCEPT = "application/json, text/event-stream"


class Exchange:
    """One HTTP request: what was sent back, and a way to leave."""

    def __init__(self, method, body=b"", session="", lines=(), **headers):
        given = {"accept": ACCEPT, "content-type": "application/json"} | headers
        given |= {"mcp-session-id": session} if session else {}
        self.scope = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "headers": [(name.encode(), value.encode()) for name, value in (*given.items(), *lines)],
        }
        self.body, self.gone = [body], anyio.Event()
        self.status, self.headers, self.said, self.ended = 0, {}, b"", False

    async def receive(self):
        if self.body:
            return {"type": "http.request", "body": self.body.pop(), "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.said += message["body"]
            self.ended = not message.get("more_body", False)

    async def made(self, application):
        await application(self.scope, self.receive, self.send)
        return self

    @property
    def kind(self):
        return self.headers[b"content-type"].decode()


def request(method, params, name=1):
    return json.dumps({"jsonrpc": "2.0", "id": name, "method": method, "params": params}).encode()


def notice(method, params=None):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode()
