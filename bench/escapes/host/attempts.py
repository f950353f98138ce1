"""Attempts: one attack in a process of its own, bounded, and what shows from outside that it succeeded."""

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.escapes.host import attacks, heldout, heldout_second
from bench.escapes.host.judge import Scan, scan
from bench.escapes.host.place import Place, new_place

ATTEMPT_SECONDS = 150.0
"""An attack that still runs then is ended, and has succeeded."""
CALL_SECONDS = 40.0
GROWTH_BYTES = 400 << 20
"""What our own process may take on for one attack. What runs in a limited child is not counted."""
_MAX_BYTES = 5 << 30

Attack = Callable[[Place], Awaitable[str | None]]
"""Tries one thing; says what it saw itself if that alone shows a success."""


@dataclass(frozen=True, slots=True)
class Named:
    """An attack with its family and the sentence that says what it tries."""

    family: str
    name: str
    sentence: str
    attack: Attack
    held_out: str = ""
    """The round of held-out attacks that it belongs to; empty for the others."""

    @property
    def title(self) -> str:
        return f"{self.held_out}/{self.family}/{self.name}".lstrip("/")


def known() -> list[Named]:
    """Every attack: the public coroutine functions of the modules in `attacks/`, then of the held-out rounds."""
    rounds = (("", attacks), ("heldout", heldout), ("heldout_second", heldout_second))
    return [each for held_out, package in rounds for each in _attacks_of(package, held_out)]


def _attacks_of(package: ModuleType, held_out: str) -> Iterator[Named]:
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(module).items():
            own = inspect.iscoroutinefunction(value) and value.__module__ == module.__name__
            if own and not name.startswith("_"):
                yield Named(info.name, name, inspect.getdoc(value) or "", value, held_out)


