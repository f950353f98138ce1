"""Check a change with one language server: new errors in the changed files, then in dependent files."""

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from handtools.core.changes import Change
from handtools.core.errors import HostError
from handtools.core.language import Diagnostic, DiagnosticDelta, DiagnosticReport, diagnostic_delta
from handtools.core.syntax import Symbol, symbol_chains
from handtools.host import programs
from handtools.host.language.fresh_diagnostics import proved_diagnostics
from handtools.host.language.lsp_client import DocumentFiles, LspClient, document_text
from handtools.host.language.server_pool import (
    LANGUAGE_THREAD,
    DiagnosticsBaseline,
    ServerNotReady,
    ServerSlot,
)
from handtools.host.language.server_process import ServerLost
from handtools.host.search.ripgrep_process import find_ripgrep
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.text.diffs.alignment import align_lines
from handtools.text.diffs.unified_diff import rows_around_changes

MAX_CHECKED_FILES = 20
"""At most this many files of a change are checked; a command may change thousands."""
MAX_REPORTED_FILE_CHANGES = 2_000
MAX_CHANGED_NAMES = 3
"""Dependent files are checked for at most this many changed definitions."""
MAX_DEPENDENT_FILES = 20
"""At most this many dependent files are checked, the most recently modified first."""
DEPENDENTS_SEARCH_SECONDS = 1.0
_CALLED = re.compile(r"([^\W\d]\w{2,})\s*\(")
_DEFINING = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|trait|impl|enum|type|typedef|using)\b|#"
)
_REMEMBERED_OUTLINES = 64
_CREATED, _CHANGED, _DELETED = 1, 2, 3


@dataclass(slots=True)
class EditedDocument:
    """A changed file in a language that the server supports, with its text before and after."""

    path: str
    uri: str
    before: str | None
    after: str
    data: bytes
    """The file's bytes after the change, from which `after` was decoded."""


ProvedDelta = tuple[DiagnosticDelta | None, DiagnosticReport]
"""The errors that a change added and removed in a file (None if unknown), and the report about it."""


