"""Looking at processes from outside: which run, and waiting for that to change."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait(
    condition: Callable[[], Any], seconds: float, process: subprocess.Popen[bytes] | None = None
) -> bool:
    """Whether something comes to be before the time is up, or a process has ended."""
    watch = process or subprocess.Popen(["sleep", str(seconds)])
    try:
        for _ in range(int(seconds * 10)):
            if condition():
                return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                watch.wait(0.1)
                return bool(condition())
        return False
    finally:
        if watch is not process:
            watch.kill()
            watch.wait()


def running(word: str) -> list[str]:
    """The processes that have a word among their arguments."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_text(errors="replace").split("\0")
            if word in words and "tee" not in words[0]:
                found.append(" ".join(words))
    return found
