"""Git: where a file went, from the history of its repository. Read only, bounded, and nothing of it is run."""

import os
import subprocess
from pathlib import Path

COMMITS = 300
"""How far back renames are looked for."""
SECONDS = 2.0
_STEPS = 20
# A repository's own settings must not start programs of its choosing.
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false")
_ARGUMENTS = (
    "log",
    f"-n{COMMITS}",
    "--diff-filter=R",
    "-M",
    "--name-status",
    "--relative",
    "-z",
    "--format=",
)


def moved(root: str | Path, path: str) -> str | None:
    """The path that a file has now, if commits renamed it; None when git does not say."""
    renames = _renames(root)
    now = path
    for _ in range(_STEPS):
        if now not in renames:
            break
        now = renames[now]
    return None if now == path else now


def _renames(root: str | Path) -> dict[str, str]:
    """The newest rename of each old name."""
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *settings, "--no-pager", *_ARGUMENTS],
            cwd=root,
            env=os.environ | quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    words = [os.fsdecode(word) for word in done.stdout.split(b"\0") if word]
    renames: dict[str, str] = {}
    for status, old, new in zip(words[::3], words[1::3], words[2::3], strict=False):
        if status.lstrip("\n").startswith("R"):
            renames.setdefault(old, new)
    return renames
