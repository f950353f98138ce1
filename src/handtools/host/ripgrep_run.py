"""A run of ripgrep: one process, read in a thread, killed and reaped however it ends."""

import errno
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Literal, TypeVar

import anyio
from anyio import to_thread

from handtools.core.errors import HostError, InvalidInput
from handtools.core.searching import Gaps
from handtools.host.programs import PIPE, Program, nameless_file, start
from handtools.host.repositories import is_plain

T = TypeVar("T")
Collect = Callable[["Run", IO[bytes]], T]

_READ_BYTES = 1 << 16
_ERROR_BYTES = 1 << 20
_MESSAGE = "rg: "
_DEBUG = "rg: DEBUG|"
_OPENED = re.compile(r"^rg: DEBUG\|ignore::gitignore\|.*?: opened gitignore file: (.*)$", re.DOTALL)
_QUOTED = re.compile(r": line \d+: ")
"""Complaints about a rule of an ignore file quote it, and such a file may be a link to a private one."""
_ABOUT_THE_PATTERN = (
    "regex parse error",
    "compiled regex exceeds",
    "is not allowed in a regex",
    "error parsing",
    "impossible to match",
)


class SearchFailed(HostError):
    """The machine would not run it."""


class Run:
    """What the thread that reads and the task that watches both know of a process."""

    def __init__(
        self, program: Program, arguments: Sequence[str], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self.capped = False
        self.timed_out = False
        self.linked: list[str] = []
        """Ignore files that it has read through a link, or that are not plain: with `--debug` it says which."""
        self._cwd = str(cwd)
        self._said = ""
        self._errors = nameless_file()
        self._lock = threading.Lock()
        self._state: Literal["started", "read", "ended"] = "started"
        try:
            self._process = start(
                program,
                arguments,
                cwd=cwd,
                stdout=PIPE,
                stderr=self._errors,
                pass_fds=pass_fds,
                buffer_bytes=_READ_BYTES,
            )
        except BaseException:
            self._errors.close()
            raise

    def cap(self) -> None:
        """Enough was found: end the process."""
        self.capped = True
        self._process.kill()

    def end(self) -> bool:
        """Kill the process; tells whether the thread that reads it is still to come to its end."""
        self._process.kill()
        with self._lock:
            reading = self._state == "read"
            self._state = "ended"
        if not reading:
            self._reap()
        return reading

    def read(self, collect: Collect[T]) -> T | None:
        """Collect what it says; returns when it is gone."""
        with self._lock:
            if self._state == "ended":
                return None
            self._state = "read"
        try:
            assert self._process.stdout is not None
            return collect(self, self._process.stdout)
        except BaseException:
            # Closing the pipe alone would let rg walk on until it has something to say.
            self._process.kill()
            raise
        finally:
            self._reap()

    def _reap(self) -> None:
        with self._errors as errors, self._process:
            self._process.wait()
            errors.seek(0)
            said, room = [], _ERROR_BYTES
            for data in errors:
                line = data.decode("utf-8", "surrogateescape")
                if opened := _OPENED.match(line.rstrip("\n")):
                    if not is_plain(os.path.join(self._cwd, opened[1]), self._cwd):
                        self.linked.append(opened[1].removeprefix("./"))
                elif not line.startswith(_DEBUG) and not _QUOTED.search(line) and room > 0:
                    room -= len(line)
                    said.append(data)
            self._said = b"".join(said).decode("utf-8", "replace")

    def gaps(self) -> Gaps:
        """What was left out, once the process is gone; raises when it was the pattern that could not be used."""
        code = self._process.returncode
        if code == 2 and any(words in self._said for words in _ABOUT_THE_PATTERN):
            reason = self._said.removeprefix(_MESSAGE).strip()
            hint = "Escape what is meant as it is, or set syntax='literal'."
            raise InvalidInput(f"The pattern can't be used: {reason.rstrip('.')}.", hint=hint)
        skipped = [
            line.removeprefix(_MESSAGE) for line in self._said.splitlines() if line.startswith(_MESSAGE)
        ]
        return Gaps(
            capped=self.capped,
            timed_out=self.timed_out and not self.capped,
            unreadable=len(skipped),
            example=skipped[0].removeprefix("./") if skipped else "",
        )


async def run(
    program: Program,
    arguments: Sequence[str],
    *,
    cwd: Path,
    seconds: float,
    collect: Collect[T],
    pass_fds: Sequence[int] = (),
) -> tuple[T, Run]:
    """Run to the end, the deadline or the cancellation, whichever is first; no process outlives it."""
    try:
        # Here and not in the thread: while the one wakes up, the other is on its way.
        started = Run(program, arguments, cwd, pass_fds)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise InvalidInput("The pattern is too long.", hint="Look for a part of it.") from None
        raise SearchFailed(f"ripgrep could not be run ({program.file}): {error.strerror}.") from error
    outcome: list[T] = []
    gone = threading.Event()

    def read() -> None:
        try:
            found = started.read(collect)
            if found is not None:
                outcome.append(found)
        finally:
            gone.set()

    try:
        with anyio.move_on_after(seconds):
            await to_thread.run_sync(read, abandon_on_cancel=True)
    finally:
        if not gone.is_set():
            started.timed_out = True
            if started.end():
                # The thread is left alone only for as long as a killed process takes to go.
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(gone.wait)
    if not outcome:
        raise SearchFailed(f"The machine is busy: nobody could read what ripgrep found in {seconds:g} s.")
    return outcome[0], started
