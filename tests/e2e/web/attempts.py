"""The attempts of `attempts.toml`, in a machine of their own; `python -m tests.e2e.web.attempts` counts them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("attempts.toml")
ROOT = Path(__file__).parents[3]
PUBLIC = "203.0.113.10 80"
"""The one place that may be reached."""


def apart() -> list[str]:
    """A command line that puts what follows into a network and a mount namespace of its own."""
    mapped = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *mapped, "--net", "--mount"]


def missing() -> str:
    """Why the machine can't be put together here; empty when it can."""
    lacking = [name for name in ("unshare", "ip", "mount") if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} missing"
    tried = subprocess.run([*apart(), "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "namespaces can't be made"


@cache
def told() -> dict[str, Any]:
    """What came of every attempt, closed and open."""
    with tempfile.TemporaryDirectory() as folder:
        line = [*apart(), sys.executable, "-m", "tests.e2e.web.machine", str(CASES), folder]
        ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def astray(seen: dict[str, Any]) -> list[str]:
    """The places that an attempt reached and must not, while nothing was listed."""
    return [place for place in seen["closed"]["reached"] if place != PUBLIC]


def main() -> None:
    found = told()
    attempts = found["attempts"]
    openable = [each for each in attempts if each["opens"]]
    print(f"attempts: {len(attempts)}")
    print(f"reached what must not be reached: {sum(bool(astray(each)) for each in attempts)}")
    print(
        f"reached when listed: {sum(each['open']['status'] == 'ok' for each in openable)} of {len(openable)}"
    )
    print(f"reached by a client that looks first and connects by name: {len(found['naive'])} of 2")


if __name__ == "__main__":
    main()