def attempt(attack: Attack, new: Callable[[Path, int], Place] = new_place) -> list[str]:
    """Run an attack in a new place; gives everything that shows it succeeded."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="host-")))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        try:
            place = new(base, listener.getsockname()[1])
            found = _in_a_child(place, lambda: _act(place, attack))
            found += _verdicts(place)
            found += place.changes_elsewhere()
            if _was_contacted(listener):
                found.append("ran outside: it reached a listener on loopback")
            return found + _in_a_child(place, lambda: _go_on(place))
        finally:
            _remove(base)


def _act(place: Place, attack: Attack) -> None:
    async def acting() -> None:
        try:
            own_word = await attack(place)
            if own_word:
                place.tell("found", own_word)
        finally:
            place.leave()

    resident = _memory("VmRSS")
    asyncio.run(acting())
    place.tell("grew", _memory("VmHWM") - resident)


def _go_on(place: Place) -> None:
    """Ordinary calls of the next process of ours: whatever the attack left, they must work."""
    place.begun = True

    async def going_on() -> None:
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("write", {"path": "later.txt", "content": "later\n"}),
            ("read", {"path": "later.txt"}),
            ("list", {}),
            ("grep", {"pattern": "later", "path": "later.txt"}),
            ("bash", {"command": "echo still here"}),
        )
        for tool, args in calls:
            started = time.monotonic()
            result = await place.call(tool, **args)
            seconds = time.monotonic() - started
            if not result.ok or (tool == "bash" and "still here" not in result.text):
                place.tell("later", f"{tool} then ended as {result.status}: {result.text[:120]}")
            elif seconds > CALL_SECONDS:
                place.tell("later", f"{tool} then took {seconds:.0f} s")
        place.close()

    with place.transcript.open("w"):
        pass
    asyncio.run(going_on())


def _in_a_child(place: Place, action: Callable[[], None]) -> list[str]:
    """Run something in a forked child; gives how it failed, and what later calls said of themselves."""
    pid = os.fork()
    if pid == 0:
        _be_the_child(place, action)
    ended = _wait(pid)
    told = [value for kind, value in _lines(place.transcript) if kind == "later"]
    if ended is None:
        _end_processes(place.transcript)
        return [*told, f"took longer than {ATTEMPT_SECONDS:g} s"]
    return told if ended == 0 else [*told, f"our process failed: {_failure(place, ended)}"]


def _be_the_child(place: Place, action: Callable[[], None]) -> None:
    code = 1
    try:
        import resource

        environment = place.environment()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(place.outside)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, hard))
        with (place.base / "errors").open("wb") as errors:
            os.dup2(errors.fileno(), 1)
            os.dup2(errors.fileno(), 2)
        action()
        code = 0
    except BaseException:
        place.tell("raised", traceback.format_exc()[-2000:])
    finally:
        os._exit(code)


def _wait(pid: int) -> int | None:
    """The exit code of a child; None when its time was up and it was killed."""
    handle = os.pidfd_open(pid)
    try:
        ready = select.select([handle], [], [], ATTEMPT_SECONDS)[0]
        if not ready:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(status) if ready else None


def _failure(place: Place, code: int) -> str:
    raised = [str(value) for kind, value in _lines(place.transcript) if kind == "raised"]
    return raised[-1].strip().splitlines()[-1][:200] if raised else f"exit code {code}"


def _verdicts(place: Place) -> list[str]:
    found = []
    lines = list(_lines(place.transcript))
    if place.mark.exists():
        found.append(
            f"ran outside: {' '.join(place.mark.read_text().split())[:100] or 'something'} left the mark"
        )
        place.mark.unlink()
    found += [f"shown: the secret {name}" for name in _shown(place)]
    for kind, value in lines:
        if kind == "before":
            later = scan(place.workspace, (place.outside, place.home))
            found += list(Scan(**value).changes(later, _allowed(lines)))
        elif kind == "bug":
            found.append(f"a bug: {value}")
        elif kind == "found":
            found.append(str(value))
        elif kind == "took" and value[1] > CALL_SECONDS:
            found.append(f"{value[0]} took {value[1]:.0f} s")
        elif kind == "grew" and value > GROWTH_BYTES:
            found.append(f"our process grew by {value >> 20} MB")
    return found


def _allowed(lines: list[tuple[str, Any]]) -> list[str]:
    return [value for kind, value in lines if kind == "allowed"]


def _shown(place: Place) -> list[str]:
    """The secrets that an answer, an event or a kept output holds; a victim's own outputs may hold theirs."""
    said = "\n".join(
        json.dumps(value) for kind, value in _lines(place.transcript) if kind == "said"
    ).encode()
    kept = b"".join(path.read_bytes() for path in place.state.glob("*/outputs/*") if path.is_file())
    return [
        name
        for name, value in place.secrets.items()
        if value.encode() in said or (name != "VICTIM" and value.encode() in kept)
    ]


def _lines(transcript: Path) -> Iterator[tuple[str, Any]]:
    with contextlib.suppress(FileNotFoundError), transcript.open() as file:
        for line in file:
            # The last line is torn when the process was killed over it.
            with contextlib.suppress(json.JSONDecodeError):
                kind, value = json.loads(line)
                yield kind, value


def _was_contacted(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _end_processes(transcript: Path) -> None:
    """A killed attack could not end what it had started."""
    for kind, value in _lines(transcript):
        if kind == "process":
            with contextlib.suppress(ProcessLookupError):
                os.kill(value, signal.SIGKILL)


def _remove(base: Path) -> None:
    """Not with shutil: a tree may be deeper than it can go. What is mounted in it goes first."""
    for row in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        if (point := row.split()[4]).startswith(f"{base}/"):
            subprocess.run(
                [shutil.which("umount") or "umount", "-l", point], check=False, stderr=sys.stderr
            )
    subprocess.run(
        [shutil.which("chmod") or "chmod", "-R", "u+rwx", str(base)], capture_output=True, check=False
    )
    subprocess.run([shutil.which("rm") or "rm", "-rf", str(base)], check=False, stderr=sys.stderr)
