"""Commands that may reach listed hosts and nothing else, in a real sandbox."""

import os
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from handtools.core.call import Call
from handtools.core.commands import Command, CommandLimits, FinishedCommand
from handtools.core.web import Visit
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner

pytestmark = pytest.mark.skipif(
    bool(BubblewrapRunner().unavailable_reason()), reason="bubblewrap does not work here"
)

PACKAGE = "iniconfig"
ASK_PIP = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
"""pip's own default, where nothing else is configured."""

CLIENT = """
import base64, os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["http_proxy"])
field = b"Proxy-Authorization: Basic " + base64.b64encode(proxy.netloc.rpartition("@")[0].encode())
def through(first, then=b""):
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as s:
        s.sendall(first.replace(b"\\r\\n", b"\\r\\n" + field + b"\\r\\n", 1))
        if then:
            s.recv(65536)
            s.sendall(then)
        heard = b""
        while piece := s.recv(65536):
            heard += piece
        return heard.decode("latin-1")
def attempt(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__
"""


class Hello(BaseHTTPRequestHandler):
    """Says hello."""

    def do_GET(self) -> None:
        body = b"hello from outside"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def outside():
    """A server on this machine, outside every sandbox."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class Confined:
    """Commands in a sandbox, and every connection that was announced."""

    def __init__(self, folder, runner=None) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.told: list[Visit] = []
        self.commands = LocalCommands(
            self.root,
            state=folder / "state",
            output_blobs=FolderBlobStore(folder / "outputs"),
            runner=runner or BubblewrapRunner(),
        )

    async def run(self, script: str, *hosts: str, seconds: float = 60.0) -> tuple[FinishedCommand, str]:
        command = Command(
            script=script, network="listed", hosts=hosts, limits=CommandLimits(seconds=seconds)
        )
        ran = await self.commands.run(
            command, call=Call(tool="bash", args={}), show=self._show, private_globs=(), read_only_globs=()
        )
        output = ran.exit.output
        return ran, (output.head + output.tail).decode()

    async def python(self, program: str, *hosts: str) -> tuple[FinishedCommand, str]:
        (self.root / "client.py").write_text(CLIENT + program)
        return await self.run(f"{interpreter()} client.py", *hosts)

    def _show(self, shown: object) -> None:
        if isinstance(shown, Visit):
            self.told.append(shown)


def interpreter() -> str:
    """One that is visible inside."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


@pytest.fixture
def confined(tmp_path):
    made = Confined(tmp_path)
    yield made
    made.commands.close()


pytestmark = [pytestmark, pytest.mark.anyio]


async def test_a_listed_host_answers_over_http_and_through_a_tunnel_and_socks(confined, outside):
    ran, said = await confined.python(
        f"""
plain = b"GET http://127.0.0.1:{outside}/ HTTP/1.1\\r\\n\\r\\n"
print(through(plain).splitlines()[0], through(plain).splitlines()[-1])
tunnel = b"CONNECT 127.0.0.1:{outside} HTTP/1.1\\r\\n\\r\\n"
print(through(tunnel, b"GET / HTTP/1.0\\r\\n\\r\\n").splitlines()[-1])
import struct
with socket.create_connection(("127.0.0.1", proxy.port)) as s:
    s.sendall(b"\\x05\\x01\\x02"); s.recv(2)
    s.sendall(b"\\x01\\x01x" + bytes([len(proxy.password)]) + proxy.password.encode()); s.recv(2)
    s.sendall(b"\\x05\\x01\\x00\\x01\\x7f\\x00\\x00\\x01" + struct.pack("!H", {outside})); s.recv(10)
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print(s.makefile().read().splitlines()[-1])
""",
        f"127.0.0.1:{outside}",
    )
    hello = "hello from outside"
    assert said.splitlines() == [f"HTTP/1.0 200 OK {hello}", hello, hello]
    assert not [note for note in ran.exit.notes if note.startswith("Network: ")]
    assert [(visit.host, visit.port, visit.refused) for visit in confined.told] == [
        ("127.0.0.1", outside, "")
    ] * 4


