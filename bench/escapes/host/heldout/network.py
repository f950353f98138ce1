"""Network: pages that are fetched from where nobody said yes, and connections that are meant to keep a server busy."""

import socket
import subprocess
import sys
from contextlib import ExitStack

from bench.escapes.host.place import Person, Place
from bench.escapes.host.server import ANSWER_SECONDS, serve
from handtools import Policy

_SENDS_ON = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302); self.send_header("Location", sys.argv[2]); self.end_headers()
    def log_message(self, *_): pass
with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
    open(sys.argv[1], "w").write(str(server.server_address[1])); server.serve_forever()
"""


async def spellings_of_this_machine(place: Place) -> None:
    """Addresses that mean this machine without saying so; the person would say yes to any other."""
    place.open(person=Person(("127.0.0.1", "localhost", "::1")))
    hosts = (
        "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]", "[::ffff:7f00:1]",
        "localhost.", "LOCALHOST", "127.0.0.1.", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "a@127.0.0.1",
        "example.com%40127.0.0.1", "[0:0:0:0:0:ffff:127.0.0.1]", "ip6-localhost", "[64:ff9b::7f00:1]",
    )  # fmt: skip
    for host in hosts:
        await place.call("fetch", url=f"http://{host}:{place.port}/")


async def sent_on_to_another_port(place: Place) -> None:
    """A listed address sends us on: to another port of this machine, in several spellings, and to a file."""
    note = place.base / "port"
    for target in (
        f"http://127.0.0.1:{place.port}/", f"//127.0.0.1:{place.port}/", f"http://127.1:{place.port}/",
        f"file://{place.outside}/secret.txt", f"http:/\\127.0.0.1:{place.port}/", f"\\\\127.0.0.1:{place.port}/",
    ):  # fmt: skip
        note.unlink(missing_ok=True)
        place.keep(subprocess.Popen([sys.executable, "-c", _SENDS_ON, str(note), target]))
        await place.until(lambda: note.exists() and bool(note.read_text()), 20.0)
        port = note.read_text()
        place.open(policy=Policy(hosts=(f"127.0.0.1:{port}",)))
        await place.call("fetch", url=f"http://127.0.0.1:{port}/")


async def many_sessions(place: Place) -> str | None:
    """One token opens two thousand sessions, and leaves them."""
    site = await serve(place)
    for _ in range(2_000):
        site.attacker.session = ""
        site.attacker.hello()
    said = site.victim.call("read", path="notes.txt")
    return site.check() or (None if "two" in said else f"the victim was no longer served: {said[:100]}")


async def connections_that_say_nothing(place: Place) -> str | None:
    """Eight hundred connections send half a request, and wait."""
    site = await serve(place)
    half = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{site.attacker.port}\r\nContent-Length: 1000000\r\n"
    with ExitStack() as stack:
        for number in range(800):
            line = stack.enter_context(
                socket.create_connection(("127.0.0.1", site.attacker.port), ANSWER_SECONDS)
            )
            line.sendall((half + ("\r\n{" if number % 2 else "X-A: ")).encode())
        said = site.victim.call("read", path="notes.txt")
        return site.check() or (None if "two" in said else f"the victim was no longer served: {said[:100]}")
