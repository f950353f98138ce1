"""Published ports: a person's browser reaches the server that a background job started, and nothing else does."""

import os
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from contextlib import closing

import anyio
import pytest
from anyio import to_thread

from handtools import Approval, Call, Policy, Reply, Toolbox
from handtools.core.errors import HostError
from handtools.host.sandbox import published_ports
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.session_network_namespaces import SessionNetwork
from handtools.toolbox import CODING, local_workspace
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.test_network import identity, interpreter, pythons, variables
from tests.e2e.test_session_network import SERVE, bash, serving

pytestmark = [
    pytest.mark.skipif(
        bool(BubblewrapRunner().unavailable_reason()), reason="bubblewrap does not work here"
    ),
    pytest.mark.anyio,
]


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "work"
    made.mkdir()
    (made / "page").write_text("from the job")
    return made


@pytest.fixture
def asked() -> list[Approval]:
    return []


@pytest.fixture
async def box(root, tmp_path, asked):
    async def yes(approval: Approval) -> Reply:
        asked.append(approval)
        return Reply(allow=True)

    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, approver=yes) as made:
        yield made


async def jobs(box, action, job, session="s", **args):
    return await box.call(Call(tool="jobs", args={"action": action, "job": job, **args}, session=session))


async def published(box, session="s") -> tuple[str, str, str]:
    """A server in the background whose port is published: the job, the port, the URL."""
    job, port = await serving(box, session)
    result = await jobs(box, "publish", job, session, port=int(port))
    assert result.ok, result.text
    return job, port, result.details.urls[0]


async def fetched(url: str) -> str:
    def get() -> str:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.read().decode()

    return await to_thread.run_sync(get)


async def assert_refused(url: str) -> None:
    with pytest.raises(urllib.error.URLError, match="refused"):
        await fetched(url)


async def until_job_says(box, job: str, words: str) -> str:
    with anyio.fail_after(60):
        while words not in (seen := await jobs(box, "output", job)).text:
            await anyio.lowlevel.checkpoint()
    return seen.text


@pytest.mark.claim("jobs.publish")
async def test_the_person_reaches_a_published_port_after_one_question(box, asked):
    job, port, url = await published(box)
    assert url == f"http://127.0.0.1:{port}/"
    assert await fetched(f"{url}page") == "from the job"
    (question,) = asked
    assert question.title == f"jobs wants to publish port {port} of {job} at {url}"
    assert "http.server" in question.preview
    again = await jobs(box, "publish", job)
    assert f"published at {url}" in again.text
    assert len(asked) == 1, "what is published already is not asked about again"


async def test_a_server_that_was_only_just_started_is_waited_for(box):
    late = f"sleep 0.5; exec {interpreter()} -m http.server 0 --bind 127.0.0.1"
    job = (await bash(box, late, background=True)).details.job
    result = await jobs(box, "publish", job)
    assert await fetched(f"{result.details.urls[0]}page") == "from the job"


async def test_it_ends_with_unpublish_and_can_come_back(box):
    job, _, url = await published(box)
    ended = await jobs(box, "unpublish", job)
    assert ended.details.urls == []
    await assert_refused(url)
    assert (await jobs(box, "publish", job)).details.urls == [url]
    assert await fetched(f"{url}page") == "from the job"


async def test_it_ends_with_the_job_and_with_its_connections(box):
    job, _, url = await published(box)
    host, port = url.split("/")[2].split(":")
    with closing(socket.create_connection((host, int(port)), timeout=20)) as held:
        held.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\n")
        ended = await jobs(box, "kill", job)
        assert ended.details.urls == []
        assert "published" not in ended.text
        await assert_refused(url)
        with pytest.raises(ConnectionError):
            while held.recv(100):
                pass
            raise ConnectionError  # closed in order is closed as well


async def test_it_ends_with_the_toolbox(root, tmp_path):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as box:
        _, _, url = await published(box)
    await assert_refused(url)


async def test_it_ends_with_a_job_that_ends_by_itself(box):
    job, port = await serving_line(box)
    url = (await jobs(box, "publish", job)).details.urls[0]
    await jobs(box, "send", job, text="\n")
    ended = await jobs(box, "wait", job, timeout=60)
    assert not ended.details.running
    assert url.endswith(f":{port}/")
    await assert_refused(url)


async def serving_line(box) -> tuple[str, str]:
    """A server that ends when it is sent a line."""
    script = f"{SERVE.removeprefix('exec ')} & read line"
    job = (await bash(box, script, background=True)).details.job
    said = await until_job_says(box, job, " port ")
    return job, said.split(" port ")[1].split()[0]


@pytest.mark.parametrize("policy", [Policy(defaults={"publish": "deny"}), Policy(unattended="deny")])
async def test_what_is_denied_is_not_reachable(root, tmp_path, policy):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=policy) as box:
        job, port = await serving(box)
        denied = await jobs(box, "publish", job)
        assert denied.status == "denied"
        await assert_refused(f"http://127.0.0.1:{port}/")


