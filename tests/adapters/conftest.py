"""The suites need an SDK each, in an environment of its own: `.ci/adapters` names it; else none is collected.

There run the contract and the examples, if the adapter has a driver, its own tests, and what all share.
"""

import json
import os
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

NAME = os.environ.get("HANDTOOLS_ADAPTER", "")
RESULTS = os.environ.get("HANDTOOLS_ADAPTER_RESULTS", "")
"""A file for what was found; `.ci/adapters` names it, and `python -m tests.docs.adapters_page` reads it."""
HERE = Path(__file__).parent
OTHERS = {path.stem for path in (HERE.parents[1] / "requirements" / "adapters").glob("*.txt")} - {NAME}
collect_ignore_glob = [f"test_{other}.py" for other in OTHERS] if NAME else ["test_*.py"]
HAS_DRIVER = (HERE / f"driver_{NAME}.py").exists()
if not HAS_DRIVER:
    collect_ignore_glob += ["test_contract.py", "test_examples.py", "test_fleet_toolbox.py"]


def limits() -> dict[str, str]:
    return dict(getattr(import_module(f"tests.adapters.driver_{NAME}").Driver, "limits", {}))


def pytest_configure(config):
    config.addinivalue_line("markers", "cell(name): the row of the table that a test of the contract is")
    config.addinivalue_line(
        "markers", "suite_of_an_sdk: written by an SDK's authors, who decide what it leaves out"
    )


def pytest_collection_modifyitems(items):
    if not HAS_DRIVER:
        return
    known = limits()
    for item in items:
        mark = item.get_closest_marker("cell")
        if mark and mark.args[0] in known:
            item.add_marker(pytest.mark.xfail(strict=True, reason=known[mark.args[0]]))


def pytest_sessionfinish(session, exitstatus):
    """Write the results of a whole run without a failure."""
    if not (HAS_DRIVER and RESULTS) or exitstatus != 0:
        return
    from tests.adapters.drivers import CELLS

    ran = {mark.args[0] for item in session.items if (mark := item.get_closest_marker("cell"))}
    if ran != set(CELLS):
        return
    known = limits()
    packages = import_module(f"tests.adapters.driver_{NAME}").VERSION.split()
    found = {
        "versions": {name: version(name) for name in packages},
        "cells": {cell: known.get(cell, "yes") for cell in CELLS},
    }
    Path(RESULTS).write_text(json.dumps(found, indent=1) + "\n")
