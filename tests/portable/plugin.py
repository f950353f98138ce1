"""`pytest -p tests.portable.plugin --hide PART[,PART]`: hide parts of Linux from the tests and what they start."""

import os
from pathlib import Path

from tests.portable.hiding import hide

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser):
    parser.addoption(
        "--hide", default="all", help="parts of Linux to hide, with commas; `all` is the default"
    )


def pytest_load_initial_conftests(early_config):
    hidden = early_config.known_args_namespace.hide
    hide(hidden.split(","))
    site = f"{ROOT}/tests/portable/site"
    os.environ |= {
        "HANDTOOLS_TEST_ROOT": str(ROOT),
        "HANDTOOLS_TEST_HIDDEN": hidden,
        "PYTHONPATH": os.pathsep.join(filter(None, (site, os.environ.get("PYTHONPATH")))),
    }
