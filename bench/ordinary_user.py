"""A bench run again as an ordinary user."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_TRIAL = """
import os, sys
import anyio, handtools
sys.exit(not os.access(os.path.realpath(sys._base_executable), os.X_OK))
"""


def as_user(user: int, words: list[str]) -> int:
    """Run `python -m bench` as a user, with an interpreter that they can start; gives its exit code."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        raise SystemExit("Only root, with setpriv, can run it as another user.")
    site = [path for path in sys.path if path.endswith("site-packages")]
    become = [setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    env = os.environ | {"HOME": "/", "PYTHONPATH": os.pathsep.join([f"{_ROOT}/src", str(_ROOT), *site])}
    env["PATH"] = os.pathsep.join([*(str(Path(path).parents[2] / "bin") for path in site), env["PATH"]])
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        trial = [*become, python, "-c", _TRIAL]
        if subprocess.run(trial, capture_output=True, check=False, cwd="/", env=env).returncode == 0:
            line = [*become, python, "-m", "bench", *words]
            return subprocess.run(line, check=False, cwd="/", env=env).returncode
    raise SystemExit(f"There is no interpreter that user {user} can start.")
