"""One network for the commands and jobs of a session: they reach one another, and nobody else does."""

import os
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from handtools import Call, Policy, Toolbox
from handtools.core.commands import Command
from handtools.core.errors import HostError
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox import session_network_namespaces
from handtools.host.sandbox.processes.supervisor_client import open_network
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.session_network_namespaces import SessionNetworks
from handtools.host.sandbox.supervisor_messages import NetworkOrder
from handtools.toolbox import CODING, local_workspace
from tests.e2e.test_network import Hello, identity, interpreter, pythons, variables

pytestmark = [
    pytest.mark.skipif(
        bool(BubblewrapRunner().unavailable_reason()), reason="bubblewrap does not work here"
    ),
    pytest.mark.anyio,
]

SERVE = f"exec {interpreter()} -u -m http.server 0 --bind 127.0.0.1"
GET = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    (made / "page").write_text("from the job")
    (made / "get.py").write_text(GET)
    return made


@pytest.fixture
async def box(root, tmp_path):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as made:
        yield made


async def bash(box, script, session="s", **args):
    result = await box.call(Call(tool="bash", args={"command": script, **args}, session=session))
    assert result.ok, result.text
    return result


async def serving(box, session="s") -> tuple[str, str]:
    """A server in the background, and its port, by its first line or by ours on the job."""
    job = (await bash(box, SERVE, session, background=True)).details.job
    with anyio.fail_after(60):
        while True:
            seen = await box.call(Call(tool="jobs", args={"action": "output", "job": job}, session=session))
            if found := re.search(r" port (\d+)", seen.text):
                return job, found[1]
            await anyio.lowlevel.checkpoint()


@pytest.mark.claim("bash.loopback")
async def test_the_next_command_reaches_a_server_in_the_background(box):
    _, port = await serving(box)
    url = f"http://127.0.0.1:{port}/page"
    assert "from the job" in (await bash(box, f"{interpreter()} get.py {url}")).text
    again = await bash(box, f"{interpreter()} get.py http://localhost:{port}/page", background=True)
    ended = await box.call(
        Call(tool="jobs", args={"action": "wait", "job": again.details.job, "timeout": 60}, session="s")
    )
    assert "from the job" in ended.text


async def test_a_job_tells_the_ports_on_which_it_listens_and_no_others(box):
    one, port = await serving(box)
    other, far = await serving(box)
    seen = await box.call(Call(tool="jobs", args={"action": "output", "job": one}, session="s"))
    assert f"listens on port {port}," in seen.text
    assert seen.details.ports == [int(port)]
    listed = await box.call(Call(tool="jobs", args={}, session="s"))
    assert f"{other}: running for " in listed.text
    assert f"listens on port {far}," in listed.text
    ended = await box.call(Call(tool="jobs", args={"action": "kill", "job": one}, session="s"))
    assert "listens" not in ended.text
    assert ended.details.ports == []


async def test_a_server_is_gone_when_its_job_is(box):
    job, port = await serving(box)
    await box.call(Call(tool="jobs", args={"action": "kill", "job": job}, session="s"))
    said = (await bash(box, f"{interpreter()} get.py http://127.0.0.1:{port}/page")).text
    assert "Connection refused" in said


async def test_another_session_and_this_machine_do_not_reach_it(box):
    _, port = await serving(box)
    url = f"http://127.0.0.1:{port}/page"
    assert "Connection refused" in (await bash(box, f"{interpreter()} get.py {url}", session="other")).text
    there = subprocess.run([sys.executable, "-c", GET, url], capture_output=True, check=False)
    assert b"refused" in there.stderr


async def test_an_abstract_socket_belongs_to_its_session(box):
    listen = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0of the session'); s.listen();"
        "print('listens', flush=True)\nwhile True: s.accept()[0].sendall(b'here')"
    )
    knock = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect('\\0of the session');"
        "print(s.recv(9))"
    )
    job = (await bash(box, f'{interpreter()} -c "{listen}"', background=True)).details.job
    with anyio.fail_after(60):
        while (
            "listens"
            not in (
                await box.call(Call(tool="jobs", args={"action": "output", "job": job}, session="s"))
            ).text
        ):
            await anyio.lowlevel.checkpoint()
    assert "here" in (await bash(box, f'{interpreter()} -c "{knock}"')).text
    assert "refused" in (await bash(box, f'{interpreter()} -c "{knock}"', session="other")).text


async def test_no_command_has_a_descriptor_of_the_network_or_rights_in_it(box):
    said = (await bash(box, "ls -l /proc/self/fd; ip link set lo down; ip link add x type dummy")).text
    assert "net:[" not in said
    assert "user:[" not in said
    assert said.count("not permitted") == 2 or "ip: command not found" in said


@pytest.fixture
def outside():
    """A server on this machine, outside every sandbox."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


THROUGH = """
import sys, urllib.request as u
proxy, url = sys.argv[1:]
try:
    print(u.build_opener(u.ProxyHandler({"http": proxy})).open(url, timeout=20).read())
except OSError as error:
    print(error)
