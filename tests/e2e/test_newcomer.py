"""A newcomer's path: an empty folder, the README and the built wheels, up to a command that was taken back."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIVE_MINUTES = 300


def uv() -> str:
    found = shutil.which("uv")
    if found is None:
        pytest.skip("uv is not on the PATH")
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for package in (ROOT, ROOT / "packages" / "full"):
        subprocess.run(
            [uv(), "build", "--quiet", "--wheel", "--out-dir", folder, package],
            check=True,
            timeout=FIVE_MINUTES,
        )
    return folder


@pytest.fixture
def newcomer(tmp_path, wheels):
    """Run a line in an empty folder, as somebody who has nothing but uv and the wheels."""
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    shutil.copytree(wheels, project / "dist")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("UV_", "SSL_", "PIP_", "HTTP"))
    }
    cache = subprocess.run(
        [uv(), "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    surroundings = {
        "PATH": f"{Path(uv()).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "UV_CACHE_DIR": cache,
        **kept,
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=project, env=surroundings, capture_output=True, text=True, timeout=FIVE_MINUTES
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    return project, run


def said_by_readme() -> list[list[str]]:
    """The lines that the README gives to somebody who has the wheels in `dist`."""
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    return [
        shlex.split(line.removeprefix("$ "))
        for line in lines
        if line.startswith("$ uvx --find-links dist ")
    ]


def test_from_nothing_to_an_undone_command_in_five_minutes(newcomer):
    project, run = newcomer
    began = time.monotonic()
    (project / "notes").mkdir()
    (project / "notes" / "one.txt").write_text("kept\n")
    removed, undone = said_by_readme()
    run(*removed)
    assert not (project / "notes").exists()
    run(*undone)
    assert (project / "notes" / "one.txt").read_text() == "kept\n"
    assert time.monotonic() - began < FIVE_MINUTES
