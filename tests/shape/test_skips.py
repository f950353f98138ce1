"""In CI a skipped test is a failure, unless the machine itself is the reason."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shape.reading import ROOT

TESTS = """
import pytest

def test_part(): pytest.skip("ripgrep is missing")

@pytest.mark.skipif(True, reason="machine: runs as root")
def test_machine(): ...

@pytest.mark.xfail(reason="known", strict=True)
def test_known(): assert False
"""


@pytest.mark.parametrize(
    ("ci", "summary"), [("true", "1 failed, 1 skipped, 1 xfailed"), ("", "2 skipped, 1 xfailed")]
)
def test_a_missing_part_fails_in_ci_and_is_skipped_at_the_desk(
    ci: str, summary: str, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")  # not what lies somewhere above
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False
    )
    assert summary in done.stdout
