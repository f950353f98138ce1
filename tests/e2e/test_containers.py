"""Commands in containers of a real Docker Engine: what they see, how they end, and what is left of them."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import anyio
import pytest

from bench.escapes import attempt
from bench.escapes.scene import scene
from bench.escapes.scripts import HERE, load
from bench.escapes.transactions import transacting
from bench.kill import TREES, alive
from handtools.core.call import Call
from handtools.core.commands import Command, CommandLimits
from handtools.core.errors import HostError
from handtools.fleet.templates import TemplateStore
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.capture_selection import BestCapture
from handtools.host.sandbox.containers import container_pool
from handtools.host.sandbox.containers.container_pool import ContainerSizes
from handtools.host.sandbox.containers.docker_connection import DockerEngine
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.runtime.policy import Policy
from handtools.text.search.glob import PathGlobs
from handtools.toolbox import CODING, Toolbox, local_workspace
from tests.e2e.nasty_trees import nothing_survives

SRC = Path(__file__).parents[2] / "src"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")


@pytest.fixture(scope="module")
def runner():
    made = ContainerRunner()
    if made.unavailable_reason():
        pytest.skip(made.unavailable_reason())
    return made


@pytest.fixture(scope="module")
def engine():
    import docker

    made = docker.DockerClient(base_url=DockerEngine().address)
    yield made
    made.close()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def make(tmp_path, root):
    """Commands under a runner, closed in the end."""
    made = []

    def commands(runner):
        state = tmp_path / "state"
        made.append(
            LocalCommands(root, state=state, output_blobs=FolderBlobStore(state / "out"), runner=runner)
        )
        return made[-1]

    yield commands
    for each in made:
        each.close()


@pytest.fixture
def commands(make, runner):
    return make(runner)


async def run(commands, script, *, private_globs=(), read_only_globs=(), **limits):
    command = Command(script=script, limits=CommandLimits(**{"seconds": 60.0} | limits))
    call = Call(tool="bash", args={})
    ran = await commands.run(
        command,
        call=call,
        show=lambda _: None,
        private_globs=private_globs,
        read_only_globs=read_only_globs,
    )
    ran.discard()
    return ran.exit


async def said(commands, script, **facts) -> str:
    done = await run(commands, script, **facts)
    return (done.output.head + done.output.tail).decode()


def until(condition) -> None:
    """Look again and again; the suite's own time limit ends what never comes."""
    while not condition():
        os.sched_yield()


def kept(engine, root) -> list:
    found = engine.containers.list(
        all=True, ignore_removed=True, filters={"label": container_pool.WORKSPACE_LABEL}
    )
    return [
        each
        for each in found
        if each.labels[container_pool.WORKSPACE_LABEL] == container_pool.workspace_label(str(root))
    ]


@pytest.mark.parametrize("ending", ["exit", "timeout", "cancel"])
@pytest.mark.parametrize("tree", TREES)
async def test_nothing_of_a_nasty_tree_survives(commands, tree, ending):
    await nothing_survives(commands, tree, ending, seconds=30)


async def test_a_command_that_kills_its_wrapper_gains_nothing(commands):
    token = f"5{os.getpid():06d}"
    done = await run(commands, f"setsid sleep {token}1 & sleep {token}2 & kill -9 $PPID; sleep {token}3")
    assert done.signal == signal.SIGKILL
    assert alive(token) == []
    assert await said(commands, "echo fine") == "fine\n"


async def test_a_fork_bomb_is_stopped_by_its_limit_and_ended(commands):
    done = await run(commands, "bomb() { bomb | bomb & }; bomb; sleep 30", seconds=1.5, processes=100)
    assert done.ended == "timeout"
    assert done.seconds < 20
    assert await said(commands, "echo fine") == "fine\n"


async def test_memory_is_limited_and_the_reason_is_said(commands):
    script = "python3 -c 'x = bytearray(400 << 20)'; exit $?"
    done = await run(commands, script, memory_bytes=100 << 20)
    assert done.ended == "limit"
    assert any("memory" in note for note in done.notes)


async def test_private_places_have_their_size(make, runner):
    small = ContainerRunner(sizes=ContainerSizes(temporary_bytes=8 << 20, home_bytes=8 << 20))
    text = await said(make(small), "for d in /tmp ~; do head -c 20M /dev/zero > $d/x && echo open; done")
    assert "open" not in text
    assert text.count("No space left") == 2


