"""A machine of its own for attempts: addresses of every kind, servers on all of them, and a name server that lies.

Runs inside a network and mount namespace (`python -m tests.e2e.web.machine FILE`), where it is harmless; prints
what came of each attempt as JSON. Nothing here knows how `fetch` decides: what counts is which server was reached.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
import tomllib
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from handtools.host.web.local_web import LocalWeb
from handtools.host.web.request_limits import ResponseLimits
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.fetch import fetch

PUBLIC = "203.0.113.10"
PORTS = (80, 443, 22, 6379, 8080)
FOURS = (
    PUBLIC, "127.0.0.53", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "198.18.0.1",
    "169.254.169.254", "192.0.0.192",
)  # fmt: skip
SIXES = (
    "fd00::1", "fd00:ec2::254", "fec0::1", "fe80::1", "64:ff9b::7f00:1", "64:ff9b:1::a01:203", "2002:7f00:1::1",
    "2001:0:7f00:1::f5fe:fdfc", "::7f00:1",
)  # fmt: skip
NAMES = {
    "public.example": [PUBLIC],
    "loop.example": ["127.0.0.1"],
    "zero.example": ["0.0.0.0"],
    "ten.example": ["10.1.2.3"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "unique.example": ["fd00::1"],
    "sub.wild.example": ["10.1.2.3"],
    "mixed.example": ["10.1.2.3", PUBLIC],
}
CHANGING = {"rebind.example": [PUBLIC, "127.0.0.1"], "flip.example": [PUBLIC, "10.1.2.3"]}
"""The first look-up gets the first answer, every later one the second."""
A, CNAME, AAAA = 1, 5, 28
HOSTS = "127.0.0.1 localhost this-machine app.localhost\n::1 localhost this-machine app.localhost\n"
RESOLVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"


@dataclass
class Names:
    """A name server over UDP."""

    asked: dict[str, int] = field(default_factory=dict)

    def serve(self) -> None:
        line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        line.bind(("127.0.0.1", 53))
        threading.Thread(target=self._run, args=(line,), daemon=True).start()

    def _run(self, line: socket.socket) -> None:
        while True:
            question, sender = line.recvfrom(512)
            line.sendto(self.answer(question), sender)

    def answer(self, question: bytes) -> bytes:
        """The same question back, with what we say to it."""
        labels, at = [], 12
        while size := question[at]:
            labels.append(question[at + 1 : at + 1 + size].decode().lower())
            at += size + 1
        kind = struct.unpack("!H", question[at + 1 : at + 3])[0]
        records = self._records(".".join(labels), kind)
        head = question[:2] + struct.pack("!HHHHH", 0x8580, 1, len(records), 0, 0)
        return head + question[12 : at + 5] + b"".join(records)

    def _records(self, name: str, kind: int) -> list[bytes]:
        if name == "alias.example":
            target = b"\4loop\7example\0"
            return [_record(CNAME, target, b"\xc0\x0c"), *self._records_of("loop.example", kind, target)]
        return self._records_of(name, kind, b"\xc0\x0c")

    def _records_of(self, name: str, kind: int, owner: bytes) -> list[bytes]:
        addresses = NAMES.get(name, [])
        if name in CHANGING and kind == A:
            turn = self.asked[name] = self.asked.get(name, 0) + 1
            addresses = [CHANGING[name][min(turn - 1, 1)]]
        family = socket.AF_INET6 if kind == AAAA else socket.AF_INET
        wanted = [each for each in addresses if (":" in each) == (kind == AAAA)]
        return [_record(kind, socket.inet_pton(family, each), owner) for each in wanted]


def _record(kind: int, value: bytes, owner: bytes) -> bytes:
    return owner + struct.pack("!HHIH", kind, 1, 0, len(value)) + value


@dataclass
class Servers:
    """A server on every address and port; each notes where it was reached."""

    reached: list[str] = field(default_factory=list)

    def serve(self) -> None:
        for port in PORTS:
            line = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
            threading.Thread(target=self._run, args=(line, port), daemon=True).start()

    def _run(self, line: socket.socket, port: int) -> None:
        while True:
            talk, _ = line.accept()
            address = talk.getsockname()[0].removeprefix("::ffff:")
            self.reached.append(f"{address} {port}")
            with suppress(OSError), talk:
                talk.settimeout(5)
                talk.sendall(_page(talk.recv(65536), address))


def _page(request: bytes, address: str) -> bytes:
    target = request.split(b" ")[1] if request.count(b" ") > 1 else b"/"
    _, onward, place = target.partition(b"/to?")
    if onward:
        return b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n"
    body = f"reached {address}".encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def put_together(folder: Path) -> None:
    """Addresses, and files that only this namespace sees."""
    ip = ("ip", "-batch", "-")
    orders = ["link set lo up", *(f"addr add {each}/32 dev lo" for each in FOURS)]
    orders += [f"addr add {each}/128 dev lo nodad" for each in SIXES]
    subprocess.run(ip, input="\n".join(orders), text=True, check=True)
    for name, text in (
        ("resolv.conf", RESOLVER),
        ("hosts", HOSTS),
        ("nsswitch.conf", "hosts: files dns\n"),
    ):
        (folder / name).write_text(text)
        place = Path("/etc", name)
        if place.exists():
            subprocess.run(["mount", "--bind", folder / name, place.resolve()], check=True)


def naive(names: Names, servers: Servers) -> list[str]:
    """What a client reaches that looks at the addresses of a name and then connects to the name."""
    reached = []
    for name in CHANGING:
        names.asked.clear()
        servers.reached.clear()
        assert {place[4][0] for place in socket.getaddrinfo(name, 80)} == {PUBLIC}
        with suppress(OSError), urllib.request.urlopen(f"http://{name}/", timeout=5) as answer:
            answer.read()
        reached += servers.reached
    return reached


async def attempt(url: str, hosts: tuple[str, ...]) -> tuple[str, str]:
    """Fetch under a policy that allows every visit: only the addresses stand in the way."""
    policy = Policy(hosts=hosts, defaults={**DEFAULTS, "visit": "allow"})
    web = LocalWeb(limits=ResponseLimits(connect=10, silence=10, total=20), environment={})
    result = await memory_toolbox(tools=[fetch], web=web, policy=policy).call("fetch", {"url": url})
    return result.status, result.text


def main(path: str, folder: str) -> None:
    put_together(Path(folder))
    names, servers = Names(), Servers()
    names.serve()
    servers.serve()
    told = {"naive": naive(names, servers), "attempts": []}
    for case in tomllib.loads(Path(path).read_text())["attempt"]:
        seen = {"to": case["to"], "answers": case.get("answers", ""), "opens": case["opens"]}
        for key, hosts in (("closed", ()), ("open", tuple(case["opens"]))):
            names.asked.clear()
            servers.reached.clear()
            status, text = anyio.run(attempt, case["to"], hosts)
            seen[key] = {"status": status, "text": text, "reached": list(servers.reached)}
        told["attempts"].append(seen)
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
