"""Parses the result text of our `bash` and `jobs` into output, exit and notes."""

import re
from typing import Any, NamedTuple

from handtools.core.result import Result

_ENDING = re.compile(
    r"^(?:Exit code -?\d+|Timed out|Killed|Ended by signal \d+|Stopped by a limit on memory or file size)"
    r" after [\d.]+ s\b.*$",
    re.MULTILINE,
)
_JOB = re.compile(r"^job\d+: .* bytes of output: .*$", re.MULTILINE)
SIGNALLED = 128
"""Added to the signal number for the exit code of a command terminated by a signal, as in a shell."""


class CommandText(NamedTuple):
    """The parts of a result of `bash` or `jobs`."""

    stdout: str
    """Includes stderr if the two are not separated."""
    stderr: str
    notes: str
    """Text that our tool adds to the output: changed files, refused hosts."""
    code: int | None
    """Exit code; None while the command runs or if it was stopped."""
    timed_out: bool
    seconds: float
    job: str

    @property
    def full_output(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr


def parse_command_text(result: Result[Any]) -> CommandText:
    """Parse the result of `bash` or `jobs`; a refusal is returned as notes."""
    details = result.details
    if details is None:
        return CommandText("", "", result.text, None, result.status == "timeout", 0.0, "")
    jobs = getattr(details, "jobs", None)
    endings = list((_ENDING if jobs is None else _JOB).finditer(result.text))
    printed = result.text[: endings[-1].start()] if endings else ""
    notes = result.text[endings[-1].end() :] if endings else result.text
    stdout, stderr = getattr(details, "stdout", None), getattr(details, "stderr", None)
    code = details.code
    if code is None and details.signal is not None:
        code = SIGNALLED + details.signal
    return CommandText(
        printed if stdout is None else stdout,
        stderr or "",
        notes.strip("\n"),
        code,
        getattr(details, "ended", "") == "timeout",
        details.seconds,
        jobs[0] if jobs else getattr(details, "job", ""),
    )