async def test_it_finds_the_images_environment_and_nothing_of_ours(commands, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    text = await said(commands, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert "hunter2" not in text
    assert "HOME=/home/sandbox" in text.splitlines()
    assert not names & {"VIRTUAL_ENV", "DOCKER_HOST", "HANDTOOLS_IMAGE", "SSH_AUTH_SOCK", "USER"}


async def test_it_has_no_privilege_no_network_and_no_engine(commands):
    script = """
    grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
    cat /proc/net/dev | grep -c eth
    ls /var/run/docker.sock /run/docker.sock 2>/dev/null
    touch /etc/x /usr/x /x
    unshare --user true; mount -t tmpfs none /mnt
    """
    text = await said(commands, script)
    assert text.count("\t0000000000000000\n") == 2
    assert "NoNewPrivs:\t1" in text
    assert "Seccomp:\t2" in text
    assert "\n0\n" in text
    assert "docker.sock" not in text
    assert text.count("Read-only file system") == 3
    assert text.lower().count("operation not permitted") >= 1


@AS_ROOT
async def test_what_it_makes_belongs_to_the_workspaces_owner(commands, root, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder not in {Path("/tmp"), Path("/")}:
            folder.chmod(folder.stat().st_mode | 0o011)
    os.chown(root, 5001, 5002)
    assert await said(commands, "id -u; id -g; touch made") == "5001\n5002\n"
    found = (root / "made").stat()
    assert (found.st_uid, found.st_gid) == (5001, 5002)


async def test_private_files_can_not_be_read_and_protected_ones_not_be_written(commands, root):
    (root / ".env").write_text("SECRET")
    (root / ".git").mkdir()
    rules = {"private_globs": (PathGlobs((".env",)),), "read_only_globs": (PathGlobs((".git",)),)}
    script = "cat .env; mv .env other; cat other; echo x > .git/config; mv .git git; ls .git"
    text = await said(commands, script, **rules)
    assert "SECRET" not in text
    assert (root / ".env").read_text() == "SECRET"
    assert list((root / ".git").iterdir()) == []


async def test_a_private_file_that_was_replaced_is_still_private(commands, root):
    (root / ".env").write_text("SECRET one")
    assert "SECRET" not in await said(commands, "cat .env", private_globs=(PathGlobs((".env",)),))
    (root / "new").write_text("SECRET two")
    os.replace(root / "new", root / ".env")  # as editors save: the kernel drops what was mounted there
    assert "SECRET" not in await said(commands, "cat .env", private_globs=(PathGlobs((".env",)),))


async def test_commands_at_the_same_time_do_not_see_each_other(commands):
    counts = {}

    async def look(mine, other):
        wait = "touch {0}.{2}; until [ -e {1}.{2} ]; do sleep 0.01; done;"
        begin, end = (wait.format(mine, other, word) for word in ("begun", "done"))
        counts[mine] = int(await said(commands, f"{begin} ls -d /proc/[0-9]* | wc -l; {end}"))

    async with anyio.create_task_group() as group:
        group.start_soon(look, "one", "two")
        group.start_soon(look, "two", "one")
    # The first process, the wrapper, bash, and the pipe with its shell: the other's would be three more.
    assert max(counts.values()) <= 6


async def test_one_container_serves_one_command_after_the_other(commands, engine, root):
    for _ in range(3):
        await run(commands, "true")
    assert len(kept(engine, root)) == 1


async def test_a_container_that_died_is_replaced(commands, engine, root):
    await run(commands, "true")
    [container] = kept(engine, root)
    container.kill()
    assert await said(commands, "echo fine") == "fine\n"


async def test_on_close_no_container_is_left(commands, engine, root):
    await run(commands, "true")
    commands.close()
    assert kept(engine, root) == []


def test_when_we_are_killed_the_containers_end_with_us(runner, engine, root, tmp_path):
    token = f"4{os.getpid():06d}"
    program = f"""
import anyio
from pathlib import Path
from handtools.core.call import Call
from handtools.core.commands import Command
from handtools.fleet.templates import TemplateStore
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.folder_blob_store import FolderBlobStore
state = Path({str(tmp_path / "state")!r})
outputs = FolderBlobStore(state / "o")
commands = LocalCommands({str(root)!r}, state=state, output_blobs=outputs, runner="container")
script = "trap '' TERM HUP; setsid sleep {token}1 & (setsid nohup sleep {token}2 &); echo up > up; sleep {token}3"
async def main():
    start = dict(call=Call(tool="bash", args={{}}), show=print, private_globs=(), read_only_globs=())
    await commands.start(Command(script="sleep {token}4"), description="", settle=lambda ran: ran.exit, **start)
    await commands.run(Command(script=script), **start)
anyio.run(main)
"""
    owner = subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(SRC)})
    until(lambda: (root / "up").exists() and len(alive(token)) >= 4)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until(lambda: not alive(token))
    until(lambda: not kept(engine, root))


async def test_what_another_of_us_left_behind_is_removed_at_the_next_start(make, runner, engine):
    gone = subprocess.Popen(["true"])
    gone.wait()
    boot, namespace, _, _ = container_pool.owner_label().split(" ")
    labels = {container_pool.OWNER_LABEL: f"{boot} {namespace} {gone.pid} 1"}
    orphan = engine.containers.run(
        runner.image, ["sleep", "1000"], labels=labels, network_mode="none", detach=True
    )
    ours = engine.containers.run(
        runner.image,
        ["sleep", "1000"],
        labels={container_pool.OWNER_LABEL: container_pool.owner_label()},
        network_mode="none",
        detach=True,
    )
    try:
        await run(make(ContainerRunner()), "true")
        left = {each.id for each in engine.containers.list(all=True)}
        assert orphan.id not in left
        assert ours.id in left
    finally:
        ours.remove(force=True)


def test_an_image_that_is_not_there_is_explained(runner):
    with pytest.raises(HostError, match="no-such-image"):
        choose_runner(wanted="container:no-such-image:1")


async def test_the_image_is_chosen_by_name(make, runner, engine):
    base = engine.containers.create(runner.image, ["true"])
    name = f"handtools-other-{os.getpid()}"
    image = base.commit(repository=name, changes="ENV FLAVOUR=other")
    try:
        chosen = choose_runner(wanted=f"container:{name}").runner
        assert await said(make(chosen), "echo $FLAVOUR") == "other\n"
        assert await said(make(runner), "echo $FLAVOUR") == "\n"
    finally:
        base.remove()
        chosen.release_workspace(str(make(chosen)._root))
        engine.images.remove(image.id, force=True)


def tree(root) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("coverage", ["overlay", "scan"])
async def test_what_it_did_can_be_taken_back_and_done_again(runner, root, tmp_path, coverage):
    if coverage == "overlay" and os.geteuid() != 0:
        pytest.skip("machine: not root")
    held = ContainerRunner()
    assert held.can_mount_overlay == (os.geteuid() == 0)
    held.__dict__["_overlay_works"] = coverage == "overlay"
    (root / "d").mkdir()
    (root / "a").write_text("old\n")
    (root / "d" / "b").write_text("b\n")
    box = boxed(root, tmp_path, held)
    before = tree(root)
    call = Call(tool="bash", args={"command": "echo new > a; rm -r d; mkdir n; touch n/y; chmod 755 a"})
    result = await box.call(call)
    assert result.changes.coverage == coverage, result.text
    after = tree(root)
    assert set(after) == {"a", "n", "n/y"}
    await box.call("undo", {"scope": "call", "name": call.id, "action": "undo"})
    assert tree(root) == before
    await box.call("undo", {"scope": "call", "name": call.id, "action": "redo"})
    assert tree(root) == after
    await box.aclose()


@AS_ROOT
async def test_what_is_planted_is_judged_before_it_lands(runner, root, tmp_path):
    box = boxed(root, tmp_path, runner)
    script = "mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/post-checkout; ln -s /etc/passwd door"
    await box.call(Call(tool="bash", args={"command": script}))
    assert not (root / "sub" / ".git").exists()
    assert not (root / "door").is_symlink()
    await box.aclose()


def boxed(root, tmp_path, runner):
    state = tmp_path / "state"
    capture = BestCapture(root, FolderBackups(state / "vault"))
    outputs = FolderBlobStore(state / "outputs")
    ran = LocalCommands(root, state=state, output_blobs=outputs, runner=runner, capture=capture)
    workspace = local_workspace(root, state=state, commands=ran)
    return Toolbox(CODING, workspace=workspace, policy=Policy(unattended="deny"))


async def test_when_the_engine_goes_away_the_command_says_so(make, tmp_path):
    gone = ContainerRunner(address=f"unix://{tmp_path}/nowhere.sock")
    assert "nowhere.sock" in gone.unavailable_reason()
    with pytest.raises(HostError, match="Docker"):
        await run(make(gone), "true")
    assert threading.active_count() < 50


SAMPLES = (
    "path/absolute", "reading/dotenv", "links/hard_link", "mount/new_user", "memory/trace", "signals/ask",
    "sockets/in_workspace", "network/tcp", "descriptors/folder", "environment/by_proc", "persistence/git_hook",
    "orphans/twice", "resources/processes",
)  # fmt: skip


@pytest.mark.parametrize("title", SAMPLES)
def test_attempts_to_get_out_are_stopped(runner, place, title):
    _, verdicts = attempt("container", transacting(runner), load(HERE / "attempts" / title), place)
    assert verdicts == []


@pytest.fixture(scope="module")
def place():
    with scene() as made:
        yield made


INSIDE = """
import anyio, json, sys
from handtools import Call, Policy, Toolbox, local_workspace
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import coding
from pathlib import Path
root = Path("/tmp/work"); root.mkdir(); (root / "given").write_text("given")
async def main():
    choice = choose_runner()
    box = coding(root, policy=Policy(defaults=DEFAULTS | {"run": "allow", "change": "allow"}))
    call = Call(tool="bash", args={"command": "echo hello; echo new > made; rm given"})
    result = await box.call(call)
    did = sorted(p.name for p in root.iterdir())
    await box.call("undo", {"scope": "call", "name": call.id, "action": "undo"})
    undone = sorted(p.name for p in root.iterdir())
    await box.aclose()
    facts = dict(runner=choice.runner.name, reason=choice.reason, text=result.text, did=did, undone=undone,
                 coverage=result.changes.coverage, boundary=choice.runner.boundary)
    print(json.dumps(facts))
anyio.run(main)
"""


@pytest.mark.parametrize("user", ["0:0", "5001:5001"])
def test_inside_a_container_without_user_namespaces_it_falls_back_and_says_so(runner, engine, user):
    python = Path(sys.executable).resolve()
    places = {str(SRC): "/opt/src", sysconfig.get_path("purelib"): "/opt/site"}
    if python.parents[1] != Path("/usr"):  # it knows its own libraries by their path
        places[str(python.parents[1])] = str(python.parents[1])
    output = engine.containers.run(
        runner.image,
        [str(python), "-c", INSIDE],
        user=user,
        network_mode="none",
        environment={"PYTHONPATH": "/opt/src:/opt/site", "HOME": "/tmp", "XDG_STATE_HOME": "/tmp/state"},
        volumes={path: {"bind": place, "mode": "ro"} for path, place in places.items()},
        tmpfs={"/tmp": "exec"},
        remove=True,
        stderr=True,
    )
    facts = json.loads(output.decode().splitlines()[-1])
    assert facts["runner"] in {"landlock", "plain"}
    assert "Not bubblewrap" in facts["reason"]
    assert facts["did"] == ["made"]
    assert facts["undone"] == ["given"]
    assert facts["coverage"] == "scan"
    assert "hello" in facts["text"]
    assert "recorded afterwards" in facts["text"], "it says that changes were not held back"


def test_an_image_that_the_engine_saved_becomes_a_template(runner, engine, tmp_path):
    script = (
        "mkdir /work; echo two > /work/a; ln /work/a /work/b; ln -s /work /w; rm -r /usr/share /etc/passwd"
    )
    made = engine.containers.create(runner.image, ["sh", "-c", script], network_mode="none")
    try:
        made.start()
        assert made.wait()["StatusCode"] == 0
        image = made.commit()
        try:
            with (tmp_path / "image.tar").open("wb") as file:
                file.writelines(image.save())
        finally:
            engine.images.remove(image.id)
    finally:
        made.remove()
    tree = TemplateStore(tmp_path / "store").add_image(tmp_path / "image.tar").tree
    assert (tree / "work" / "b").read_text() == "two\n"
    assert os.readlink(tree / "w") == "/work"
    assert (tree / "usr" / "bin" / "env").exists()
    assert not (tree / "usr" / "share").exists() and not (tree / "etc" / "passwd").exists()
