"""A copy of the project to break on purpose."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.reading import ROOT

PARTS = ("src", "tests", "docs", "requirements")


@pytest.fixture(scope="session")
def _whole_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    leave = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=leave)
    for file in (".importlinter", "SECURITY.md"):
        shutil.copy2(ROOT / file, folder)
    return folder


@pytest.fixture
def copy(_whole_copy: Path) -> Iterator[Path]:
    """The project's text files in a folder of their own, which is whole again after the test."""
    before = _states(_whole_copy)
    yield _whole_copy
    after = _states(_whole_copy)
    for path in after.keys() - before.keys():
        path.unlink()
    for path, state in before.items():
        if after.get(path) != state:
            shutil.copy2(ROOT / path.relative_to(_whole_copy), path)


def _states(folder: Path) -> dict[Path, tuple[int, int]]:
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in files}
