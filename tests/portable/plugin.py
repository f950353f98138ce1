"""`pytest -p tests.portable.plugin --hide PART[,PART]`: hide parts of Linux from the tests and what they start.

`--figures FILE` adds what came out to a JSON file, as the row of what was hidden, or as `--row NAME`.
"""

import json
import os
from pathlib import Path

from tests.portable.hiding import hide

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser):
    parser.addoption(
        "--hide", default="all", help="parts of Linux to hide, with commas; `all` is the default"
    )

    parser.addoption("--figures", default="", help="a JSON file to which the outcome is added")
    parser.addoption("--row", default="", help="the name that the outcome has there")


def pytest_terminal_summary(terminalreporter, config):
    if not (file := config.getoption("--figures")):
        return
    place = Path(file)
    figures = json.loads(place.read_text("utf-8")) if place.exists() else {}
    came_out = {
        kind: len(terminalreporter.stats.get(kind, ()))
        for kind in ("passed", "failed", "error", "skipped", "xfailed")
    }
    # Said apart: a test about what is hidden has nothing to say, one without its program was not run.
    hidden = [each for each in terminalreporter.stats.get("skipped", ()) if _is_about_hidden(each)]
    came_out |= {"hidden": len(hidden), "skipped": came_out["skipped"] - len(hidden)}
    figures[config.getoption("--row") or config.getoption("--hide")] = came_out
    place.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", "utf-8")


def _is_about_hidden(report):
    return isinstance(report.longrepr, tuple) and "hidden" in report.longrepr[2]


def pytest_load_initial_conftests(early_config):
    hidden = early_config.known_args_namespace.hide
    hide(hidden.split(","))
    site = f"{ROOT}/tests/portable/site"
    os.environ |= {
        "HANDTOOLS_TEST_ROOT": str(ROOT),
        "HANDTOOLS_TEST_HIDDEN": hidden,
        "PYTHONPATH": os.pathsep.join(filter(None, (site, os.environ.get("PYTHONPATH")))),
    }
