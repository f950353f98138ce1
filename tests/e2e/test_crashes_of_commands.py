"""Our process is killed while a command runs, in front or behind, lands, or is held: as any user."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bench.capture.trees import snapshot
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

ROOT = Path(__file__).parents[2]
SECONDS = 60


class Place:
    """A workspace and its record, of one user, and processes of that user that die."""

    def __init__(self, base: Path, become: list[str], python: str) -> None:
        self.base, self.work, self._begin = base, base / "work", [*become, python]
        self.number = 200_000 + os.getpid()

    def process(self, moment: str) -> "subprocess.Popen[str]":
        site = [path for path in sys.path if path.endswith("site-packages")]
        argv = [
            *self._begin,
            "-m",
            "tests.e2e.transaction_crashes",
            str(self.base),
            moment,
            str(self.number),
        ]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([f"{ROOT}/src", str(ROOT), *site]),
        }
        return subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)

    def killed(self, moment: str, after: str) -> None:
        """Have one killed as soon as it has said something."""
        process = self.process(moment)
        heard = []
        for line in process.stdout:
            heard.append(line)
            if line.startswith(after):
                break
        process.kill()
        process.communicate()
        assert heard[-1].startswith(after), heard

    def said(self, moment: str) -> str:
        process = self.process(moment)
        try:
            return process.communicate(timeout=SECONDS)[0]
        finally:
            process.kill()

    def nothing_is_left(self) -> None:
        """Neither a process nor a mount; the processes go by themselves, without anybody's help."""
        while any(str(self.number) in words for words in arguments()):
            os.sched_yield()
        deadline = time.monotonic() + SECONDS
        while (holders := self.mounted()) and time.monotonic() < deadline:
            os.sched_yield()
        assert not holders

    def mounted(self) -> list[str]:
        """Processes in whose view something of ours is still mounted; one that is just ending may be."""
        found = []
        for mounts in Path("/proc").glob("[0-9]*/mounts"):
            with contextlib.suppress(OSError):
                if str(self.base) in mounts.read_text():
                    found.append(mounts.parent.name)
        return found


def arguments():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text(errors="replace").split("\0")


def python_for(become: list[str]) -> str:
    """An interpreter that the user can start, with what we need in it."""
    site = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        argv = [
            *become,
            "env",
            f"PYTHONPATH={ROOT}/src:{ROOT}:{site}",
            python,
            "-c",
            "import anyio, handtools",
        ]
        if subprocess.run(argv, capture_output=True, check=False, cwd="/").returncode == 0:
            return python
    pytest.skip("machine: no interpreter for that user")


@pytest.fixture(params=["this user", "a user without rights"])
def place(request):
    become = []
    if request.param != "this user":
        if os.geteuid() != 0:
            pytest.skip("machine: only root can become another user")
        become = ["setpriv", "--reuid", "5001", "--regid", "5001", "--clear-groups"]
    base = Path(tempfile.mkdtemp(prefix="crashes-"))
    (base / "work" / "d").mkdir(parents=True)
    (base / "work" / "e").mkdir()
    (base / "work" / "a").write_text("old\n")
    (base / "work" / "d" / "x").write_text("x")
    if become:
        base.chmod(0o755)
        for path in (base, *base.rglob("*")):
            os.chown(path, 5001, 5001)
    elif overlay_problem(base / "work", FolderBackups(base / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    yield Place(base, become, python_for(become))
    shutil.rmtree(base)


@pytest.mark.parametrize(("moment", "after"), [("running", "Progressed"), ("job", "ok")])
def test_killed_while_a_command_runs_all_is_as_before(place, moment, after):
    before = snapshot(place.work)
    place.killed(moment, after)
    place.nothing_is_left()
    place.said("settled")
    assert snapshot(place.work) == before
    backups = place.base / "state" / "vault"
    assert not [name for name in os.listdir(backups) if len(name) == 16]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_a_command_lands_it_is_done_or_taken_back(place, moment):
    before = snapshot(place.work)
    place.number = 3
    assert "survived" not in place.said(moment)
    place.number = 200_000 + os.getpid()
    place.nothing_is_left()
    place.said("settled")
    if snapshot(place.work) != before:
        assert len(list((place.work / "big").iterdir())) == 300
        place.said("undone")
    assert snapshot(place.work) == before


def test_killed_while_changes_are_held_they_still_wait_and_land_on_a_yes(place):
    before = snapshot(place.work)
    place.killed("holding", "pending")
    place.nothing_is_left()
    assert "waiting the-call" in place.said("settled")
    assert snapshot(place.work) == before
    assert place.said("yes").splitlines()[-1] == "ok"
    assert (place.work / "a").read_text() == "new\n"
    assert len(list((place.work / "big").iterdir())) == 300
    place.said("undone")
    assert snapshot(place.work) == before
