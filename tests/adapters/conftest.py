"""The suites need an SDK each, in an environment of its own: `.ci/adapters` names it; else none is collected.

There run the contract, if the adapter has a driver for it, and the adapter's own tests, if there are any.
"""

import os
from pathlib import Path

HERE, ADAPTER = Path(__file__).parent, os.environ.get("HANDTOOLS_ADAPTER", "")
_WANTED = {f"test_{ADAPTER}.py"} if ADAPTER else set()
if (HERE / f"driver_{ADAPTER}.py").exists():
    _WANTED.add("test_contract.py")
collect_ignore = [path.name for path in HERE.glob("test_*.py") if path.name not in _WANTED]
