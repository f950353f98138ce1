"""The sandbox on this machine: attempts to get out, judged from outside, and work that must still go.

The whole corpus is `python -m bench escapes`; here is one attempt of most families, and what depends on the user.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.escapes import attempt
from bench.escapes.scene import scene
from bench.escapes.scripts import HERE, load
from bench.escapes.stages import stages
from handtools import Policy, coding
from handtools.host.sandbox.runners.runner_selection import runners_by_strength

ROOT = Path(__file__).parents[2]
STAGES = stages()
SAMPLES = (
    "path/absolute", "reading/dotenv", "links/hard_link", "proc/kernel_settings", "mount/new_user",
    "memory/trace", "signals/ask", "sockets/in_workspace", "network/tcp", "descriptors/folder",
    "environment/by_proc", "persistence/git_hook", "orphans/twice", "resources/processes",
)  # fmt: skip
ONLY_ROOT = {"proc/kernel_settings"}


@pytest.fixture(scope="module")
def place():
    with scene() as made:
        yield made


def test_a_commit_is_no_escape(place):
    place.renew()
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-c", "core.hooksPath=/dev/null"]
    for words in (["add", "src"], ["commit", "-qm", "one"], ["checkout", "-qb", "topic"], ["tag", "v1"]):
        subprocess.run([*git, *words], cwd=place.workspace, check=True)
    assert [each for each in place.verdicts(b"", []) if ".git" in each] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".git/hooks/pre-commit", "#!/bin/sh\n"),
        (".git/config", "[core]\n\tfsmonitor = ./x\n"),
        (".git/info/attributes", "* filter=x\n"),
        (".git/objects/info/alternates", "/elsewhere\n"),
        (".git/HEAD", "ref: ../../x\n"),
        (".git/commondir", "../elsewhere\n"),
        (".git/modules/a/config", "[core]\n"),
        ("src/.git/objects/ab/" + "0" * 38, "x"),
    ],
)
def test_what_git_would_run_or_follow_is_an_escape(place, path, text):
    place.renew()
    file = place.workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert f"left {path}" in place.verdicts(b"", [])


@pytest.mark.parametrize("title", SAMPLES)
def test_bubblewrap_stops_it(title, place):
    if "bubblewrap" not in STAGES:
        pytest.skip("bubblewrap does not work here")
    _, verdicts = attempt("bubblewrap", STAGES["bubblewrap"], load(HERE / "attempts" / title), place)
    assert verdicts == []


@pytest.mark.parametrize("title", SAMPLES)
def test_without_a_sandbox_it_succeeds(title, place):
    if title in ONLY_ROOT and os.geteuid() != 0:
        pytest.skip("machine: not root")
    _, verdicts = attempt("none", STAGES["none"], load(HERE / "attempts" / title), place)
    assert verdicts != []


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")
def test_root_becomes_the_owner_of_the_workspace(tmp_path):
    if "bubblewrap" not in STAGES:
        pytest.skip("bubblewrap does not work here")
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/tmp") and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, 5001, 5001)
    script = tmp_path / "script"
    script.write_text("#!/bin/bash\n# Make a file.\nid -u; echo x > made\n")
    code, output = STAGES["bubblewrap"](load(script), work, {})
    assert (code, output) == (0, b"5001\n")
    assert (work / "made").stat().st_uid == 5001


@pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")
def test_where_user_namespaces_are_forbidden_it_falls_back_and_says_so(tmp_path):
    # As in most containers: a user who may not make a namespace. The limit concerns only a namespace of ours.
    code = (
        "from handtools.host.sandbox.runners.runner_selection import choose_runner; c = choose_runner(); "
        "print(c.runner.name, '|', c.reason)"
    )
    forbidden = f'echo 0 > /proc/sys/user/max_user_namespaces && exec {sys.executable} -c "{code}"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", forbidden],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("landlock |"), done.stderr
    assert "Not bubblewrap: bwrap can't confine here" in done.stdout


@pytest.mark.parametrize("runner", runners_by_strength(), ids=lambda runner: runner.name)
async def test_under_every_runner_a_command_reads_and_writes_the_workspace_and_is_taken_back(
    tmp_path, runner
):
    if reason := runner.unavailable_reason():
        pytest.skip(f"machine: {reason}")
    (tmp_path / "read.txt").write_text("one\n")
    async with coding(tmp_path, runner=runner.name, policy=Policy(unattended="allow")) as box:
        ran = await box.call("bash", {"command": "cat read.txt; tee made.txt < read.txt"})
        assert ran.text.startswith("one\none\n")
        assert (tmp_path / "made.txt").read_text() == "one\n"
        await box.call("undo", {})
    assert not (tmp_path / "made.txt").exists()