async def test_every_other_way_out_is_shut(confined, outside):
    ran, said = await confined.python(
        f"""
addresses = ["127.0.0.1:{outside + 1}", "[::1]:{outside}", "169.254.169.254:80", "2130706434:{outside}"]
for wish in ["other.example:443", *addresses]:
    print(through(f"CONNECT {{wish}} HTTP/1.1\\r\\n\\r\\n".encode()).split()[1])
print(through(b"GET http://other.example/ HTTP/1.1\\r\\n\\r\\n").split()[1])
print(attempt(lambda: socket.create_connection(("127.0.0.1", {outside}), timeout=5)))
print(attempt(lambda: socket.create_connection(("198.51.100.1", 443), timeout=5)))
print(attempt(lambda: socket.create_connection(("2001:db8::1", 443), timeout=5)))
print(attempt(lambda: socket.getaddrinfo("localhost.example", 443)))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(attempt(lambda: udp.sendto(b"x", ("198.51.100.1", 53))))
""",
        f"127.0.0.1:{outside}",
    )
    answers = said.splitlines()
    assert answers[:6] == ["403"] * 6
    assert answers[6] == "ConnectionRefusedError"
    assert answers[7:9] == ["OSError", "OSError"]
    assert answers[9] == "gaierror"
    assert answers[10] == "OSError"
    assert len(confined.told) == 6
    assert all(visit.refused for visit in confined.told)
    assert len([note for note in ran.exit.notes if note.startswith("Network: ")]) == 6


async def test_a_command_without_a_list_has_no_proxy(confined):
    command = Command(script="grep -c ' 0A ' /proc/net/tcp /proc/net/tcp6; env | grep -ci proxy")
    ran = await confined.commands.run(
        command, call=Call(tool="bash", args={}), show=lambda _: None, private_globs=(), read_only_globs=()
    )
    assert ran.exit.output.head == b"/proc/net/tcp:0\n/proc/net/tcp6:0\n0\n"


async def test_nothing_of_the_proxy_is_left_inside_or_after(confined, outside):
    before = {thread.name for thread in threading.enumerate()}
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        _, said = await confined.run("ls -l /proc/self/fd | grep -c socket; true", f"127.0.0.1:{outside}")
        assert said.strip() == "0"
    assert "handtools-proxy" not in {thread.name for thread in threading.enumerate()} - before
    assert len(os.listdir("/proc/self/fd")) <= count + 4  # the line to an idle supervisor


async def test_a_job_in_the_background_keeps_its_way_out_and_its_visits_are_told(confined, outside):
    visits = []
    (confined.root / "client.py").write_text(
        CLIENT + f'print(through(b"GET http://127.0.0.1:{outside}/ HTTP/1.1\\r\\n\\r\\n").splitlines()[-1])'
    )
    call = Call(tool="bash", args={})
    command = Command(
        script=f"{interpreter()} client.py", network="listed", hosts=(f"127.0.0.1:{outside}",)
    )
    job = await confined.commands.start(
        command,
        call=call,
        description="",
        private_globs=(),
        read_only_globs=(),
        show=visits.append,
        settle=lambda ran: ran.exit,
    )
    ended = await confined.commands.job(job.id, call.session, timeout=30)
    assert ended.output.head == b"hello from outside\n"
    assert [(visit.host, visit.port, visit.refused) for visit in visits] == [("127.0.0.1", outside, "")]


