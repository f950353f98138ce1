"""Edits: what a server would have us write, as whole files before and after."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import OutsideWorkspace, Stale
from handtools.core.language import Rewritten
from handtools.host.language.texts import Texts
from handtools.host.language.wire import Message
from handtools.text.encoding import Unencodable, decode
from handtools.text.lines import bare, split
from handtools.text.positions import column


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    text: str


def rewritten(edit: Mapping[str, Any], texts: Texts) -> tuple[Rewritten, ...]:
    """The files of a workspace edit; refused as a whole when one of them is outside."""
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}

    def load(path: str) -> bytes | None:
        if path not in before:
            before[path] = after[path] = texts.read(path)
        return after[path]

    for step in _steps(edit):
        kind = step.get("kind")
        if kind == "rename":
            old, new = _inside(step["oldUri"], texts), _inside(step["newUri"], texts)
            data = load(old)
            load(new)
            after[old], after[new] = None, data
            continue
        path = _inside(step["uri"], texts)
        data = load(path)
        if kind == "delete":
            after[path] = None
        elif kind == "create":
            after[path] = data if data is not None else b""
        else:
            after[path] = _applied(path, data or b"", step["edits"])
    return tuple(
        Rewritten(path, before[path], after[path]) for path in after if before[path] != after[path]
    )


def _steps(edit: Mapping[str, Any]) -> Iterator[Message]:
    changes = edit.get("documentChanges")
    if changes:
        for each in changes:
            document = each.get("textDocument")
            yield {"uri": document["uri"], "edits": each["edits"]} if document else each
        return
    for uri, edits in (edit.get("changes") or {}).items():
        yield {"uri": uri, "edits": edits}


def _inside(uri: str, texts: Texts) -> str:
    path = texts.path(uri)
    if path is None:
        raise OutsideWorkspace(
            f"It would change `{uri}`, which is outside.", hint="Do it by hand, or not at all."
        )
    return path


def _applied(path: str, data: bytes, edits: Iterable[Message]) -> bytes:
    source = decode(data)
    rows = split(source.body)
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    pieces = sorted(
        (_piece(each, rows, starts) for each in edits), key=lambda piece: (piece.start, piece.end)
    )
    parts, at = [], 0
    for piece in pieces:
        if piece.start < at:
            raise Stale(f"The server's edits of `{path}` overlap.", hint="Ask again.")
        parts += [source.body[at : piece.start], piece.text]
        at = piece.end
    parts.append(source.body[at:])
    try:
        return source.encode("".join(parts))
    except Unencodable as failure:
        message = f"`{path}` can't hold what the server would write: {failure}."
        raise Stale(message, hint="Save it as UTF-8 first.") from failure


def _piece(edit: Message, rows: list[str], starts: list[int]) -> _Piece:
    span = edit["range"]
    text = edit.get("newText")
    if text is None:
        text = (edit.get("snippet") or {}).get("value", "")
    return _Piece(_offset(span["start"], rows, starts), _offset(span["end"], rows, starts), text)


def _offset(at: Message, rows: list[str], starts: list[int]) -> int:
    line = int(at["line"])
    if line >= len(rows):
        return starts[-1]
    return starts[line] + column(bare(rows[line]), int(at["character"]))
