"""A run of ripgrep: one process, read in a thread, killed and reaped however it ends."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

import anyio
from anyio import to_thread

from handtools.core.errors import HostError, InvalidInput
from handtools.core.searching import Gaps

T = TypeVar("T")
Collect = Callable[["Run", IO[bytes]], T]

_READ_BYTES = 1 << 16
_ERROR_BYTES = 1 << 20
_MESSAGE = "rg: "
_ABOUT_THE_PATTERN = (
    "regex parse error",
    "compiled regex exceeds",
    "is not allowed in a regex",
    "error parsing",
)


class SearchFailed(HostError):
    """The machine would not run it."""


@dataclass(slots=True)
class Run:
    """What the thread that reads and the task that watches both know of a process."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    capped: bool = False
    timed_out: bool = False
    over: bool = False
    said: str = ""

    async def watch(self, seconds: float) -> None:
        """End the process when its time is up; or at once when this task is cancelled, for whatever reason."""
        try:
            await anyio.sleep(seconds)
            self.timed_out = True
        finally:
            self.over = True
            if self.process is not None:
                self.process.kill()

    def read(self, collect: Collect[T]) -> T:
        """Start the process and collect what it says; returns when it is gone."""
        with TemporaryFile() as errors:
            process = self._start(errors)
            ended = False
            try:
                assert process.stdout is not None
                with process.stdout as stream:
                    found = collect(self, stream)
                ended = not self.capped
            finally:
                # Closing the pipe alone would let rg walk on until it has something to say.
                if not ended or self.over:
                    process.kill()
                process.wait()
            errors.seek(0)
            self.said = errors.read(_ERROR_BYTES).decode("utf-8", "replace")
        return found

    def gaps(self) -> Gaps:
        """What was left out, once the process is gone; raises when it was the pattern that could not be used."""
        code = self.process.returncode if self.process else 0
        if code == 2 and any(words in self.said for words in _ABOUT_THE_PATTERN):
            reason = self.said.removeprefix(_MESSAGE).strip()
            hint = "Escape what is meant as it is, or set syntax='literal'."
            raise InvalidInput(f"The pattern can't be used: {reason}", hint=hint)
        skipped = [
            line.removeprefix(_MESSAGE) for line in self.said.splitlines() if line.startswith(_MESSAGE)
        ]
        return Gaps(
            capped=self.capped,
            timed_out=self.timed_out and not self.capped,
            unreadable=len(skipped),
            example=skipped[0].removeprefix("./") if skipped else "",
        )

    def _start(self, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        process = self.process = subprocess.Popen(
            self.argv,
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=_READ_BYTES,
        )
        if self.over:
            process.kill()
        return process


async def run(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], seconds: float, collect: Collect[T]
) -> tuple[T, Gaps]:
    """Run to the end, the deadline or the cancellation, whichever is first; no process outlives it."""
    started = Run(argv, cwd, environment)
    outcome: list[T] = []
    refusal: OSError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(started.watch, seconds)
        try:
            # The thread is never abandoned: a cancelled watch kills the process, and the thread then ends.
            outcome.append(await to_thread.run_sync(started.read, collect))
        except OSError as error:
            refusal = error
        group.cancel_scope.cancel()
    if refusal is not None:
        raise SearchFailed(f"ripgrep could not be run ({argv[0]}): {refusal.strerror}.") from refusal
    return outcome[0], started.gaps()