"""


async def test_a_host_that_one_job_may_reach_is_not_for_the_next_command(box, root, outside):
    (root / "through.py").write_text(THROUGH)
    target = f"http://127.0.0.1:{outside}/"
    script = (
        f"unset no_proxy NO_PROXY; {interpreter()} through.py $http_proxy {target}; "
        "echo at ${http_proxy#*@}; read x"
    )
    job = (await bash(box, script, background=True, hosts=[f"127.0.0.1:{outside}"])).details.job
    seen = None
    with anyio.fail_after(60):
        while seen is None or "\nat " not in seen.text:
            seen = await box.call(Call(tool="jobs", args={"action": "output", "job": job}, session="s"))
    assert "hello from outside" in seen.text
    address = seen.text.split("\nat ")[1].split()[0]
    for given in (f"http://{address}", f"http://handtools:guess@{address}"):
        said = (await bash(box, f"unset no_proxy; {interpreter()} through.py {given} {target}")).text
        assert "407" in said
        assert "hello" not in said
    other = await bash(box, "env", hosts=["other.example"])
    assert address not in other.text


async def test_a_proxy_ends_with_its_command(box):
    await bash(box, "true", hosts=["other.example"])
    listening = await bash(box, "grep -c ' 0A ' /proc/net/tcp")
    assert listening.text.startswith("0\n")


async def test_commands_at_once_share_the_network_that_the_first_makes(box):
    said: list[str] = []

    async def look() -> None:
        said.append((await bash(box, "readlink /proc/self/ns/net")).text.split()[0])

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(look)
    assert len(set(said)) == 1
    assert said[0] != os.readlink("/proc/self/ns/net")


def open_namespaces() -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith(("net:[", "user:[")) for link in links if os.path.islink(link))


async def test_networks_close_when_idle_and_with_the_workspace(monkeypatch):
    before = open_namespaces()
    networks = SessionNetworks()
    monkeypatch.setattr(session_network_namespaces, "IDLE_NETWORKS", 2)
    for name in "abcde":
        with networks.opened_network(name):
            pass
    assert 0 < open_namespaces() - before <= 3 * 2
    monkeypatch.setattr(session_network_namespaces, "IDLE_NETWORK_SECONDS", -1.0)
    with networks.opened_network("last") as last:
        assert open_namespaces() - before == len(last.namespaces)
        networks.close()
        assert last.namespaces, "what is in use stays"
    assert open_namespaces() == before


async def test_nothing_outlives_this_process(tmp_path):
    """Neither a process nor the network: there is no holder, only descriptors of ours."""
    program = (
        "import os, sys, anyio; from pathlib import Path; from handtools import coding\n"
        "async def main(root):\n"
        "    box = coding(root); await box.call('bash', {'command': 'sleep 1000', 'background': True})\n"
        "    print((await box.call('bash', {'command': 'readlink /proc/self/ns/net'})).text.split()[0])\n"
        "    sys.stdout.flush(); os.kill(os.getpid(), 9)\n"
        "anyio.run(main, sys.argv[1])"
    )
    (tmp_path / "w").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "w")],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    name = done.stdout.strip()
    assert name.startswith("net:["), done.stderr
    with anyio.fail_after(30):
        while name in network_namespaces():
            await anyio.lowlevel.checkpoint()


def network_namespaces() -> set[str]:
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return found


async def test_where_no_namespace_can_be_made_commands_run_as_before(tmp_path, root, monkeypatch):
    def refused(*_: object) -> None:
        raise HostError("no")

    monkeypatch.setattr(session_network_namespaces, "open_network", refused)
    commands = LocalCommands(
        root, state=tmp_path / "s", output_blobs=FolderBlobStore(tmp_path / "o"), runner=BubblewrapRunner()
    )
    ran = await commands.run(
        Command(script="readlink /proc/self/ns/net"),
        call=Call(tool="bash", args={}), show=lambda _: None, private_globs=(), read_only_globs=(),
    )  # fmt: skip
    assert ran.exit.code == 0
    assert ran.exit.output.head.decode().strip() not in network_namespaces()


AS_USER = """
import os, sys, tempfile, anyio
from pathlib import Path
from handtools import coding

async def main():
    folder = Path(tempfile.mkdtemp())
    (folder / "work").mkdir()
    (folder / "work" / "page").write_text("from the job")
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    box = coding(folder / "work")
    started = await box.call("bash", {"command": sys.argv[1], "background": True})
    while " port " not in (seen := await box.call("jobs", {"action": "output", "job": started.details.job})).text:
        await anyio.lowlevel.checkpoint()
    port = seen.text.split(" port ")[1].split()[0]
    get = f"{sys.argv[2]} -c \\"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/page').read())\\""
    print(os.geteuid(), (await box.call("bash", {"command": get})).text.splitlines()[0])
    await box.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize("user", [None, 65534], ids=["this user", "nobody"])
def test_it_is_so_for_an_ordinary_user_too(user):
    if user is not None and os.geteuid() != 0:
        pytest.skip("machine: only root can become another user")
    program = next(iter(pythons(user)), None) or pytest.skip("machine: no interpreter for that user")
    done = subprocess.run(
        [program, "-c", AS_USER, SERVE, interpreter()], env=variables(),
        capture_output=True, text=True, timeout=100, check=False, cwd="/", **identity(user),
    )  # fmt: skip
    who = os.geteuid() if user is None else user
    assert done.stdout.splitlines() == [f"{who} b'from the job'"], done.stderr


TAKE_INSTANCES = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for fd in map(int, sys.argv[1:]):
    assert libc.setns(fd, 0) == 0, ctypes.get_errno()
taken = [libc.inotify_init1(0) for _ in range(2_000)]
print(sum(fd >= 0 for fd in taken))
"""


def test_a_session_of_an_ordinary_user_can_not_take_all_their_inotify_instances():
    order = NetworkOrder(
        order="network",
        unshare=session_network_namespaces.CLONE_NEWNET | session_network_namespaces.CLONE_NEWUSER,
        listening=0,
        connecting=(),
    )
    namespaces, _ = open_network(order)
    try:
        done = subprocess.run(
            [sys.executable, "-c", TAKE_INSTANCES, *map(str, namespaces)],
            pass_fds=namespaces,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        for fd in namespaces:
            os.close(fd)
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text("ascii"))
    assert 0 < int(done.stdout) <= limit // 2
