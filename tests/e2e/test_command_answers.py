"""What a model is told about a command that ended: how much of it is about files."""

import sys

import pytest

from handtools import Call, Policy, Toolbox
from handtools.core.approval import Reply
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

MODULE = (
    '"""View {0}."""\n\n\ndef old_name(n):\n    """Return the number of view {0}."""\n    return n + {0}\n'
)
DAY = [
    "git init -q . && ls -la",
    "python3 -m venv --without-pip .venv && ls .venv/bin",
    "python3 -m unittest discover -s tests -v",
    "for i in $(seq 300); do mkdir -p node_modules/p$i; echo x > node_modules/p$i/a; done; ls node_modules | head",
    "sed -i s/old_name/new_name/ src/app/view_*.py && grep -rn new_name src/app",
    "cat src/app/view_0.py src/app/view_1.py && wc -l src/app/*.py",
    "mkdir -p build docs && echo x > build/a.o && echo y > docs/a.md && ls -la build",
    "grep -rn 'def ' src",
]
"""Commands of an ordinary day: a virtual environment, tests, packages, a codemod of 40 files, a build."""


@pytest.fixture
async def box(tmp_path):
    root = tmp_path / "work"
    (root / "src" / "app").mkdir(parents=True)
    (root / "tests").mkdir()
    for number in range(40):
        (root / "src" / "app" / f"view_{number}.py").write_text(MODULE.format(number))
    cases = "".join(f"    def test_{number}(self):\n        import view_{number}\n" for number in range(40))
    head = "import sys, unittest\nsys.path.insert(0, 'src/app')\n\nclass Views(unittest.TestCase):\n"
    (root / "tests" / "test_views.py").write_text(head + cases)
    (root / ".gitignore").write_text("build/\n")
    if overlay_problem(root, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as toolbox:
        yield toolbox


async def test_changed_files_are_a_small_part_of_what_commands_answer(box):
    texts = []
    for script in DAY:
        result = await box.call(Call(tool="bash", args={"command": script}, session="s"))
        assert result.details.code == 0, result.text
        texts.append(result.text)
    told = [row for text in texts for row in text.split("\n") if row.startswith("Files: ")]
    assert "Files: changed 40 in src/app/ (view_0.py, view_1.py …)." in told
    assert "Files: created docs/a.md; 1 ignored (build/a.o)." in told
    share = sum(map(estimate_tokens, told)) / sum(map(estimate_tokens, texts))
    # 34.8 % before folders were folded, over a similar day.
    assert share < 0.05, told


async def test_a_command_whose_changes_wait_shows_its_output_and_why(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    if overlay_problem(root, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    workspace = local_workspace(root, state=tmp_path / "state")
    asking = Policy(defaults={"read": "allow", "change": "allow", "run": "allow", "visit": "ask"})
    async with Toolbox(CODING, workspace=workspace, policy=asking) as toolbox:
        script = "echo built; ln -s /home/elsewhere out; false"
        result = await toolbox.call(Call(tool="bash", args={"command": script}, session="s"))
        assert result.status == "pending"
        assert result.text.startswith(
            "built\nThe command ended with exit code 1; its changes are not applied yet."
        )
        assert "Reason: " in result.text
        assert "symlinks that point outside the workspace (`out` -> `/home/elsewhere`)" in result.text
        done = await toolbox.resume(result.request.call_id, Reply(allow=True))
        assert done.text.startswith("built\nExit code 1")
        assert "Files: created out." in done.text
