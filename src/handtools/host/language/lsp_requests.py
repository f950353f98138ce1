"""Convert code questions to LSP requests, responses to values, and workspace edits to whole files."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import NoMatch, NotFound, OutsideWorkspace, Stale, Unavailable
from handtools.core.language import (
    CodeLocation,
    LanguageAnswer,
    LanguageOperation,
    LanguageQuestion,
    RewrittenFile,
)
from handtools.host.language.change_diagnostics import dependent_files
from handtools.host.language.fresh_diagnostics import proved_diagnostics
from handtools.host.language.lsp_client import (
    DocumentFiles,
    LspClient,
    OpenDocument,
    ResponseError,
    ResponseTimeout,
    document_text,
)
from handtools.host.language.server_pool import (
    LANGUAGE_THREAD,
    DiagnosticsBaseline,
    ServerNotReady,
    ServerSlot,
)
from handtools.host.language.server_process import LspMessage, ServerLost
from handtools.text.encoding import Unencodable, decode
from handtools.text.lines import column_of_utf16, split_lines, utf16_column, without_line_ending


def files_of_workspace_edit(
    edit: Mapping[str, Any], document_files: DocumentFiles
) -> tuple[RewrittenFile, ...]:
    """Apply a workspace edit in memory; returns each changed file before and after.

    Raises `OutsideWorkspace` if a file is outside the workspace.
    """
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}

    def load(path: str) -> bytes | None:
        if path not in before:
            before[path] = after[path] = document_files.read(path)
        return after[path]

    for step in _document_changes(edit):
        kind = step.get("kind")
        if kind == "rename":
            old, new = (
                _path_in_workspace(step["oldUri"], document_files),
                _path_in_workspace(step["newUri"], document_files),
            )
            data = load(old)
            load(new)
            after[old], after[new] = None, data
            continue
        path = _path_in_workspace(step["uri"], document_files)
        data = load(path)
        if kind == "delete":
            after[path] = None
        elif kind == "create":
            after[path] = data if data is not None else b""
        else:
            after[path] = _apply_text_edits(path, data or b"", step["edits"])
    return tuple(
        RewrittenFile(path, before[path], after[path]) for path in after if before[path] != after[path]
    )


def _document_changes(edit: Mapping[str, Any]) -> Iterator[LspMessage]:
    changes = edit.get("documentChanges")
    if changes:
        for each in changes:
            document = each.get("textDocument")
            yield {"uri": document["uri"], "edits": each["edits"]} if document else each
        return
    for uri, edits in (edit.get("changes") or {}).items():
        yield {"uri": uri, "edits": edits}


def _path_in_workspace(uri: str, document_files: DocumentFiles) -> str:
    path = document_files.path(uri)
    if path is None:
        raise OutsideWorkspace(
            f"This would change `{uri}`, outside the workspace.", hint="Edit the files instead."
        )
    return path


def _apply_text_edits(path: str, data: bytes, edits: Iterable[LspMessage]) -> bytes:
    source = decode(data)
    rows = split_lines(source.body)
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    replacements = sorted(
        (_edit_offsets_and_text(each, rows, starts) for each in edits), key=lambda each: each[:2]
    )
    parts, at = [], 0
    for start, end, text in replacements:
        if start < at:
            raise Stale(f"The server's edits of `{path}` overlap.", hint="Call again.")
        parts += [source.body[at:start], text]
        at = end
    parts.append(source.body[at:])
    try:
        return source.encode("".join(parts))
    except Unencodable as failure:
        message = f"Can't encode the server's edit of `{path}`: {failure}."
        raise Stale(message, hint="Save it as UTF-8 first.") from failure


def _edit_offsets_and_text(edit: LspMessage, rows: list[str], starts: list[int]) -> tuple[int, int, str]:
    """The start and end offset of a text edit, and its new text."""
    span = edit["range"]
    text = edit.get("newText")
    if text is None:
        text = (edit.get("snippet") or {}).get("value", "")
    return (
        _offset_of_position(span["start"], rows, starts),
        _offset_of_position(span["end"], rows, starts),
        text,
    )


def _offset_of_position(at: LspMessage, rows: list[str], starts: list[int]) -> int:
    line = int(at["line"])
    if line >= len(rows):
        return starts[-1]
    return starts[line] + column_of_utf16(without_line_ending(rows[line]), int(at["character"]))


_REQUEST_METHODS: Mapping[LanguageOperation, tuple[str, str]] = {
    "definition": ("definitionProvider", "textDocument/definition"),
    "references": ("referencesProvider", "textDocument/references"),
    "implementations": ("implementationProvider", "textDocument/implementation"),
    "hover": ("hoverProvider", "textDocument/hover"),
    "symbols": ("documentSymbolProvider", "textDocument/documentSymbol"),
    "workspace_symbols": ("workspaceSymbolProvider", "workspace/symbol"),
    "callers": ("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
    "callees": ("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
    "actions": ("codeActionProvider", "textDocument/codeAction"),
    "rename": ("renameProvider", "textDocument/rename"),
}
_SYMBOL_KINDS = (
    "", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum",
    "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key",
    "null", "enum member", "struct", "event", "operator", "type parameter",
)  # fmt: skip
_RETRY_SECONDS = 0.1
_EDIT_INSTEAD = "Nothing was changed; edit the files instead."


COLD_SECONDS = 3.0
"""Seconds that a newly started server gets to load the project before it gets project-wide questions."""


@dataclass(slots=True)
class ServerQuery:
    """Asks one language server one question and converts the LSP response."""

    slot: ServerSlot
    document_files: DocumentFiles
    deadline: float

    async def answer(self, question: LanguageQuestion) -> LanguageAnswer | None:
        """Send the request for a question; None if the server does not support it.

        Raises a tool error if the server does not answer in time.
        """
        try:
            async with self.slot.lock:
                client = await LANGUAGE_THREAD.pool.client(self.slot, self.deadline)
                return await self._answer_from_client(client, question)
        except ServerNotReady as failure:
            raise Unavailable(
                f"{self.slot.name} is not ready: {failure}.", hint="Call again later."
            ) from failure
        except ResponseTimeout as failure:
            raise Unavailable(
                f"{self.slot.name} did not answer in time.", hint="Call again later."
            ) from failure
        except ServerLost as failure:
            raise Unavailable(f"{self.slot.name} exited: {failure}.", hint="Call again.") from failure
        except ResponseError as failure:
            hint = "Check the symbol, or use `grep`."
            raise NoMatch(f"{self.slot.name} refused: {failure}.", hint=hint) from failure

    async def _answer_from_client(
        self, client: LspClient, question: LanguageQuestion
    ) -> LanguageAnswer | None:
        name = client.server.name
        if question.kind == "diagnostics":
            return await self._diagnostics_answer(client, question.path)
        capability, method = _REQUEST_METHODS[question.kind]
        if not client.offers(capability, method):
            return None
        if question.kind == "workspace_symbols":
            found = await self._request_with_retries(client, method, {"query": question.text})
            cold = not client.proved or bool(client.running_progress)
            return LanguageAnswer(
                server=name, places=tuple(self._symbol_locations(found or ())), partial=cold
            )
        document = self._open_document(client, question.path)
        at = self._lsp_position_of_question(document, question)
        if question.kind == "symbols":
            found = await self._request_with_retries(client, method, {"textDocument": at["textDocument"]})
            return LanguageAnswer(
                server=name, places=tuple(self._symbol_locations(found or (), path=question.path))
            )
        if question.kind == "hover":
            return LanguageAnswer(
                server=name, text=_hover_text(await self._request_with_retries(client, method, at))
            )
        if question.kind in {"callers", "callees"}:
            cold = await self._may_still_be_loading(client, document, question.path)
            places = tuple(await self._call_locations(client, question.kind, at))
            return LanguageAnswer(server=name, places=places, partial=cold)
        if question.kind == "actions":
            return await self._code_actions_answer(client, document, question)
        if question.kind == "rename":
            return await self._rename_answer(client, document, question)
        cold = False
        if question.kind == "references":
            at["context"] = {"includeDeclaration": True}
            cold = await self._may_still_be_loading(client, document, question.path)
            await self._open_files_with_word(client, _identifier_at(document.text, question))
        places = tuple(self._code_locations(await self._request_with_retries(client, method, at)))
        return LanguageAnswer(server=name, places=places, partial=cold)

    async def _may_still_be_loading(self, client: LspClient, document: OpenDocument, path: str) -> bool:
        """Whether a server may still be loading the project, after waiting for it for some time."""
        if not client.proved:
            until = min(self.deadline, time.monotonic() + COLD_SECONDS)
            await proved_diagnostics(client, document, path, until)
        return not client.proved or bool(client.running_progress)

    async def _request_with_retries(self, client: LspClient, method: str, params: Any) -> Any:
        """Send a request; retry as long as the server reports a temporary error such as ContentModified."""
        while True:
            try:
                return await client.request(method, params, self.deadline - time.monotonic())
            except ResponseError as refusal:
                if not refusal.passing or time.monotonic() > self.deadline:
                    raise
                await client.wait_for_message(_RETRY_SECONDS)

    def _open_document(self, client: LspClient, path: str) -> OpenDocument:
        text = document_text(self.document_files.read(path))
        if text is None:
            raise NotFound(f"`{path}` is not a text file that a server can read.", hint="Use another path.")
        uri = self.document_files.uri(path)
        stamp = self.document_files.stamp(path)
        if stamp is not None:
            self.slot.stamps[uri] = stamp
        return client.tell(uri, text)

    def _lsp_position_of_question(self, document: OpenDocument, question: LanguageQuestion) -> LspMessage:
        rows = split_lines(document.text)
        row = without_line_ending(rows[question.line - 1]) if 0 < question.line <= len(rows) else ""
        position = {"line": max(question.line - 1, 0), "character": utf16_column(row, question.column)}
        return {"textDocument": {"uri": document.uri}, "position": position}

    async def _diagnostics_answer(self, client: LspClient, path: str) -> LanguageAnswer:
        """The diagnostics of one file or, without a path, of every open document."""
        documents = [self._open_document(client, path)] if path else list(client.documents.values())
        found = []
        for document in documents:
            name = self.document_files.path(document.uri)
            if name is not None:
                found.append(proved_diagnostics(client, document, name, self.deadline))
        verdicts = list(await asyncio.gather(*found))
        for verdict in verdicts:
            if verdict.standing != "unknown":
                uri = self.document_files.uri(verdict.path)
                self.slot.set_baseline(uri, DiagnosticsBaseline(client.documents[uri].text, verdict.errors))
        notes = () if path else ("Includes only files that were read or changed.",)
        return LanguageAnswer(server=client.server.name, verdicts=tuple(verdicts), notes=notes)

    async def _call_locations(
        self, client: LspClient, kind: LanguageOperation, at: LspMessage
    ) -> list[CodeLocation]:
        items = await self._request_with_retries(client, "textDocument/prepareCallHierarchy", at)
        incoming = kind == "callers"
        method = f"callHierarchy/{'incoming' if incoming else 'outgoing'}Calls"
        found = []
        for item in items or ():
            for call in await self._request_with_retries(client, method, {"item": item}) or ():
                other = call["from" if incoming else "to"]
                path = self.document_files.path(other["uri"])
                if path is None:
                    continue
                spans = call.get("fromRanges") or () if incoming else ()
                found += [
                    self._code_location(path, span, other["name"], other.get("kind", 0))
                    for span in spans or (other["selectionRange"],)
                ]
        return found

    async def _code_actions_answer(
        self, client: LspClient, document: OpenDocument, question: LanguageQuestion
    ) -> LanguageAnswer:
        """The titles of the code actions for a line; or the files that the named action would change."""
        rows = split_lines(document.text)
        row = without_line_ending(rows[question.line - 1]) if question.line <= len(rows) else ""
        line = question.line - 1
        span = {
            "start": {"line": line, "character": 0},
            "end": {"line": line, "character": utf16_column(row, len(row))},
        }
        diagnostics = await self._diagnostics_of_line(client, document, line)
        context = {"diagnostics": diagnostics, "triggerKind": 1}
        asked = {"textDocument": {"uri": document.uri}, "range": span, "context": context}
        offered = [
            each for each in await self._request_with_retries(client, "textDocument/codeAction", asked) or ()
            if not each.get("disabled")
        ]  # fmt: skip
        titles = tuple(str(each.get("title")) for each in offered)
        name = client.server.name
        if not question.text:
            return LanguageAnswer(server=name, titles=titles)
        chosen = next((each for each in offered if each.get("title") == question.text), None)
        if chosen is None:
            raise NoMatch(
                f"No action {question.text!r} is offered.", hint=f"Offered: {'; '.join(titles) or 'none'}."
            )
        return LanguageAnswer(
            server=name,
            titles=(question.text,),
            files=files_of_workspace_edit(
                await self._workspace_edit_of_action(client, chosen), self.document_files
            ),
        )

    async def _diagnostics_of_line(
        self, client: LspClient, document: OpenDocument, line: int
    ) -> Sequence[LspMessage]:
        push = client.pushes.get(document.uri)
        if push is not None:
            items: Sequence[LspMessage] = push.items
        elif client.offers("diagnosticProvider", "textDocument/diagnostic"):
            asked = {"textDocument": {"uri": document.uri}}
            items = (await self._request_with_retries(client, "textDocument/diagnostic", asked) or {}).get(
                "items"
            ) or ()
        else:
            items = ()
        return [
            each for each in items if each["range"]["start"]["line"] <= line <= each["range"]["end"]["line"]
        ]

    async def _workspace_edit_of_action(self, client: LspClient, action: LspMessage) -> Mapping[str, Any]:
        if not action.get("edit") and "data" in action:
            action = await self._request_with_retries(client, "codeAction/resolve", action) or action
        edit: Mapping[str, Any] = action.get("edit") or {}
        command = action.get("command")
        if not edit and command:
            order = command if isinstance(command, dict) else action
            client.proposed.clear()
            asked = {"command": order["command"], "arguments": order.get("arguments") or []}
            await self._request_with_retries(client, "workspace/executeCommand", asked)
            edit = client.proposed[-1] if client.proposed else {}
        return edit

    async def _rename_answer(
        self, client: LspClient, document: OpenDocument, question: LanguageQuestion
    ) -> LanguageAnswer:
        """Rename a symbol at its definition: elsewhere, some servers rename too little or add an alias."""
        old = _identifier_at(document.text, question)
        await self._open_files_with_word(client, old)
        here = self._lsp_position_of_question(document, question)
        places = list(
            self._code_locations(await self._request_with_retries(client, "textDocument/definition", here))
        )
        home = places[0] if places else None
        if home is not None:
            told = self._open_document(client, home.path)
            at = self._lsp_position_of_question(
                told, LanguageQuestion(kind="rename", path=home.path, line=home.line, column=home.column)
            )
            if _identifier_at(told.text, home) == old:
                here = at
        edit = await self._request_with_retries(
            client, "textDocument/rename", {**here, "newName": question.text}
        )
        files = files_of_workspace_edit(edit or {}, self.document_files)
        if not files:
            raise NoMatch(f"{client.server.name} can't rename `{old}` there.", hint=_EDIT_INSTEAD)
        if home is not None and home.path not in {file.path for file in files}:
            raise NoMatch(
                f"{client.server.name} would rename `{old}` but not its definition in `{home.path}`.",
                hint=_EDIT_INSTEAD,
            )
        covered = {file.path for file in files}
        left = [path for path in await self._paths_with_word(client, old) if path not in covered]
        notes = (
            (f"`{old}` also occurs in files that are unchanged: {', '.join(left[:10])}.",) if left else ()
        )
        return LanguageAnswer(server=client.server.name, files=files, notes=notes)

    async def _paths_with_word(self, client: LspClient, word: str) -> list[str]:
        loop = asyncio.get_running_loop()
        suffixes = tuple(client.server.languages)
        return await loop.run_in_executor(
            None, dependent_files, client.root, self.document_files, [word], suffixes, 60
        )

    async def _open_files_with_word(self, client: LspClient, word: str) -> None:
        """Open the files that contain a word, for servers that find references only in open files."""
        if not (client.server.narrow and word):
            return
        told = [
            (path, self._open_document(client, path)) for path in await self._paths_with_word(client, word)
        ]
        await asyncio.gather(
            *(proved_diagnostics(client, document, path, self.deadline) for path, document in told)
        )

    def _code_locations(self, found: Any) -> Iterator[CodeLocation]:
        every = found if isinstance(found, list) else [found] if found else []
        for each in every:
            path = self.document_files.path(each.get("uri") or each.get("targetUri") or "")
            span = each.get("range") or each.get("targetSelectionRange")
            if path is not None and span is not None:
                yield self._code_location(path, span)

    def _symbol_locations(
        self, found: Iterable[LspMessage], path: str = "", outer: str = ""
    ) -> Iterator[CodeLocation]:
        for each in found:
            place = each.get("location") or {}
            where = path or self.document_files.path(place.get("uri", "")) or ""
            span = each.get("selectionRange") or each.get("range") or place.get("range")
            if not where or span is None:
                continue
            holder = outer or str(each.get("containerName") or "")
            kind = int(each.get("kind") or 0)
            whole = each.get("range") or place.get("range") or span
            one = self._code_location(where, span, str(each.get("name")), kind, holder)
            yield CodeLocation(
                one.path, one.line, one.column, whole["end"]["line"] + 1, one.name, one.kind, one.outer
            )
            name = f"{holder}.{each.get('name')}" if holder else str(each.get("name"))
            yield from self._symbol_locations(each.get("children") or (), where, name)

    def _code_location(
        self, path: str, span: LspMessage, name: str = "", kind: int = 0, outer: str = ""
    ) -> CodeLocation:
        line, character = int(span["start"]["line"]), int(span["start"]["character"])
        rows = split_lines(document_text(self.document_files.read(path)) or "")
        at = column_of_utf16(without_line_ending(rows[line]), character) if line < len(rows) else 0
        word = _SYMBOL_KINDS[kind] if 0 <= kind < len(_SYMBOL_KINDS) else ""
        return CodeLocation(path, line + 1, at, int(span["end"]["line"]) + 1, name, word, outer)


def _identifier_at(text: str, at: LanguageQuestion | CodeLocation) -> str:
    """The identifier at a line and column of a text."""
    rows = split_lines(text)
    if not 0 < at.line <= len(rows):
        return ""
    row = without_line_ending(rows[at.line - 1])
    end = at.column
    while end < len(row) and (row[end].isalnum() or row[end] in "_$"):
        end += 1
    return row[at.column : end]


def _hover_text(hover: Any) -> str:
    contents = (hover or {}).get("contents")
    parts = contents if isinstance(contents, list) else [contents]
    said = [part.get("value", "") if isinstance(part, dict) else str(part or "") for part in parts]
    return "\n".join(part.strip() for part in said if part.strip())
