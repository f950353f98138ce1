"""Language servers and code formatters: requests, responses, diagnostics, and their ports.

`diagnostic_delta` compares the diagnostics of a file before and after a change.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.changes import ChangeSet
from handtools.text.diffs.alignment import align_lines, line_after_edits
from handtools.text.lines import split_lines
from handtools.text.search.glob import PathGlobs
from handtools.text.truncation import clip_line, collapse_to_one_line

Severity = Literal["error", "warning", "information", "hint"]
DiagnosticCertainty = Literal["fresh", "likely", "unknown"]
"""How certain it is that a report describes the bytes on disk; `unknown`: there may or may not be errors."""
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
"""Hint for the model when no language server can answer."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic of a language server. Lines count from 1, columns are characters from 0."""

    path: str
    line: int
    column: int
    message: str
    code: str = ""
    source: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class DiagnosticReport:
    """Diagnostics of one file from one language server, and how certain they are for the current bytes."""

    path: str
    server: str
    standing: DiagnosticCertainty
    diagnostics: tuple[Diagnostic, ...] = ()
    why: str = ""
    """Why the certainty is unknown: what prevents the server from responding."""
    seconds: float = 0.0

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics with severity "error"."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


@dataclass(frozen=True, slots=True)
class DiagnosticDelta:
    """Errors of one file after a change, split into new, fixed and remaining ones."""

    path: str
    new: tuple[Diagnostic, ...] = ()
    fixed: tuple[Diagnostic, ...] = ()
    still: tuple[Diagnostic, ...] = ()
    compared: bool = True
    """False if there are no diagnostics from before the change, so that any of the errors may be old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticReview:
    """Diagnostics of a change: errors in the changed files, errors in other files, and unknown reports."""

    deltas: tuple[DiagnosticDelta, ...] = ()
    """Error deltas of the files that were changed."""
    elsewhere: tuple[DiagnosticDelta, ...] = ()
    """Error deltas of other files that the change broke, newest first."""
    verdicts: tuple[DiagnosticReport, ...] = ()
    """The language server reports behind the deltas, and all unknown reports."""

    @property
    def unknown(self) -> tuple[DiagnosticReport, ...]:
        """The reports whose certainty is unknown."""
        return tuple(each for each in self.verdicts if each.standing == "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageQuestion:
    """Request to the language server of a file: definition, references, hover, rename etc."""

    kind: LanguageOperation
    path: str
    """File of the request; empty means the whole project, for `diagnostics` and `workspace_symbols`."""
    line: int = 0
    column: int = 0
    text: str = ""
    """The new name for a rename, the title of a code action, or the query for symbols."""


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A location in the code that a language server returned: path, lines and symbol."""

    path: str
    line: int
    column: int
    end_line: int
    name: str = ""
    kind: str = ""
    outer: str = ""
    """Name of the enclosing symbol, as the language server gives it."""


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """New content of a file according to a rename or a code action; not yet written."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageAnswer:
    """Response of a language server; only the field for the requested operation is set."""

    server: str
    places: tuple[CodeLocation, ...] = ()
    text: str = ""
    titles: tuple[str, ...] = ()
    """Titles of the available code actions."""
    files: tuple[RewrittenFile, ...] = ()
    verdicts: tuple[DiagnosticReport, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on what the response may lack."""
    partial: bool = False
    """Whether the server had not read the whole project yet, so that it may find more later."""

    @property
    def tells(self) -> bool:
        """Whether the response contains anything."""
        return bool(self.places or self.text or self.titles or self.files or self.verdicts)


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A supported language server, for display to users: name, languages, program and install command."""

    name: str
    languages: tuple[str, ...]
    program: str
    """Path of the installed program; empty if it was not found."""
    version: str
    install: str
    """Shell command that installs the server."""


LateReviewListener = Callable[[DiagnosticReview], None]
"""Callback for diagnostics that arrive after the timeout; called from another thread."""


class Language(Protocol):
    """Port for tools to query language servers; responses leave out files that policy rules hide."""

    def missing_server_sentence(self, path: str) -> str:
        """Return why no language server serves a file, and the install command; empty if one does."""
        ...

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        """Query the language server of a file and return its response."""
        ...


class HostLanguage(Protocol):
    """Host port for language servers: started on demand, stopped when idle, without policy."""

    def speaks(self, path: str) -> bool:
        """Whether a server for the file's language is known; this is only a lookup in a table."""
        ...

    def missing_server_sentence(self, path: str) -> str:
        """Return why no language server serves a file, and the install command; empty if one does."""
        ...

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        """Start the language server of a file ahead of its use; returns at once."""
        ...

    async def review(
        self,
        changes: ChangeSet,
        *,
        ignored: Collection[str],
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """Notify language servers of changed files; return the diagnostics that arrive before the timeout.

        Changed files in `ignored` are not checked, and no server is started for them. Server failures are
        reported as unknown, not raised. Later diagnostics go to `late`.
        """
        ...

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        """Query the language server of a file; it must not see paths that match `private_globs`."""
        ...

    def known_servers(self) -> list[KnownServer]:
        """List all supported language servers, installed or not."""
        ...

    def close(self) -> None:
        """Release the language servers and stop those without other users."""
        ...


MAX_ERRORS_PER_FILE = 20
"""Maximum number of errors shown for one file."""
MAX_OTHER_FILES_WITH_ERRORS = 5
"""Maximum number of other files shown with errors."""
MAX_UNKNOWN_PATHS = 3
"""Maximum number of files named whose errors are unknown for the same reason."""
DIAGNOSTIC_MESSAGE_CHARS = 300


def diagnostic_delta(
    path: str,
    before: str,
    after: str,
    old_diagnostics: Sequence[Diagnostic],
    current_diagnostics: Sequence[Diagnostic],
) -> DiagnosticDelta:
    """Compare a file's errors before and after a change; errors on lines that only moved are not new."""
    if not old_diagnostics or not current_diagnostics:
        return DiagnosticDelta(path, tuple(current_diagnostics), tuple(old_diagnostics))
    edits = [] if before == after else align_lines(split_lines(before), split_lines(after))
    remaining_diagnostics: dict[tuple[str, str, str, int | None], list[Diagnostic]] = {}
    for each in old_diagnostics:
        remaining_diagnostics.setdefault(
            (*_diagnostic_identity(each), line_after_edits(edits, each.line)), []
        ).append(each)
    new_diagnostics: list[Diagnostic] = []
    still_diagnostics: list[Diagnostic] = []
    for each in current_diagnostics:
        at = remaining_diagnostics.get((*_diagnostic_identity(each), each.line))
        if at:
            at.pop()
            still_diagnostics.append(each)
        else:
            new_diagnostics.append(each)
    gone = [each for group in remaining_diagnostics.values() for each in group]
    # On changed lines, errors are matched by their message.
    for each in list(new_diagnostics):
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
            new_diagnostics.remove(each)
            still_diagnostics.append(each)
    return DiagnosticDelta(path, tuple(new_diagnostics), tuple(gone), tuple(still_diagnostics))


def _diagnostic_identity(diagnostic: Diagnostic) -> tuple[str, str, str]:
    return diagnostic.source, diagnostic.code, diagnostic.message


def _in_same_edit(
    edits: Sequence[tuple[int, int, int, int]], old_diagnostics: Diagnostic, current_diagnostics: Diagnostic
) -> bool:
    """Whether an old and a new error are in the same changed region."""
    return any(
        start_a < old_diagnostics.line <= end_a and start_b < current_diagnostics.line <= end_b
        for start_a, end_a, start_b, end_b in edits
    )


def review_text(review: DiagnosticReview) -> str:
    """Format the diagnostics of a change as text for the model; empty if there are none."""
    if not review.verdicts:
        return ""
    proved = [each for each in review.verdicts if each.standing != "unknown"]
    what = f" {_error_counts_text(review)} ({_server_names_text(proved)})." if proved else ""
    said = [f"The change was applied.{what}"]
    for each in review.deltas:
        said += diagnostic_lines(each.new)
    if review.elsewhere:
        said.append("It broke other files:")
        for each in review.elsewhere[:MAX_OTHER_FILES_WITH_ERRORS]:
            said += diagnostic_lines(each.new)
        if len(review.elsewhere) > MAX_OTHER_FILES_WITH_ERRORS:
            said.append(f"… and {len(review.elsewhere) - MAX_OTHER_FILES_WITH_ERRORS} more files.")
    said += _unknown_reports_lines(review.unknown)
    return "\n".join(said)


def _unknown_reports_lines(reports: Iterable[DiagnosticReport]) -> list[str]:
    """Format reports with unknown certainty, one line for all files that have the same reason."""
    paths_by_reason: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        paths_by_reason.setdefault((report.server, report.why), []).append(report.path)
    return [
        unknown_report_text(DiagnosticReport(_shortened_path_list(paths), server, "unknown", why=why))
        for (server, why), paths in paths_by_reason.items()
    ]


def _shortened_path_list(paths: Sequence[str]) -> str:
    more = len(paths) - MAX_UNKNOWN_PATHS
    return ", ".join(paths[:MAX_UNKNOWN_PATHS]) + (f" and {more:,} more" if more > 0 else "")


def _error_counts_text(review: DiagnosticReview) -> str:
    new = sum(len(each.new) for each in review.deltas)
    fixed = sum(len(each.fixed) for each in review.deltas)
    still = sum(len(each.still) for each in review.deltas)
    counts = [
        f"{count} {name}" for count, name in ((new, "new"), (fixed, "fixed"), (still, "remaining")) if count
    ]
    return f"Errors: {', '.join(counts)}" if new or still else ", ".join(["No errors", *counts])


def unknown_report_text(report: DiagnosticReport) -> str:
    """Format a report with unknown certainty as a sentence for the model."""
    why = report.why or "server still checking"
    return f"{report.path}: errors unknown ({report.server}: {why}); not known to be clean."


def diagnostic_lines(error_diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Format errors as lines of text, limited to the first `MAX_ERRORS_PER_FILE`."""
    shown = [
        f"{each.path}:{each.line}:{each.column + 1} "
        f"{clip_line(collapse_to_one_line(each.message), DIAGNOSTIC_MESSAGE_CHARS)}"
        f"{f' [{each.code}]' if each.code else ''}"
        for each in error_diagnostics[:MAX_ERRORS_PER_FILE]
    ]
    more = len(error_diagnostics) - MAX_ERRORS_PER_FILE
    return [*shown, f"… and {more} more in {error_diagnostics[0].path}."] if more > 0 else shown


def _server_names_text(reports: Sequence[DiagnosticReport]) -> str:
    names = dict.fromkeys(
        each.server if each.standing == "fresh" else f"{each.server}, likely" for each in reports
    )
    return "; ".join(names)


@dataclass(frozen=True, slots=True)
class FormattingOutcome:
    """Result of formatting one file: new bytes, or the reason why it was not formatted."""

    formatter: str
    data: bytes | None = None
    """The formatted bytes; None leaves the file unchanged."""
    why: str = ""
    """Why the file was not formatted, if the model should know."""


class Formatters(Protocol):
    """Host port for code formatters, which return formatted bytes and write nothing."""

    def formats(self, path: str) -> bool:
        """Whether the project has a formatter for a file, judged by known config files."""
        ...

    async def format(
        self, path: str, before: bytes | None, after: bytes, *, private_globs: Sequence[PathGlobs]
    ) -> FormattingOutcome | None:
        """Format the changed parts of a file and return the result; None when there is nothing to report.

        `private_globs` match the paths that a formatter must not see.
        """
        ...


class NoFormatters:
    """Null implementation of the formatter port: formats no file."""

    def formats(self, path: str) -> bool:  # noqa: ARG002
        return False

    async def format(
        self,
        path: str,  # noqa: ARG002
        before: bytes | None,  # noqa: ARG002
        after: bytes,  # noqa: ARG002
        *,
        private_globs: Sequence[PathGlobs],  # noqa: ARG002
    ) -> FormattingOutcome | None:
        return None