def index_hosts() -> tuple[str, ...]:
    """The host of pip's index, and those that its page of the package sends pip to."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    for program in (sys.executable, "python3"):
        asked = subprocess.run([program, "-c", ASK_PIP], capture_output=True, text=True, check=False)
        if configured or asked.returncode == 0:
            break
    index = configured or asked.stdout.strip() or pytest.skip("machine: pip has no index")
    try:
        with urllib.request.urlopen(f"{index.rstrip('/')}/{PACKAGE}/", timeout=30) as page:
            links = re.findall(r'href="(https?://[^"]+)"', page.read().decode())
    except OSError as error:
        pytest.skip(f"machine: pip's index can't be reached: {error}")
    return tuple(dict.fromkeys(urlsplit(url).hostname or "" for url in (index, *links)))


def resolvable(host: str) -> bool:
    with suppress(OSError):
        return bool(socket.getaddrinfo(host, 443))
    return False


INSTALL = (
    f"{interpreter()} -m venv v && PIP_RETRIES=0 v/bin/pip install -q --no-cache-dir {PACKAGE} "
    f"&& v/bin/python -c 'import {PACKAGE}; print({PACKAGE}.__name__)'"
)


async def test_pip_installs_from_its_index_when_that_is_listed(confined):
    hosts = index_hosts()
    assert resolvable(hosts[0])
    ran, said = await confined.run(INSTALL, *hosts, seconds=240)
    assert ran.exit.code == 0, said
    assert said.splitlines()[-1] == PACKAGE
    reached = {visit.host for visit in confined.told if not visit.refused}
    assert reached == set(hosts)
    assert not [visit for visit in confined.told if visit.refused]


async def test_pip_installs_nothing_when_another_host_is_listed(confined):
    hosts = index_hosts()
    ran, said = await confined.run(INSTALL, "other.example", seconds=240)
    assert ran.exit.code != 0
    assert "No matching distribution" in said or "403" in said
    assert {visit.host for visit in confined.told} <= set(hosts)
    assert confined.told
    assert all(visit.refused for visit in confined.told)
    assert any(hosts[0] in note for note in ran.exit.notes)


ASKING = """
import os, sys, tempfile
import anyio
from pathlib import Path
from handtools import Policy, coding
from handtools.core.events import Visited

async def main(port):
    folder = Path(tempfile.mkdtemp())
    (folder / "work").mkdir()
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    box = coding(folder / "work", policy=Policy(hosts=(f"127.0.0.1:{port}",)))
    heard = []
    box.listen(lambda event: heard.append(event.visit) if isinstance(event, Visited) else None)
    script = sys.stdin.read()
    result = await box.call("bash", {"command": script})
    await box.aclose()
    print(result.status, os.geteuid(), (folder / "work" / "page").read_bytes().decode())
    print(*sorted(f"{visit.host}:{bool(visit.refused)}" for visit in heard))

anyio.run(main, sys.argv[1])
"""


def pythons(user: int | None) -> list[str]:
    """Interpreters that this user can start, with what we need in them."""
    there = [sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"]
    return [path for path in there if ran_as(path, ["-c", "import anyio, pydantic, handtools"], user) == 0]


def ran_as(path: str, words: list[str], user: int | None) -> int:
    try:
        return subprocess.run(
            [path, *words], env=variables(), capture_output=True, check=False, **identity(user)
        ).returncode
    except OSError:
        return -1


def variables() -> dict[str, str]:
    places = os.pathsep.join(each for each in sys.path if each)
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": places,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",
    }


def identity(user: int | None) -> dict[str, object]:
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@pytest.mark.parametrize("user", [None, 65534], ids=["this user", "nobody"])
def test_a_toolbox_lets_commands_reach_listed_hosts_and_tells_listeners(outside, user):
    if user is not None and os.geteuid() != 0:
        pytest.skip("machine: only root can become another user")
    program = next(iter(pythons(user)), None) or pytest.skip("machine: no interpreter for that user")
    client = (
        "import os, urllib.request as u;"
        f"open('page','wb').write(u.build_opener(u.ProxyHandler({{'http': os.environ['http_proxy']}}))"
        f".open(u.Request('http://127.0.0.1:{outside}/')).read())"
    )
    script = (
        f'export no_proxy= NO_PROXY=; {interpreter()} -c "{client}"; '
        f'{interpreter()} -c "{client.replace(f":{outside}", ":1").replace("page", "none")}"'
    )
    done = subprocess.run(
        [program, "-c", ASKING, str(outside)], input=script, env=variables(),
        capture_output=True, text=True, timeout=100, check=False, cwd="/", **identity(user),
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        f"ok {os.geteuid() if user is None else user} hello from outside",
        "127.0.0.1:False 127.0.0.1:True",
    ], done.stderr
