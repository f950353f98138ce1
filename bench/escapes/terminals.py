"""Terminals: attempts on the terminal that a person sits at, run by a bench that was started there."""

import os
import subprocess
import sys
import tempfile
import termios
import tty
from pathlib import Path

from bench.escapes.scene import Scene
from bench.escapes.scripts import Script

INSIDE = "BENCH_ESCAPES_INSIDE"
_SECONDS = 60


def take(path: str) -> None:
    """Make a terminal the controlling one of this session: the first that a session opens is."""
    os.environ[INSIDE] = "1"
    os.open(path, os.O_RDWR)


def attempt(name: str, script: Script, place: Scene) -> tuple[bytes, list[str]]:
    """Run it below a terminal; the terminal then shows whether anything was typed, drawn or set."""
    screen, keyboard = os.openpty()
    try:
        tty.setraw(keyboard)
        os.set_blocking(screen, False)
        os.set_blocking(keyboard, False)
        before = termios.tcgetattr(keyboard)
        with tempfile.TemporaryDirectory() as folder:
            # Its own scene has its own mark, so the mark to look for is written into the script.
            file = Path(folder, script.name)
            file.write_text(f"#!{script.interpreter}\n{_preset(script, place.nonce)}{script.text}")
            command = [sys.executable, "-m", "bench", "escapes", "--runner", name, "--script", str(file)]
            done = subprocess.run(
                [*command, "--terminal", os.ttyname(keyboard)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                start_new_session=True,
                check=False,
            )
        found = []
        if place.nonce.encode() in _waiting(keyboard):
            found.append("typed into the terminal")
        if place.nonce.encode() in _waiting(screen):
            found.append("drew on the terminal")
        if termios.tcgetattr(keyboard) != before:
            found.append("changed the terminal's settings")
        if f"ESCAPED:{place.nonce}".encode() in done.stdout:
            found.append("it did what it tried")
    finally:
        os.close(screen)
        os.close(keyboard)
    return done.stdout + done.stderr, found


def _preset(script: Script, nonce: str) -> str:
    if "python" in script.interpreter:
        return f"import os; os.environ['NONCE'] = '{nonce}'\n"
    return f"export NONCE={nonce}\n"


def _waiting(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""
