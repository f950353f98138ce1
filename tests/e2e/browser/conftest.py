"""One Chromium for all tests of a worker, a folder in which an agent worked, and pictures for the docs."""

from pathlib import Path

import pytest

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.runtime.policy import Policy
from handtools.toolbox import BlockingToolbox, coding
from tests.e2e.browser import chromium
from tests.e2e.cli.conftest import Shell, shell, warm_command

__all__ = ["browser", "picture", "shell", "tea_session", "warm_command"]

PICTURES = Path(__file__).parents[3] / "docs" / "how-to" / "images"
TEA = "def brew(leaves, minutes):\n    return leaves\n"
BETTER = 'return f"{leaves} tea after {minutes} minutes"'
TEST = "from tea import brew\n\n\ndef test_brew():\n    assert 'green' in brew('green', 3)\n"


def pytest_addoption(parser):
    parser.addoption("--update-pictures", action="store_true", help="write the pictures of the docs anew")


@pytest.fixture(scope="session")
def browser():
    if reason := chromium.missing():
        pytest.skip(reason)
    with chromium.browser() as started:
        yield started


@pytest.fixture
def picture(request, tmp_path):
    """Take a picture of a page; with `--update-pictures` it becomes the one in the documentation."""

    def take(page, name):
        kept = PICTURES / f"{name}.png"
        page.screenshot({"path": str(tmp_path / "picture.png")})
        if request.config.getoption("--update-pictures", default=False):
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes((tmp_path / "picture.png").read_bytes())
        assert kept.is_file(), "run `just pictures`, and look at what it wrote"

    return take


@pytest.fixture(scope="session")
def tea_session(tmp_path_factory):
    """A folder in which an agent worked: edits, a refusal, a failure, questions, and a deletion taken back."""
    root = tmp_path_factory.mktemp("tea")
    shell = Shell(root / "tea", root / "state")
    shell.folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HANDTOOLS_STATE", str(shell.state))
        toolbox = coding(shell.folder, policy=Policy(defaults={"run": "allow"}))
    tools = BlockingToolbox(toolbox)

    def call(tool, answer=None, **args):
        result = tools.call(Call(tool=tool, args=args, session="tea", agent="claude"))
        if answer:
            assert result.request, result
            tools.resume(result.request.call_id, answer)

    call("write", path="tea.py", content=TEA)
    call("edit", path="tea.py", old_string="return leaves", new_string=BETTER)
    call("edit", path="tea.py", old_string="return steep(leaves)", new_string="pass")
    call("write", path="test_tea.py", content=TEST)
    call("bash", command="python3 -Bc 'from test_tea import *; test_brew(); print(\"1 passed\")'")
    call("bash", command="python3 -Bm no_such_module")
    call("write", path=".envrc", content="export POT=warm\n", answer=Reply(allow=True))
    no = Reply(allow=False, message="No keys in files.")
    call("edit", path=".envrc", old_string="POT=warm", new_string="KEY=1", answer=no)
    call("bash", command="rm -rf *.py && echo clean")
    call("undo")
    call("grep", pattern="brew")
    tools.close()
    return shell