async def test_nothing_listens_while_the_person_has_not_answered(root, tmp_path):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace) as box:
        job, port = await serving(box)
        call = Call(tool="jobs", args={"action": "publish", "job": job}, session="s")
        assert (await box.call(call)).status == "pending"
        await assert_refused(f"http://127.0.0.1:{port}/")
        resumed = await box.resume(call.id, Reply(allow=True))
        assert await fetched(f"{resumed.details.urls[0]}page") == "from the job"


async def test_a_yes_from_another_process_is_stored_for_when_the_agent_asks_again(
    root, tmp_path, monkeypatch
):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))

    async def approved(*words):
        line = [HANDTOOLS, "approve", call.id, *words, "-C", str(root)]
        return await anyio.run_process(line, check=False)

    async with Toolbox(CODING, workspace=local_workspace(root)) as box:
        job, _ = await serving(box)
        call = Call(tool="jobs", args={"action": "publish", "job": job}, session="s")
        assert (await box.call(call)).status == "pending"
        in_vain = await approved()
        assert in_vain.returncode == 1
        assert b"--remember session" in in_vain.stderr
        assert len(await box.waiting()) == 1, "the question stays"
        stored = await approved("--remember", "session")
        assert stored.returncode == 0, stored.stderr
        assert b"Stored" in stored.stderr
        again = await jobs(box, "publish", job)
        assert await fetched(f"{again.details.urls[0]}page") == "from the job"


async def test_a_job_is_not_started_in_the_process_that_says_yes(root, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    asking = Policy(defaults={"run": "ask"})
    args = {"command": "touch started", "background": True}
    async with Toolbox(CODING, workspace=local_workspace(root), policy=asking) as box:
        call = Call(tool="bash", args=args, session="s")
        assert (await box.call(call)).status == "pending"
        line = [HANDTOOLS, "approve", call.id, "--remember", "session", "-C", str(root)]
        stored = await anyio.run_process(line, check=False)
        assert stored.returncode == 0, stored.stderr
        assert (b"Started" in stored.stdout, b"Stored" in stored.stderr) == (False, True)
        again = await box.call(Call(tool="bash", args=args, session="s"))
        assert "Started job1" in again.text


async def test_a_number_that_is_taken_outside_becomes_another_that_is_said_and_asked(box, asked):
    job, port = await serving(box)
    with socket.create_server(("127.0.0.1", int(port))):
        result = await jobs(box, "publish", job)
    url = result.details.urls[0]
    assert not url.endswith(f":{port}/")
    assert f"({port} is not available there)" in result.text
    assert url in asked[0].title
    assert await fetched(f"{url}page") == "from the job"


async def test_another_session_neither_reaches_nor_publishes_it(box, root):
    get = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
    (root / "get.py").write_text(get)
    job, _, url = await published(box)
    foreign = await jobs(box, "publish", job, "other")
    assert foreign.fault.code == "not_found"
    said = (await bash(box, f"{interpreter()} get.py {url}page", session="other")).text
    assert "Connection refused" in said


async def test_commands_of_the_session_do_not_reach_this_machine_through_it(box, root):
    """The number outside, when it is another one, leads nowhere from inside."""
    (root / "get.py").write_text(
        "import sys, socket; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    )
    job, port = await serving(box)
    with socket.create_server(("127.0.0.1", int(port))):
        url = (await jobs(box, "publish", job)).details.urls[0]
    outside = url.rstrip("/").rpartition(":")[2]
    assert "Connection refused" in (await bash(box, f"{interpreter()} get.py {outside}")).text


async def test_only_a_port_on_which_the_job_listens_can_be_published(box, asked):
    one, port = await serving(box)
    other, far = await serving(box)
    refused = await jobs(box, "publish", one, port=int(far), timeout=0)
    assert refused.fault.code == "invalid_input"
    assert refused.fault.hint == f"It listens on {port}."
    silent = (await bash(box, "sleep 1000", background=True)).details.job
    missing = await jobs(box, "publish", silent, timeout=0)
    assert missing.fault.hint == f"{silent} listens on no port yet."
    await jobs(box, "kill", other)
    gone = await jobs(box, "publish", other, port=int(far))
    assert "has ended" in gone.text
    assert asked == []


SWAP = """
import socket, sys
def listen():
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); return s
s = listen(); print("listens", s.getsockname()[1], "now", flush=True)
if sys.argv[2:]:
    input(); s.close(); print("closed", flush=True); input()
while True: c = s.accept()[0]; c.sendall(b"of the other"); c.close()
"""


async def test_a_port_that_another_job_took_over_is_not_served(box, root):
    (root / "swap.py").write_text(SWAP)
    job = (await bash(box, f"{interpreter()} swap.py 0 first", background=True)).details.job
    port = int((await until_job_says(box, job, " now")).split("listens ")[1].split()[0])
    assert (await jobs(box, "publish", job)).ok
    await jobs(box, "send", job, text="\n")
    await until_job_says(box, job, "closed")
    other = (await bash(box, f"{interpreter()} swap.py {port}", background=True)).details.job
    await until_job_says(box, other, " now")
    assert await first_bytes(port) == b""


async def first_bytes(port: int) -> bytes:
    def get() -> bytes:
        with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as there:
            try:
                return there.recv(100)
            except ConnectionResetError:
                return b""

    return await to_thread.run_sync(get)


@pytest.mark.parametrize("address", ["::1", "::", "0.0.0.0", "127.0.0.9"])
async def test_it_does_not_matter_at_which_address_the_job_listens(box, address):
    script = SERVE.replace("127.0.0.1", address)
    job = (await bash(box, script, background=True)).details.job
    await until_job_says(box, job, " port ")
    result = await jobs(box, "publish", job)
    assert await fetched(f"{result.details.urls[0]}page") == "from the job"


async def test_many_connections_at_once_are_served_and_few_are_held(box, monkeypatch):
    monkeypatch.setattr(published_ports, "MAX_PUBLISHED_CONNECTIONS", 4)
    _, _, url = await published(box)
    port = int(url.rstrip("/").rpartition(":")[2])
    idle = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(4)]
    found: list[str] = []

    async def look() -> None:
        found.append(await fetched(f"{url}page"))

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(look)
        await anyio.lowlevel.checkpoint()
        for each in idle:
            each.close()
    assert found == ["from the job"] * 12


COUNT = """
import socket, sys
s = socket.create_server(("127.0.0.1", 0)); print(" port", s.getsockname()[1], flush=True)
c = s.accept()[0]; n = 0
while d := c.recv(1 << 16): n += len(d)
c.sendall(str(n).encode() * 500000); c.close()
sys.stdin.read()  # a port ends with its job
"""


async def test_large_bodies_pass_whole_and_half_closed_connections_too(box, root):
    (root / "count.py").write_text(COUNT)
    job = (await bash(box, f"{interpreter()} count.py", background=True)).details.job
    await until_job_says(box, job, " port ")
    url = (await jobs(box, "publish", job)).details.urls[0]
    port = int(url.rstrip("/").rpartition(":")[2])

    def talk() -> bytes:
        with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as there:
            there.sendall(b"x" * 5_000_000)
            there.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: there.recv(1 << 16), b""))

    assert await to_thread.run_sync(talk) == b"5000000" * 500_000