@dataclass(slots=True)
class ServerChangeReview:
    """Checks one change with one language server; its results grow as the server reports diagnostics."""

    slot: ServerSlot
    document_files: DocumentFiles
    definitions: "ChangedDefinitions"
    edited: Sequence[EditedDocument]
    changes: Sequence[Change]
    deadline: float
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the language server runs and has loaded the project."""
    deltas: list[DiagnosticDelta] = field(default_factory=list)
    reports: list[DiagnosticReport] = field(default_factory=list)
    other_deltas: list[DiagnosticDelta] = field(default_factory=list)
    main_done: bool = False
    done: bool = False

    async def run(self) -> None:
        """Send the change to the server and fill the results as diagnostics arrive.

        Failures become `unknown` reports.
        """
        try:
            async with self.slot.lock:
                try:
                    await self._check_edited_files()
                except ServerLost:
                    # Retry once: the pool restarts the server, and all documents are sent again.
                    await self._check_edited_files()
        except (ServerNotReady, ServerLost) as failure:
            self._record_unknown_report(str(failure))
        finally:
            self.main_done = self.done = True

    async def _check_edited_files(self) -> None:
        client = await LANGUAGE_THREAD.pool.client(self.slot, self.deadline)
        if client.proved:
            self.ready.set()
        self._resend_changed_files(client)
        edited = self.edited[:MAX_CHECKED_FILES]
        for each in edited:
            await self._record_old_errors(client, each)
        if client.proved:
            self.ready.set()
        self._notify_of_unopened_files(client)
        for each in edited:
            client.tell(each.uri, each.after)
            self._record_file_stamp(each)
        # Send didSave only to servers that check on save; others would check twice.
        if client.server.proof in {"flycheck", "push"} and _wants_save_notifications(client):
            for each in edited:
                client.saved(each.uri)
        found, names = await self._proved_deltas_and_changed_names(client, edited)
        self.deltas = [difference for difference, _ in found if difference is not None]
        self.reports = [verdict for _, verdict in found]
        more = len(self.edited) - MAX_CHECKED_FILES
        if more > 0:
            self._record_unknown_report(f"{more} more changed files were not checked", f"{more} more files")
        self.main_done = True
        self.ready.set()
        if all(verdict.standing != "unknown" for verdict in self.reports):
            await self._check_dependent_files(client, edited, names)

    async def _proved_deltas_and_changed_names(
        self, client: LspClient, edited: Sequence[EditedDocument]
    ) -> tuple[list[ProvedDelta], set[str]]:
        """The added and removed errors of each edited file, and the names of definitions with a new signature."""
        if client.server.role == "linter" and len(edited) == 1:
            # Linters have no cross-file errors, and a single await needs no task.
            return [await self._proved_delta(client, edited[0])], set()
        proofs = [asyncio.ensure_future(self._proved_delta(client, each)) for each in edited]
        await asyncio.sleep(0)
        names = set() if client.server.role == "linter" else await self._changed_definition_names(edited)
        return await asyncio.gather(*proofs), names

    def _resend_changed_files(self, client: LspClient) -> None:
        """Send the current text of open files that another program has changed."""
        mine = {each.uri for each in self.edited}
        for uri in [uri for uri in client.documents if uri not in mine]:
            path = self.document_files.path(uri)
            stamp = self.document_files.stamp(path) if path is not None else None
            if path is None or stamp is None:
                client.close_document(uri)
            elif stamp != self.slot.stamps.get(uri):
                text = document_text(self.document_files.read(path))
                if text is None:
                    client.close_document(uri)
                else:
                    client.tell(uri, text)
                    self.slot.stamps[uri] = stamp

    async def _record_old_errors(self, client: LspClient, edited: EditedDocument) -> None:
        """Record a file's errors before the change by sending its old text, to tell new errors from old ones."""
        if edited.uri in self.slot.baselines or edited.before is None:
            return
        verdict = await proved_diagnostics(
            client, client.tell(edited.uri, edited.before), edited.path, self.deadline
        )
        if not client.alive:
            raise ServerLost(client.fault)
        if verdict.standing != "unknown":
            self.slot.set_baseline(edited.uri, DiagnosticsBaseline(edited.before, verdict.errors))

    def _notify_of_unopened_files(self, client: LspClient) -> None:
        """Notify the server of changed files that are not open (`didChangeWatchedFiles`)."""
        events = []
        for change in self.changes[:MAX_REPORTED_FILE_CHANGES]:
            uri = self.document_files.uri(change.path)
            if change.after is None:
                client.close_document(uri)
                self.slot.baselines.pop(uri, None)
            if uri not in client.documents:
                kind = _DELETED if change.after is None else _CREATED if change.before is None else _CHANGED
                events.append({"uri": uri, "type": kind})
        if events:
            client.notify("workspace/didChangeWatchedFiles", {"changes": events})

    def _record_file_stamp(self, edited: EditedDocument) -> None:
        stamp = self.document_files.stamp(edited.path)
        if stamp is not None:
            self.slot.stamps[edited.uri] = stamp

    async def _proved_delta(self, client: LspClient, edited: EditedDocument) -> ProvedDelta:
        report = await proved_diagnostics(client, client.documents[edited.uri], edited.path, self.deadline)
        if not client.alive:
            raise ServerLost(client.fault)
        if report.standing != "unknown" and self.document_files.read(edited.path) != edited.data:
            report = DiagnosticReport(edited.path, report.server, "unknown", why="the file changed again")
        if report.standing == "unknown":
            return None, report
        known = self.slot.baselines.get(edited.uri)
        self.slot.set_baseline(edited.uri, DiagnosticsBaseline(edited.after, report.errors))
        if known is None:
            compared = edited.before is None
            return DiagnosticDelta(edited.path, report.errors, compared=compared), report
        return diagnostic_delta(
            edited.path, known.text, edited.after, known.diagnostics, report.errors
        ), report

    async def _changed_definition_names(self, edited: Sequence[EditedDocument]) -> set[str]:
        names: set[str] = set()
        for each in edited:
            names |= await self.definitions.touched(each.path, each.before or "", each.after)
        return names

    async def _check_dependent_files(
        self, client: LspClient, edited: Sequence[EditedDocument], names: set[str]
    ) -> None:
        if not names:
            return
        mine = {each.path for each in self.changes}
        loop = asyncio.get_running_loop()
        suffixes = tuple(client.server.languages)
        found = await loop.run_in_executor(
            None, dependent_files, client.root, self.document_files, names, suffixes
        )
        others = [path for path in found if path not in mine]
        now = await self._current_errors_by_path(client, others)
        doubtful = [
            path for path in now if now[path] and self.document_files.uri(path) not in self.slot.baselines
        ]
        if doubtful:
            await self._record_old_errors_of_dependents(client, edited, doubtful)
        for path, errors in now.items():
            uri = self.document_files.uri(path)
            known, text = self.slot.baselines.get(uri), client.documents[uri].text
            self.slot.set_baseline(uri, DiagnosticsBaseline(text, errors))
            if known is not None:
                difference = diagnostic_delta(path, known.text, text, known.diagnostics, errors)
                self.other_deltas += [difference] if difference.new else []

    async def _record_old_errors_of_dependents(
        self, client: LspClient, edited: Sequence[EditedDocument], paths: Sequence[str]
    ) -> None:
        """Record the old errors of dependent files by temporarily sending the edited files' old text."""
        flipped = [each for each in edited if each.before is not None]
        try:
            for each in flipped:
                client.tell(each.uri, each.before or "")
                self.slot.stamps.pop(each.uri, None)
            for path, errors in (await self._current_errors_by_path(client, paths)).items():
                uri = self.document_files.uri(path)
                self.slot.set_baseline(uri, DiagnosticsBaseline(client.documents[uri].text, errors))
        finally:
            for each in flipped:
                client.tell(each.uri, each.after)
                self._record_file_stamp(each)

    async def _current_errors_by_path(
        self, client: LspClient, paths: Sequence[str]
    ) -> dict[str, tuple[Diagnostic, ...]]:
        """The current errors of dependent files, by path; files without proved diagnostics are left out."""
        told = []
        for path in paths:
            uri = self.document_files.uri(path)
            text = document_text(self.document_files.read(path))
            if text is None:
                continue
            was_open = uri in client.documents
            document = client.tell(uri, text)
            if was_open and client.server.proof in {"version", "push"}:
                document = client.reopen(uri)
            stamp = self.document_files.stamp(path)
            if stamp is not None:
                self.slot.stamps[uri] = stamp
            told.append((path, document))
        verdicts = await asyncio.gather(
            *(proved_diagnostics(client, document, path, self.deadline) for path, document in told)
        )
        return {each.path: each.errors for each in verdicts if each.standing != "unknown"}

    def _record_unknown_report(self, why: str, path: str = "") -> None:
        paths = [path] if path else [each.path for each in self.edited[:MAX_CHECKED_FILES]]
        known = {verdict.path for verdict in self.reports}
        self.reports += [
            DiagnosticReport(each, self.slot.name, "unknown", why=why)
            for each in paths
            if each not in known
        ]


