"""Language servers and formatters: questions, answers, diagnostics and their ports.

`diagnostic_delta` tells which diagnostics of a file are new, fixed or still there after a change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.changes import ChangeSet
from handtools.text.diffs.alignment import align, line_after_edits
from handtools.text.lines import split
from handtools.text.truncation import clip_line, one_line

Severity = Literal["error", "warning", "information", "hint"]
Certainty = Literal["fresh", "likely", "unknown"]
"""How well a verdict is proved to be about the bytes on disk; `unknown` is neither clean nor broken."""
LanguageOperation = Literal[
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
NO_SERVER_HINT = "Use `grep` and `read` instead."
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
class DiagnosticReport:
    """What one server says about one file, and how well that is proved."""

    path: str
    server: str
    standing: Certainty
    diagnostics: tuple[Diagnostic, ...] = ()
    why: str = ""
    """What is in the way, where the standing is unknown."""
    seconds: float = 0.0

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Only what keeps the code from working."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


@dataclass(frozen=True, slots=True)
class DiagnosticDelta:
    """The errors of one file, told apart by a change."""

    path: str
    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    still: tuple[Diagnostic, ...] = ()
    compared: bool = True
    """False when nothing is known from before the change: then nobody can say which are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticReview:
    """What servers say about a change: only what is proved, and what could not be."""

    deltas: tuple[DiagnosticDelta, ...] = ()
    """Of the files that were changed."""
    elsewhere: tuple[DiagnosticDelta, ...] = ()
    """Of other files that the change broke, newest first."""
    verdicts: tuple[DiagnosticReport, ...] = ()
    """Where each of these comes from, and every verdict that is unknown."""

    @property
    def unknown(self) -> tuple[DiagnosticReport, ...]:
        """What nobody can say yet."""
        return tuple(each for each in self.verdicts if each.standing == "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageQuestion:
    """Something to ask of the server of a file."""

    kind: LanguageOperation
    path: str
    """Empty, with `diagnostics` and `workspace_symbols`: the whole project."""
    line: int = 0
    column: int = 0
    text: str = ""
    """A new name, the title of an action, or what symbols to look for."""


@dataclass(frozen=True, slots=True)
class CodeLocation:
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
class RewrittenFile:
    """A file as a rename or an action would have it."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageAnswer:
    """What a server said. Only the part that was asked for is filled."""

    server: str
    places: tuple[CodeLocation, ...] = ()
    text: str = ""
    titles: tuple[str, ...] = ()
    """Of the actions that are offered."""
    files: tuple[RewrittenFile, ...] = ()
    verdicts: tuple[DiagnosticReport, ...] = ()
    notes: tuple[str, ...] = ()
    """What the answer may lack."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A language server as a person hears of it."""

    name: str
    languages: tuple[str, ...]
    program: str
    """Where it was found; empty when it was not."""
    version: str
    install: str
    """The command that installs it."""


LateReviewListener = Callable[[DiagnosticReview], None]
"""Told what arrives after the time was up; from another thread."""


class Language(Protocol):
    """Language servers as a tool sees them: what rules hide is never in an answer."""

    def missing(self, path: str) -> str:
        """Why nobody can answer about a file, with the command that helps; empty when somebody can."""
        ...

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
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
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """Tell servers what is on disk now, and give back what they prove in time. Never raises for a server."""
        ...

    async def ask(self, question: LanguageQuestion, *, private: Sequence[str]) -> LanguageAnswer:
        """As `Language`; `private` are globs of what no server may see."""
        ...

    def speakers(self) -> list[KnownServer]:
        """Every server that we know how to use, found or not."""
        ...

    def close(self) -> None:
        """Let go of servers that nobody else uses."""
        ...


SHOWN_PER_FILE = 20
"""Errors that are shown of one file."""
SHOWN_OTHER_FILES = 5
"""Other files that are shown."""
MESSAGE_CHARS = 300


def diagnostic_delta(
    path: str, before: str, after: str, old: Sequence[Diagnostic], now: Sequence[Diagnostic]
) -> DiagnosticDelta:
    """Tell errors apart by where the old ones stand now: a line that moved does not make an error new."""
    if not old or not now:
        return DiagnosticDelta(path, tuple(now), tuple(old))
    edits = [] if before == after else align(split(before), split(after))
    left: dict[tuple[str, str, str, int | None], list[Diagnostic]] = {}
    for each in old:
        left.setdefault((*_diagnostic_identity(each), line_after_edits(edits, each.line)), []).append(each)
    new: list[Diagnostic] = []
    still: list[Diagnostic] = []
    for each in now:
        at = left.get((*_diagnostic_identity(each), each.line))
        if at:
            at.pop()
            still.append(each)
        else:
            new.append(each)
    gone = [each for group in left.values() for each in group]
    # On a line that was itself changed an error keeps its identity by its words.
    for each in list(new):
        match = next(
            (
                one
                for one in gone
                if _diagnostic_identity(one) == _diagnostic_identity(each)
                and _in_same_edit(edits, one, each)
            ),
            None,
        )
        if match is not None:
            gone.remove(match)
            new.remove(each)
            still.append(each)
    return DiagnosticDelta(path, tuple(new), tuple(gone), tuple(still))


def _diagnostic_identity(each: Diagnostic) -> tuple[str, str, str]:
    return each.source, each.code, each.message


def _in_same_edit(edits: Sequence[tuple[int, int, int, int]], old: Diagnostic, now: Diagnostic) -> bool:
    """Whether both stand in the same changed region."""
    return any(
        start_a < old.line <= end_a and start_b < now.line <= end_b
        for start_a, end_a, start_b, end_b in edits
    )


def review_text(review: DiagnosticReview) -> str:
    """A review as the model reads it; empty when nobody looked."""
    if not review.verdicts:
        return ""
    proved = [each for each in review.verdicts if each.standing != "unknown"]
    what = f" {_counted(review)} ({_servers(proved)})." if proved else ""
    said = [f"The change was applied.{what}"]
    for each in review.deltas:
        said += diagnostic_lines(each.new)
    if review.elsewhere:
        said.append("It broke other files:")
        for each in review.elsewhere[:SHOWN_OTHER_FILES]:
            said += diagnostic_lines(each.new)
        if len(review.elsewhere) > SHOWN_OTHER_FILES:
            said.append(f"… and {len(review.elsewhere) - SHOWN_OTHER_FILES} more files.")
    said += [unknown_report_text(verdict) for verdict in review.unknown]
    return "\n".join(said)


def _counted(review: DiagnosticReview) -> str:
    new = sum(len(each.new) for each in review.deltas)
    fixed = sum(len(each.fixed) for each in review.deltas)
    still = sum(len(each.still) for each in review.deltas)
    counts = [
        f"{count} {name}"
        for count, name in ((new, "new"), (fixed, "fixed"), (still, "still there"))
        if count
    ]
    return f"Errors: {', '.join(counts)}" if new or still else ", ".join(["No errors", *counts])


def unknown_report_text(verdict: DiagnosticReport) -> str:
    """What is said in place of a verdict."""
    why = verdict.why or "server still checking"
    return f"{verdict.path}: errors unknown ({verdict.server}: {why}); not known to be clean."


def diagnostic_lines(errors: Sequence[Diagnostic]) -> list[str]:
    """Errors as lines, the first of them if they are many."""
    shown = [
        f"{each.path}:{each.line}:{each.column + 1} {clip_line(one_line(each.message), MESSAGE_CHARS)}"
        f"{f' [{each.code}]' if each.code else ''}"
        for each in errors[:SHOWN_PER_FILE]
    ]
    more = len(errors) - SHOWN_PER_FILE
    return [*shown, f"… and {more} more in {errors[0].path}."] if more > 0 else shown


def _servers(verdicts: Sequence[DiagnosticReport]) -> str:
    names = dict.fromkeys(
        each.server if each.standing == "fresh" else f"{each.server}, likely" for each in verdicts
    )
    return "; ".join(names)


@dataclass(frozen=True, slots=True)
class Formatted:
    """What came of formatting one file."""

    formatter: str
    data: bytes | None = None
    """The file as it should be; None leaves it as it is."""
    why: str = ""
    """Why it was left, where the model should know."""


class Formatters(Protocol):
    """Formatters as a machine offers them: bytes in, bytes out; they never write."""

    def formats(self, path: str) -> bool:
        """Whether the project has a formatter for a file: from tables and the presence of its settings."""
        ...

    async def format(
        self, path: str, before: bytes | None, after: bytes, *, private: Sequence[str]
    ) -> Formatted | None:
        """Format what a change made of a file, as far as the change goes; None when there is nothing to tell.

        `private` are globs of what a formatter must not see.
        """
        ...


class NoFormatters:
    """Leaves everything as it is."""

    def formats(self, path: str) -> bool:  # noqa: ARG002
        """Never."""
        return False

    async def format(
        self,
        path: str,  # noqa: ARG002
        before: bytes | None,  # noqa: ARG002
        after: bytes,  # noqa: ARG002
        *,
        private: Sequence[str],  # noqa: ARG002
    ) -> Formatted | None:
        """Nothing to tell."""
        return None
