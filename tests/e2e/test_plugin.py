"""A tool from a package of its own, found through its entry point and held to the public contract."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "count_tool"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package, really built and installed, beside the environment of the tests."""
    target = tmp_path_factory.mktemp("site")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "count_tool")
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    if uv:
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--target", target, source], check=True, timeout=250)
    return os.environ | {"PYTHONPATH": str(target)}


def test_it_is_called_like_any_other_tool(installed, tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one two\nthree\n")
    code = (
        "import json, handtools\n"
        "box = handtools.BlockingToolbox(handtools.everything('.'))\n"
        "result = box.call('count', {'path': 'a.txt'})\n"
        "print(json.dumps([result.text, result.details.words, result.status]))\n"
    )
    env = installed | {"HANDTOOLS_STATE": str(tmp_path / "state")}
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=env, capture_output=True, check=False)
    assert json.loads(done.stdout) == ["2 lines, 3 words.", 3, "ok"], done.stderr


def test_it_passes_the_public_contract_suite(installed):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-c", os.devnull, "tests"],
        cwd=EXAMPLE, env=installed, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


def test_the_whole_tool_is_about_twenty_lines():
    source = (EXAMPLE / "src" / "handtools_count" / "__init__.py").read_text()
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
