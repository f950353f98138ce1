"""What type checkers accept and refuse in code that uses us."""

import re
import subprocess
import sys
from pathlib import Path

from tests.shape.reading import ROOT

HERE = Path(__file__).parent


def mypy(path: Path) -> set[tuple[int, str]]:
    """The errors that mypy reports in a file: line and code."""
    options = [
        "--strict",
        "--no-error-summary",
        "--config-file=",
        "--python-version=3.11",
        "--hide-error-context",
    ]
    command = [sys.executable, "-m", "mypy", *options, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found = re.findall(rf"{re.escape(path.name)}:(\d+): error: .*\[([\w-]+)\]", done.stdout)
    assert bool(found) == bool(done.returncode), done.stdout
    return {(int(line), code) for line, code in found}


def test_good_code_is_accepted_with_the_types_it_should_have() -> None:
    assert mypy(HERE / "accepted.py") == set()


def test_bad_code_is_refused_just_where_it_is_bad() -> None:
    page = HERE / "refused.py"
    rows = enumerate(page.read_text("utf-8").splitlines(), start=1)
    expected = {
        (line, match[1]) for line, row in rows if (match := re.search(r"# refused: ([\w-]+)$", row))
    }
    assert mypy(page) == expected
