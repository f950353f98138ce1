"""The example of each SDK, with its scripted model: a bug is found, mended, tested, committed and taken back."""

import os
import runpy
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from tests.adapters.drivers import Wanted

NAME = os.environ["HANDTOOLS_ADAPTER"]
EXAMPLE = Path(__file__).parents[2] / "examples" / NAME / f"{NAME}_agent.py"
driver = import_module(f"tests.adapters.driver_{NAME}")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not EXAMPLE.exists(), reason="This SDK has no example of this kind."),
]
WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
TEST = "import sums\n\n\ndef test_add():\n    assert sums.add(1, 2) == 3\n"
STEPS = (
    ("grep", {"pattern": "def add"}),
    ("edit", {"path": "sums.py", "old_string": "a - b", "new_string": "a + b"}),
    ("bash", {"command": "python3 -B -c 'import test_sums; test_sums.test_add()'"}),
    ("bash", {"command": "git commit -qam 'Mend add'"}),
    ("bash", {"command": "git log --format=%s > log.txt"}),
    ("undo", {"scope": "call", "name": "2"}),
)


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sums.py").write_text(WRONG)
    (folder / "test_sums.py").write_text(TEST)
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    return folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def model(steps):
    called = [[Wanted(tool, args, f"call_{number}")] for number, (tool, args) in enumerate(steps)]
    return driver.scripted_model(*called, "Done.")


async def test_the_example_does_its_task_and_asks_the_person(root, tmp_path):
    asked = {}
    mend = runpy.run_path(str(EXAMPLE))["mend"]
    said = await mend(
        root,
        model(STEPS),
        lambda title, preview: asked.update({title: preview}) or True,
        tmp_path / "sessions",
    )
    assert said == "Done."
    # Where nothing confines commands, the person is asked about these, too.
    [preview] = [asked[title] for title in asked if "sums.py" in title]
    assert "return a + b" in preview
    assert (root / "sums.py").read_text() == RIGHT
    assert git(root, "log", "--format=%s") == "Begin\n"
    assert (root / "log.txt").read_text() == "Mend add\nBegin\n"


async def test_the_example_asks_about_one_edit_after_another(root, tmp_path):
    steps = [
        ("edit", {"path": "sums.py", "old_string": f"a {old} b", "new_string": f"a {new} b"})
        for old, new in ("-+", "+*", "*/")
    ]
    asked = []
    mend = runpy.run_path(str(EXAMPLE))["mend"]
    said = await mend(
        root, model(steps), lambda title, _: asked.append(title) or True, tmp_path / "sessions"
    )
    assert (said, len(asked)) == ("Done.", 3)
    assert "return a / b" in (root / "sums.py").read_text()


async def test_a_no_of_the_person_leaves_the_file_and_the_run_goes_on(root, tmp_path):
    mend = runpy.run_path(str(EXAMPLE))["mend"]
    assert await mend(root, model(STEPS[:2]), lambda *_: False, tmp_path / "sessions") == "Done."
    assert (root / "sums.py").read_text() == WRONG


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) < 60
