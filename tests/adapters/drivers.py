"""What the contract asks of an adapter's driver: run scripted calls through the real SDK, and its pause.

A driver is `tests/adapters/driver_NAME.py`, where NAME is the module's name in `handtools.adapters` and that of
`requirements/adapters/NAME.txt` and `NAME-floor.txt`. It has a class `Driver`; `VERSION`, the names of the
packages whose versions stand in the table, with spaces between them; and, for the example of the SDK,
`scripted_model(*steps)`, the SDK's double, which says the steps one after another (a list of `Wanted`, or a text).
A driver uses the SDK as a user would; everything that reaches a tool passes through `handtools.adapters.NAME`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from handtools import Toolbox

CELLS = (
    "every tool",
    "text",
    "image",
    "document",
    "tool error",
    "bad arguments",
    "malformed JSON",
    "unknown tool",
    "ask, yes in a new process",
    "ask, no",
    "edited arguments",
    "parallel calls",
    "cancel",
    "cancel, then go on",
    "same id runs once",
    "2 MB of output",
    "prefix",
)
"""The rows of the table; each is the mark (`@pytest.mark.cell`) of one test or several."""


class Wanted(NamedTuple):
    """A call of the scripted model; arguments as text are sent as they are."""

    tool: str
    args: Mapping[str, Any] | str
    id: str


@dataclass
class Said:
    """What the model reads of one call."""

    text: str
    error: bool
    media: list[str] = field(default_factory=list)


class Driver(Protocol):
    limits: Mapping[str, str]
    """What the SDK can't do: a cell, and why with the SDK's version, "langchain 1.4.7: …".

    Leave it out, or empty, if there is nothing. The test of such a cell is run and must fail, so that a limit that
    is gone is noticed; a method that can't be written raises `NotImplementedError`.
    """

    async def run(self, box: Toolbox, *calls: Wanted, conversation: str = "") -> list[Said]:
        """Let a model make these calls in one turn and then end with a text; check that the run came to that end.

        Return what the model read, one for each call and in their order. Without a conversation it is a new one.
        When this is cancelled, the run is: it must stay possible to `go_on`.
        """

    async def ask(self, box: Toolbox, call: Wanted) -> Any:
        """Run into a question; return the paused run as it would be stored, and the question as JSON values.

        The question has at least the fields of `question_to_json`. A file for the paused run goes where `tempfile`
        puts it: the test has it in a folder of its own.
        """

    async def answer(
        self, box: Toolbox, paused: Any, *, allow: bool, args: Mapping[str, Any] | None = None
    ) -> list[Said]:
        """Go on from the stored pause to the end, with another toolbox; `args` are those that a person edited."""

    def dump(self, paused: Any) -> bytes:
        """Return the paused run as the SDK itself serialises it, or where it is stored."""

    def load(self, data: bytes) -> Any:
        """Return the paused run of `dump` in another process, for `answer`."""

    async def go_on(self, box: Toolbox, *calls: Wanted, conversation: str) -> list[Said]:
        """Take up a run of these calls that was cancelled, as the SDK does: from its checkpoint or history.

        Where the SDK keeps nothing of a cancelled run, the model makes the same calls once more, as `run` does.
        """
