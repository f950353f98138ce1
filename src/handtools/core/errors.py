"""Exceptions: `ToolError` for the model, `HostError` for the user, `UsageError` for the calling code."""

from collections.abc import Callable


class HandtoolsError(Exception):
    """Base class of all exceptions that handtools raises on purpose."""


class ToolError(HandtoolsError):
    """Error shown to the model as a failed result: what is wrong, where, and a hint for the next step."""

    code = "failed"
    status = "error"
    unsettled = False
    """Whether a change could not be fully rolled back.

    Its journal entry then stays open, and the next call tries again.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidInput(ToolError):
    """The arguments of a tool call are invalid."""

    code = "invalid_input"


class UnknownTool(ToolError):
    """No tool with the called name is offered."""

    code = "unknown_tool"


class NotFound(ToolError):
    """No file or folder exists at the path."""

    code = "not_found"


class AlreadyExists(ToolError):
    """A file exists at the path and must not be overwritten."""

    code = "already_exists"


class WrongKind(ToolError):
    """The path is of the wrong kind for the call: a folder, a device, a binary file."""

    code = "wrong_kind"


class OutsideWorkspace(ToolError):
    """The path is outside the workspace, or may lead there."""

    code = "outside_workspace"


class TooLarge(ToolError):
    """Something exceeds a size limit that the message names."""

    code = "too_large"


class NoMatch(ToolError):
    """The text to replace was not found in the file."""

    code = "no_match"


class ManyMatches(ToolError):
    """The text to replace occurs more than once in the file."""

    code = "many_matches"


class Stale(ToolError):
    """The file changed since it was read for the call; nothing was written."""

    code = "stale"


class SymlinkInPath(Stale):
    """A symlink appeared in a path after it was resolved, so it may no longer lead to the checked file."""


class Busy(ToolError):
    """Another writer was still using the file, or still had its lock, when the timeout ended."""

    code = "busy"


class Denied(ToolError):
    """A policy rule or the user denied the effect."""

    code = "denied"
    status = "denied"


class TimedOut(ToolError):
    """The call exceeded its time limit."""

    code = "timeout"
    status = "timeout"


class Cancelled(ToolError):
    """The caller cancelled the call."""

    code = "cancelled"
    status = "cancelled"


class NothingToUndo(ToolError):
    """No recorded change matches the requested undo or redo."""

    code = "nothing_to_undo"


class Repeated(ToolError):
    """The same call failed too many times in a row and is no longer run."""

    code = "repeated"


class Unavailable(ToolError):
    """A program or service that the call needs is missing or does not respond.

    The message says how to fix it.
    """

    code = "unavailable"


class Unreachable(ToolError):
    """A web server can't be reached or returned no page."""

    code = "unreachable"


class RateLimited(ToolError):
    """A web server or search engine refuses requests for now because of rate limits."""

    code = "throttled"


class CallbackFailed(ToolError):
    """A callback of the embedding program failed."""

    code = "callback_failed"


class StorageFault(ToolError):
    """The operating system refused a write (disk full, read-only, no permission).

    No change is partly applied.
    """

    code = "storage"


class UnknownOutcome(ToolError):
    """Unknown whether the call took effect: the machine that ran it is gone, along with its journal."""

    code = "unknown_outcome"


class HostError(HandtoolsError):
    """Error for the user of this machine, who has to fix something on it."""


class JournalDamaged(HostError):
    """The journal database is damaged and can't be read."""


class UsageError(HandtoolsError):
    """Error for the calling code: wrong use of the Python API."""


def exception_raised_by(action: Callable[[], object]) -> Exception | None:
    """Run a function and return the exception that it raised, or None."""
    try:
        action()
    except Exception as failure:  # noqa: BLE001 — one of four, listed in tests/shape: a listener's bug must not fail the call
        return failure
    return None
