"""The reference page of the adapters: what the contract found with each SDK, newest and floor.

`.ci/adapters` runs the contract and writes what it found; `python -m tests.docs.adapters_page` writes the page.
"""

import json
from pathlib import Path

from tests.adapters.drivers import CELLS

ROOT = Path(__file__).parents[2]
DRIVERS = ROOT / "tests" / "adapters"
RESULTS = DRIVERS / "results"
REQUIREMENTS = ROOT / "requirements" / "adapters"
PAGE = ROOT / "docs" / "reference" / "adapters.md"
HEAD = """# What each adapter does

<!-- Made by `just docs` from what `just adapters` found (`tests/adapters/results`): do not change this page. -->

One contract (`tests/adapters/test_contract.py`) is run through each adapter with the real SDK, its own double for
the model and real tools: with the newest version and with the oldest that the extra takes, each in an environment
from a hashed file (`requirements/adapters`). *yes* is a test that passed with both. A limit is the SDK's own; its
test is run too and must fail, so that a limit that is gone is noticed.
"""


def adapters() -> list[str]:
    """The names of the adapters that the contract is run through: those with a driver."""
    return sorted(path.stem.removeprefix("driver_") for path in DRIVERS.glob("driver_*.py"))


def found(name: str) -> dict[str, dict[str, str]]:
    """What the contract found in an environment: the versions of the packages, and an answer for each cell."""
    text = (RESULTS / f"{name}.json").read_text("utf-8")
    value: dict[str, dict[str, str]] = json.loads(text)
    return value


def page() -> str:
    """The whole page."""
    names, notes = adapters(), []
    ran = {name: (found(name), found(f"{name}-floor")) for name in names}
    rows = [
        "| | " + " | ".join(f"`{name}`" for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
        "| newest | " + " | ".join(versions(ran[name][0]) for name in names) + " |",
        "| floor | " + " | ".join(versions(ran[name][1]) for name in names) + " |",
    ]
    for cell in CELLS:
        shown = []
        for name in names:
            newest, floor = (run["cells"][cell] for run in ran[name])
            notes += [why for why in dict.fromkeys((newest, floor)) if why != "yes" and why not in notes]
            shown.append(answer(newest, floor, notes))
        rows.append(f"| {cell} | " + " | ".join(shown) + " |")
    limits = [f"{number}. {why}" for number, why in enumerate(notes, 1)]
    return (
        HEAD
        + "\n"
        + "\n".join(rows)
        + "\n"
        + ("\nLimits:\n\n" + "\n".join(limits) + "\n" if limits else "")
    )


def versions(run: dict[str, dict[str, str]]) -> str:
    return ", ".join(f"{name} {version}" for name, version in run["versions"].items())


def answer(newest: str, floor: str, notes: list[str]) -> str:
    if newest == floor:
        return "yes" if newest == "yes" else f"no ({notes.index(newest) + 1})"
    parts = ["yes" if said == "yes" else f"no ({notes.index(said) + 1})" for said in (newest, floor)]
    return f"{parts[0]}; floor: {parts[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
