"""Language: what language servers know about code, as values, and the ports to ask them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.changes import ChangeSet

Severity = Literal["error", "warning", "information", "hint"]
Standing = Literal["fresh", "likely", "unknown"]
"""How well a verdict is proved to be about the bytes on disk; `unknown` is neither clean nor broken."""
Asking = Literal[
    "definition",
    "references",
    "implementations",
    "hover",
    "symbols",
    "workspace_symbols",
    "callers",
    "callees",
    "actions",
    "rename",
    "diagnostics",
]
OTHERWISE = "Use `grep` and `read` instead."
"""The next step where no server has an answer."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint of a server. Lines count from 1, columns are characters from 0."""

    path: str
    line: int
    column: int
    message: str
    code: str = ""
    source: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one server says about one file, and how well that is proved."""

    path: str
    server: str
    standing: Standing
    diagnostics: tuple[Diagnostic, ...] = ()
    why: str = ""
    """What is in the way, where the standing is unknown."""
    seconds: float = 0.0

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Only what keeps the code from working."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


@dataclass(frozen=True, slots=True)
class Delta:
    """The errors of one file, told apart by a change."""

    path: str
    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    still: tuple[Diagnostic, ...] = ()
    compared: bool = True
    """False when nothing is known from before the change: then nobody can say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What servers say about a change: only what is proved, and what could not be."""

    deltas: tuple[Delta, ...] = ()
    """Of the files that were changed."""
    elsewhere: tuple[Delta, ...] = ()
    """Of other files that the change broke, newest first."""
    verdicts: tuple[Verdict, ...] = ()
    """Where each of these comes from, and every verdict that is unknown."""

    @property
    def unknown(self) -> tuple[Verdict, ...]:
        """What nobody can say yet."""
        return tuple(each for each in self.verdicts if each.standing == "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something to ask of the server of a file."""

    kind: Asking
    path: str
    """Empty, with `diagnostics` and `workspace_symbols`: the whole project."""
    line: int = 0
    column: int = 0
    text: str = ""
    """A new name, the title of an action, or what symbols to look for."""


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of code that an answer points to."""

    path: str
    line: int
    column: int
    end_line: int
    name: str = ""
    kind: str = ""
    outer: str = ""
    """What it stands in, as the server names it."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file as a rename or an action would have it."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said. Only the part that was asked for is filled."""

    server: str
    places: tuple[Place, ...] = ()
    text: str = ""
    titles: tuple[str, ...] = ()
    """Of the actions that are offered."""
    files: tuple[Rewritten, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    """What the answer may lack."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """A language server as a person hears of it."""

    name: str
    languages: tuple[str, ...]
    program: str
    """Where it was found; empty when it was not."""
    version: str
    install: str
    """The command that installs it."""


Late = Callable[[Review], None]
"""Told what arrives after the time was up; from another thread."""


class Language(Protocol):
    """Language servers as a tool sees them: what rules hide is never in an answer."""

    def missing(self, path: str) -> str:
        """Why nobody can answer about a file, with the command that helps; empty when somebody can."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Ask the server of a file."""
        ...


class HostLanguage(Protocol):
    """Language servers as a machine offers them: started when needed, ended when idle, without policy."""

    def speaks(self, path: str) -> bool:
        """Whether a server here knows the language of a file: from a table, never by starting one."""
        ...

    def missing(self, path: str) -> str:
        """As `Language`."""
        ...

    def warm(self, path: str, *, private: Sequence[str]) -> None:
        """Have the server of a file ready, as it will be needed; returns at once."""
        ...

    async def review(
        self,
        changes: ChangeSet,
        *,
        private: Sequence[str],
        timeout: float,  # noqa: ASYNC109
        late: Late,
    ) -> Review:
        """Tell servers what is on disk now, and give back what they prove in time. Never raises for a server."""
        ...

    async def ask(self, question: Question, *, private: Sequence[str]) -> Answer:
        """As `Language`; `private` are globs of what no server may see."""
        ...

    def speakers(self) -> list[Speaker]:
        """Every server that we know how to use, found or not."""
        ...

    def close(self) -> None:
        """Let go of servers that nobody else uses."""
        ...
