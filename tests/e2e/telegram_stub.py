"""The part of Telegram's Bot API that the example uses, on this machine: it keeps what it was sent."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

TOKEN = "123456:stub"
CHAT = 77
PRESS = "press "
"""What a person writes begins so where they press a button of the newest question instead."""


@dataclass
class Sent:
    """One request."""

    method: str
    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """By field: the name of the file, and its bytes."""


@dataclass
class Stub:
    """What was sent, what people wrote, and what is refused."""

    url: str = ""
    sent: list[Sent] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)
    """Chats, and what was written there."""
    refusing: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Methods, and the code and words they are refused with; code 0 hangs up."""

    def methods(self) -> list[str]:
        """The methods that sent something."""
        return [each.method for each in self.sent if each.method.startswith("send")]

    def answer(self, sent: Sent) -> tuple[int, object]:
        """As the API answers."""
        self.sent.append(sent)
        if sent.method in self.refusing:
            code, words = self.refusing[sent.method]
            return code, {"ok": False, "error_code": code, "description": words}
        return 200, {"ok": True, "result": self._result(sent)}

    def _result(self, sent: Sent) -> object:
        if sent.method == "getMe":
            return {"id": 1, "is_bot": True, "first_name": "Stub", "username": "stub_bot"}
        if sent.method == "getUpdates":
            first = int(sent.fields.get("offset", 0))
            return [
                self._update(n) for n in range(first, len(self.written)) if self._has_happened(first, n)
            ]
        if sent.method == "answerCallbackQuery":
            return True
        return {"message_id": len(self.sent), "date": 0, "chat": {"id": CHAT, "type": "private"}}

    def _has_happened(self, first: int, number: int) -> bool:
        """A person presses a button only when there is one, and does nothing else meanwhile."""
        presses = [n for n in range(first, number + 1) if self.written[n][1].startswith(PRESS)]
        return not presses or (presses[0] == number == first and bool(self._buttons()))

    def _buttons(self) -> dict[str, str]:
        """What the buttons of the newest question send, by what stands on them."""
        marked = [each.fields["reply_markup"] for each in self.sent if "reply_markup" in each.fields]
        rows = json.loads(marked[-1])["inline_keyboard"] if marked else []
        return {button["text"]: button["callback_data"] for row in rows for button in row}

    def _update(self, number: int) -> object:
        chat_id, text = self.written[number]
        if not text.startswith(PRESS):
            return _update(number, chat_id, text)
        chat = {"id": chat_id, "type": "private"}
        query = {
            "id": str(number),
            "from": {"id": chat_id, "is_bot": False, "first_name": "Person"},
            "chat_instance": "1",
            "data": self._buttons()[text.removeprefix(PRESS)],
            "message": {"message_id": number, "date": 1, "chat": chat, "text": "?"},
        }
        return {"update_id": number, "callback_query": query}


def _update(number: int, chat_id: int, text: str) -> object:
    chat = {"id": chat_id, "type": "private"}
    return {"update_id": number, "message": {"message_id": number, "date": 0, "chat": chat, "text": text}}


@contextmanager
def telegram_stub() -> Iterator[Stub]:
    """Serve it on loopback for as long as the block lasts."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            _, bot, method = self.path.split("/")
            if bot != f"bot{TOKEN}":
                code, answer = 401, {"ok": False, "error_code": 401, "description": "Unauthorized"}
            else:
                code, answer = stub.answer(_read(method, self.headers["Content-Type"], body))
            if not code:
                self.close_connection = True
                return
            data = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quietly."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _read(method: str, content_type: str | None, body: bytes) -> Sent:
    sent = Sent(method)
    if not content_type or not content_type.startswith("multipart/"):
        sent.fields = dict(parse_qsl(body.decode()))
        return sent
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    for part in message_from_bytes(head + body, policy=policy.HTTP).iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        if (filename := part.get_filename()) is None:
            sent.fields[name] = data.decode()
        else:
            sent.files[name] = (filename, data)
    return sent
