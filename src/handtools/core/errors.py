"""Errors, for three readers: the model (`ToolError`), a person (`HostError`), the calling code (`UsageError`)."""

from collections.abc import Callable


class HandtoolsError(Exception):
    """Everything we raise on purpose."""


class ToolError(HandtoolsError):
    """For the model: what is so, where, and the next step. The executor turns it into a result."""

    code = "failed"
    status = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidInput(ToolError):
    """The arguments can't mean anything."""

    code = "invalid_input"


class UnknownTool(ToolError):
    """No tool of that name is offered here."""

    code = "unknown_tool"


class NotFound(ToolError):
    """Nothing is at that path."""

    code = "not_found"


class AlreadyExists(ToolError):
    """Something is at that path and was not to be replaced."""

    code = "already_exists"


class WrongKind(ToolError):
    """The path is there but is not what the call needs: a folder, a device, a binary file."""

    code = "wrong_kind"


class OutsideWorkspace(ToolError):
    """The path leaves the workspace, or may."""

    code = "outside_workspace"


class TooLarge(ToolError):
    """Over a limit that the message names."""

    code = "too_large"


class NoMatch(ToolError):
    """The text to replace is not in the file."""

    code = "no_match"


class ManyMatches(ToolError):
    """The text to replace is there more than once."""

    code = "many_matches"


class Stale(ToolError):
    """The file is no longer what the call was based on; nothing was written."""

    code = "stale"


class Redirected(Stale):
    """A link has come into the way since the path was located: what is there now is not what was judged."""


class Busy(ToolError):
    """Another writer holds the file and did not let go in time."""

    code = "busy"


class Denied(ToolError):
    """A rule or a person said no."""

    code = "denied"
    status = "denied"


class TimedOut(ToolError):
    """The call's time ran out."""

    code = "timeout"
    status = "timeout"


class Cancelled(ToolError):
    """The caller took the call back."""

    code = "cancelled"
    status = "cancelled"


class NothingToUndo(ToolError):
    """There is no recorded change that the words name."""

    code = "nothing_to_undo"


class Repeated(ToolError):
    """The same failing call, once too often."""

    code = "repeated"


class Unavailable(ToolError):
    """What the call needs is not installed or does not answer here; the message names the remedy."""

    code = "unavailable"


class Unreachable(ToolError):
    """A server can't be reached, or gives no page."""

    code = "unreachable"


class Throttled(ToolError):
    """A server does not want to be asked now; there may well be something."""

    code = "throttled"


class CallbackFailed(ToolError):
    """What only the program around us can do went wrong there."""

    code = "callback_failed"


class StorageFault(ToolError):
    """The machine refused a write: no space, read-only, no permission. Nothing is half-done."""

    code = "storage"


class HostError(HandtoolsError):
    """For a person: something on this machine needs their hand."""


class JournalDamaged(HostError):
    """The record can't be read."""


class UsageError(HandtoolsError):
    """For the calling code: it was put together wrongly."""


def caught_exception(action: Callable[[], object]) -> Exception | None:
    """Run it; give back what it raised."""
    try:
        action()
    except Exception as failure:  # noqa: BLE001 — one of three, listed in tests/shape: a listener's bug is not the call's
        return failure
    return None
