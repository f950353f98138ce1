"""Check a change with one language server: new errors in the changed files, then in dependent files."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from handtools.core.changes import Change
from handtools.core.language import Diagnostic, DiagnosticDelta, DiagnosticReport, diagnostic_delta
from handtools.host.language.dependent_files import dependent_files
from handtools.host.language.file_uris import DocumentFiles, document_text
from handtools.host.language.fresh_diagnostics import proved_diagnostics
from handtools.host.language.lsp_client import LspClient, ServerLost
from handtools.host.language.server_pool import DiagnosticsBaseline, ServerNotReady, ServerPool, ServerSlot

MAX_CHECKED_FILES = 20
"""Most files of one change that are checked; a command may change thousands."""
MAX_REPORTED_FILE_CHANGES = 2_000
_CREATED, _CHANGED, _DELETED = 1, 2, 3


@dataclass(slots=True)
class ServerFindings:
    """The diagnostics that a language server has reported for a change so far; more may follow."""

    server: str
    deltas: list[DiagnosticDelta] = field(default_factory=list)
    reports: list[DiagnosticReport] = field(default_factory=list)
    other_deltas: list[DiagnosticDelta] = field(default_factory=list)
    main_done: bool = False
    done: bool = False


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
"""The errors that a change added and removed in a file (None if unknown), and the report with its proof."""


@dataclass(slots=True)
class ServerChangeReview:
    """Checks one change with one language server and collects the new errors in `findings`."""

    slot: ServerSlot
    pool: ServerPool
    document_files: DocumentFiles
    edited: Sequence[EditedDocument]
    changes: Sequence[Change]
    findings: ServerFindings
    ready: asyncio.Event
    """Set when the language server runs and has loaded the project."""
    deadline: float

    async def run(self) -> None:
        """Send the change to the server and fill `findings` as diagnostics arrive.

        Failures become `unknown` reports.
        """
        try:
            async with self.slot.lock:
                try:
                    await self._look()
                except ServerLost:
                    # Retry once: the pool restarts the server, and all documents are sent again.
                    await self._look()
        except (ServerNotReady, ServerLost) as failure:
            self._unknown(str(failure))
        finally:
            self.findings.main_done = self.findings.done = True

    async def _look(self) -> None:
        client = await self.pool.client(self.slot, self.deadline)
        if client.proved:
            self.ready.set()
        self._refresh(client)
        edited = self.edited[:MAX_CHECKED_FILES]
        for each in edited:
            await self._first_sight(client, each)
        if client.proved:
            self.ready.set()
        self._announce(client)
        for each in edited:
            client.tell(each.uri, each.after)
            self._stamp(each)
        # Send didSave only to servers that check on save; others would check twice.
        if client.server.proof in {"flycheck", "push"} and _wants_saves(client):
            for each in edited:
                client.saved(each.uri)
        found, names = await self._proved(client, edited)
        self.findings.deltas = [difference for difference, _ in found if difference is not None]
        self.findings.reports = [verdict for _, verdict in found]
        more = len(self.edited) - MAX_CHECKED_FILES
        if more > 0:
            self._unknown(f"{more} more changed files were not checked", f"{more} more files")
        self.findings.main_done = True
        self.ready.set()
        if all(verdict.standing != "unknown" for verdict in self.findings.reports):
            await self._look_elsewhere(client, edited, names)

    async def _proved(
        self, client: LspClient, edited: Sequence[EditedDocument]
    ) -> tuple[list[ProvedDelta], set[str]]:
        """The proved diagnostics of the edited files, and the names of definitions with new signatures."""
        if client.server.role == "linter" and len(edited) == 1:
            # Linters have no cross-file errors, and a single await needs no task.
            return [await self._verdict(client, edited[0])], set()
        proofs = [asyncio.ensure_future(self._verdict(client, each)) for each in edited]
        await asyncio.sleep(0)
        names = set() if client.server.role == "linter" else await self._touched(edited)
        return await asyncio.gather(*proofs), names

    def _refresh(self, client: LspClient) -> None:
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

    async def _first_sight(self, client: LspClient, edited: EditedDocument) -> None:
        """Send a file as it was before the change, to distinguish old errors from new ones."""
        if edited.uri in self.slot.baselines or edited.before is None:
            return
        verdict = await proved_diagnostics(
            client, client.tell(edited.uri, edited.before), edited.path, self.deadline
        )
        if not client.alive:
            raise ServerLost(client.fault)
        if verdict.standing != "unknown":
            self.slot.set_baseline(edited.uri, DiagnosticsBaseline(edited.before, verdict.errors))

    def _announce(self, client: LspClient) -> None:
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

    def _stamp(self, edited: EditedDocument) -> None:
        stamp = self.document_files.stamp(edited.path)
        if stamp is not None:
            self.slot.stamps[edited.uri] = stamp

    async def _verdict(self, client: LspClient, edited: EditedDocument) -> ProvedDelta:
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

    async def _touched(self, edited: Sequence[EditedDocument]) -> set[str]:
        names: set[str] = set()
        for each in edited:
            names |= await self.slot.definitions.touched(each.path, each.before or "", each.after)
        return names

    async def _look_elsewhere(
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
        now = await self._seen(client, others)
        doubtful = [
            path for path in now if now[path] and self.document_files.uri(path) not in self.slot.baselines
        ]
        if doubtful:
            await self._before(client, edited, doubtful)
        for path, errors in now.items():
            uri = self.document_files.uri(path)
            known, text = self.slot.baselines.get(uri), client.documents[uri].text
            self.slot.set_baseline(uri, DiagnosticsBaseline(text, errors))
            if known is not None:
                difference = diagnostic_delta(path, known.text, text, known.diagnostics, errors)
                self.findings.other_deltas += [difference] if difference.new else []

    async def _before(
        self, client: LspClient, edited: Sequence[EditedDocument], paths: Sequence[str]
    ) -> None:
        """Record the old errors of dependent files by temporarily sending the edited files' old text."""
        flipped = [each for each in edited if each.before is not None]
        try:
            for each in flipped:
                client.tell(each.uri, each.before or "")
                self.slot.stamps.pop(each.uri, None)
            for path, errors in (await self._seen(client, paths)).items():
                uri = self.document_files.uri(path)
                self.slot.set_baseline(uri, DiagnosticsBaseline(client.documents[uri].text, errors))
        finally:
            for each in flipped:
                client.tell(each.uri, each.after)
                self._stamp(each)

    async def _seen(self, client: LspClient, paths: Sequence[str]) -> dict[str, tuple[Diagnostic, ...]]:
        """The current proved errors of dependent files, by path."""
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

    def _unknown(self, why: str, path: str = "") -> None:
        paths = [path] if path else [each.path for each in self.edited[:MAX_CHECKED_FILES]]
        known = {verdict.path for verdict in self.findings.reports}
        self.findings.reports += [
            DiagnosticReport(each, self.findings.server, "unknown", why=why)
            for each in paths
            if each not in known
        ]


def _wants_saves(client: LspClient) -> bool:
    sync = client.capabilities.get("textDocumentSync")
    return isinstance(sync, dict) and bool(sync.get("save"))