def _wants_save_notifications(client: LspClient) -> bool:
    sync = client.capabilities.get("textDocumentSync")
    return isinstance(sync, dict) and bool(sync.get("save"))


class DefinitionLines(NamedTuple):
    """The lines of a definition: first and last line of its signature, and the last line of its body."""

    name: str
    start: int
    last: int
    end: int


class ChangedLines(NamedTuple):
    """A range of changed lines, first and last line number."""

    start: int
    end: int
    rows: Sequence[str]


class ChangedDefinitions:
    """Finds the definitions that a change touches; caches outlines, so most changes need no parsing."""

    def __init__(self, workspace: str | os.PathLike[str] = "") -> None:
        self._syntax = TreeSyntax(workspace, kept_bytes=0)
        self._known: OrderedDict[str, tuple[str, tuple[DefinitionLines, ...]]] = OrderedDict()

    async def touched(self, path: str, before: str, after: str) -> set[str]:
        """The names of definitions whose signature a change touches; changes inside a body don't count."""
        was, now = _removed_and_added_lines(before, after)
        spans = await self._lines_of_definitions(path, before)
        found = _names_of_changed_definitions(spans, was)
        still = [region[:2] for region in was] == [region[:2] for region in now]
        if not found and still and not any(map(_may_define_symbol, now)):
            self._remember_definition_lines(path, after, spans)
            return set()
        found += _names_of_changed_definitions(await self._lines_of_definitions(path, after), now)
        return set(list(dict.fromkeys(found))[:MAX_CHANGED_NAMES])

    async def _lines_of_definitions(self, path: str, text: str) -> tuple[DefinitionLines, ...]:
        known = self._known.get(path)
        if known is not None and known[0] == text:
            return known[1]
        outline = await self._syntax.outline(path, text.encode("utf-8", "replace"))
        spans = (
            tuple(_definition_lines(way[-1]) for way in symbol_chains(outline.symbols)) if outline else ()
        )
        self._remember_definition_lines(path, text, spans)
        return spans

    def _remember_definition_lines(
        self, path: str, text: str, definition_lines: tuple[DefinitionLines, ...]
    ) -> None:
        self._known[path] = text, definition_lines
        self._known.move_to_end(path)
        if len(self._known) > _REMEMBERED_OUTLINES:
            self._known.popitem(last=False)


