"""A copy of the project to break on purpose."""

import shutil
from pathlib import Path

import pytest

from tests.shape.reading import ROOT

PARTS = ("src", "tests", "docs", "requirements")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project's text files in a folder of their own."""
    leave = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=leave)
    for file in (".importlinter", "SECURITY.md"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path
