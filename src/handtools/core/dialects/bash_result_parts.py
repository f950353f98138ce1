"""What a command printed and how it ended, taken apart from the text of our `bash` and `jobs`. ADR 212."""

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
"""A command that a signal ended has this much more than the signal's number for its code, as in a shell."""


class CommandText(NamedTuple):
    """The parts of a result of `bash` or `jobs`."""

    stdout: str
    """With what went to stderr, where the two are not kept apart."""
    stderr: str
    notes: str
    """What our tool says beside the output: changed files, hosts that were refused."""
    code: int | None
    """None while it runs, and where it was stopped."""
    timed_out: bool
    seconds: float
    job: str

    @property
    def output(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr


def command_text(result: Result[Any]) -> CommandText:
    """Take the result of `bash` or `jobs` apart; a refusal is all notes."""
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