def _definition_lines(symbol: Symbol) -> DefinitionLines:
    body = symbol.end_line + 1 if symbol.body_line is None else symbol.body_line
    name = symbol.name.rpartition(".")[2].rpartition("::")[2]
    return DefinitionLines(name, symbol.start_line, max(body - 1, symbol.line), symbol.end_line)


def _removed_and_added_lines(before: str, after: str) -> tuple[list[ChangedLines], list[ChangedLines]]:
    """The line ranges that a change removed, and those that it added."""
    window = rows_around_changes(before, after)
    was, now = [], []
    for edit in align_lines(window.old, window.new):
        old, new = window.old[edit.start_a : edit.end_a], window.new[edit.start_b : edit.end_b]
        was += (
            [ChangedLines(window.above + edit.start_a + 1, window.above + edit.end_a, old)] if old else []
        )
        now += (
            [ChangedLines(window.above + edit.start_b + 1, window.above + edit.end_b, new)] if new else []
        )
    return was, now


def _names_of_changed_definitions(
    definition_lines: Sequence[DefinitionLines], changed: Sequence[ChangedLines]
) -> list[str]:
    found = [
        span.name
        for span in definition_lines
        if any(region.start <= span.last and span.start <= region.end for region in changed)
    ]
    for region in changed:
        if not any(span.start <= region.start <= span.end for span in definition_lines):
            for row in region.rows:
                found += _CALLED.findall(row)
    return found


def _may_define_symbol(changed_lines: ChangedLines) -> bool:
    return any(map(_DEFINING.search, changed_lines.rows))


def dependent_files(
    root: str,
    document_files: DocumentFiles,
    names: Iterable[str],
    suffixes: Sequence[str],
    most: int = MAX_DEPENDENT_FILES,
) -> list[str]:
    """Paths of files in a project that contain one of the names, the most recently modified first."""
    patterns = [part for name in names for part in ("-e", name)]
    globs = [part for suffix in suffixes for part in ("-g", f"*{suffix}")]
    options = ("--files-with-matches", "--word-regexp", "--fixed-strings", "--null", "--no-messages")
    try:
        done = programs.run_program(
            find_ripgrep(Path(document_files.workspace)),
            [*options, "--no-config", *patterns, *globs, "--", root],
            programs.ProgramLimits(seconds=DEPENDENTS_SEARCH_SECONDS),
        )
    except (OSError, programs.ProgramTimeout, HostError):
        return []
    found = [os.fsdecode(name) for name in done.output.split(b"\0") if name]
    newest = sorted(found, key=_modification_time, reverse=True)
    return [os.path.relpath(name, document_files.workspace) for name in newest[:most]]


def _modification_time(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