async def test_nothing_is_left_open_after_a_port_was_published(box):
    job, _, url = await published(box)
    assert await fetched(f"{url}page") == "from the job"
    threads = [each.name for each in threading.enumerate() if each.name == "handtools-relay"]
    assert len(threads) == 1
    before = len(os.listdir("/proc/self/fd"))
    await jobs(box, "unpublish", job)
    assert len(os.listdir("/proc/self/fd")) < before
    assert not any(each.name == "handtools-relay" for each in threading.enumerate())


async def test_no_socket_is_opened_in_this_machines_own_network():
    """A network that is closed has no namespaces; its sockets would be ours."""
    with pytest.raises(HostError, match="no namespace was given"):
        SessionNetwork(()).unconnected_sockets(socket.AF_INET, 1)


@pytest.mark.parametrize("runner", ["plain"])
async def test_on_this_machines_own_network_there_is_nothing_to_publish(root, tmp_path, runner):
    workspace = local_workspace(root, state=tmp_path / "state", runner=runner)
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as box:
        job, port = await serving(box)
        refused = await jobs(box, "publish", job)
        assert f"Tell the user: http://127.0.0.1:{port}/" in refused.text


AS_USER = """
import os, sys, tempfile, urllib.request, anyio
from pathlib import Path
from handtools import Policy, coding

async def main():
    folder = Path(tempfile.mkdtemp())
    (folder / "work").mkdir()
    (folder / "work" / "page").write_text("from the job")
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    box = coding(folder / "work", policy=Policy(defaults={"publish": "allow"}))
    started = await box.call("bash", {"command": sys.argv[1], "background": True})
    job = started.details.job
    while " port " not in (seen := await box.call("jobs", {"action": "output", "job": job})).text:
        await anyio.lowlevel.checkpoint()
    url = (await box.call("jobs", {"action": "publish", "job": job})).details.urls[0]
    print(os.geteuid(), await anyio.to_thread.run_sync(lambda: urllib.request.urlopen(url + "page").read()))
    await box.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize("user", [None, 65534], ids=["this user", "nobody"])
def test_it_is_so_for_an_ordinary_user_too(user):
    if user is not None and os.geteuid() != 0:
        pytest.skip("machine: only root can become another user")
    program = next(iter(pythons(user)), None) or pytest.skip("machine: no interpreter for that user")
    done = subprocess.run(
        [program, "-c", AS_USER, SERVE], env=variables(),
        capture_output=True, text=True, timeout=100, check=False, cwd="/", **identity(user),
    )  # fmt: skip
    who = os.geteuid() if user is None else user
    assert done.stdout.splitlines() == [f"{who} b'from the job'"], done.stderr
