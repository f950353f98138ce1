"""Snapshots: files beside the tests; `--update-snapshots` writes them anew."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the snapshots anew")


@pytest.fixture
def matches(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the snapshot of a name."""
    folder = Path(__file__).parent / "kept"

    def compare(name: str, text: str) -> None:
        kept = folder / name
        if request.config.getoption("--update-snapshots"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, "utf-8")
        assert kept.is_file(), f"no snapshot {name}: run `just docs` and look at what it wrote"
        assert text == kept.read_text("utf-8"), "if this is meant, run `just docs` and commit the snapshot"

    return compare
