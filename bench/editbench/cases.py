"""One case of the benchmark and its JSON line."""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["apply", "done", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A file, the two arguments a model sent, and every result that is right."""

    id: str
    family: str
    lang: str
    content: bytes
    old: str
    new: str
    accept: tuple[bytes, ...]
    kind: Kind
    line: int | None = None
    within: int = 3
    seen: bytes | None = None
    meant: tuple[str, str] | None = field(default=None)
    patch: str = ""
    """A patch of this one file, in place of `old` and `new`."""
    retry: str | None = None
    """The old text of the model's next try, which succeeded: it tells the place that was meant."""

    def as_json(self) -> str:
        """The case as one line; bytes that are no UTF-8 travel as base64."""
        row: dict[str, Any] = {
            "id": self.id,
            "family": self.family,
            "lang": self.lang,
            "content": outward(self.content),
            "old": self.old,
            "new": self.new,
            "accept": [outward(text) for text in self.accept],
            "kind": self.kind,
        }
        if self.patch:
            row["patch"] = self.patch
        if self.line is not None:
            row["hint"] = {"line": self.line, "within": self.within}
        if self.seen is not None:
            row["seen"] = outward(self.seen)
        if self.meant is not None:
            row["meant"] = list(self.meant)
        return json.dumps(row)

    @classmethod
    def from_json(cls, line: str) -> "Case":
        """Read a line that we or anyone else wrote."""
        row = json.loads(line)
        if "patch" in row and "kind" not in row:
            row = _logged(row)
        hint = row.get("hint") or {}
        content = row.get("content", row.get("content_base64", row.get("content_b64")))
        plain = "content" in row and row.get("encoding") != "base64"
        accept = row.get("accept") or []
        return cls(
            id=str(row["id"]),
            family=str(row.get("family", "")),
            lang=str(row.get("lang", "")),
            content=inward(content, plain=plain),
            old=row.get("old", ""),
            new=row.get("new", ""),
            accept=tuple(inward(text, plain=plain) for text in accept),
            kind=row.get("kind", "apply"),
            line=hint.get("line"),
            within=hint.get("within", 3),
            seen=None if row.get("seen") is None else inward(row["seen"], plain=plain),
            meant=tuple(row["meant"]) if row.get("meant") else None,
            patch=row.get("patch", ""),
            retry=(row.get("retry") or {}).get("old"),
        )


def _logged(row: dict[str, Any]) -> dict[str, Any]:
    """A patch as an agent's log has it: what it was made on, and what its success, or the next one, left."""
    after, succeeded = row.get("after"), bool(row["ok"])
    return {
        "id": f"{row['call']}-{row.get('ci', 0)}",
        "family": "patch-ok" if succeeded else "patch-fail-retried" if after else "patch-fail-unretried",
        "lang": Path(row["file"]).suffix.lstrip("."),
        "content": row["content"],
        "accept": [after] if after else [],
        "kind": "apply" if after else "refuse",
        "patch": row["patch"],
    }


def write(path: Path, cases: Iterable[Case]) -> None:
    """Keep cases for anyone's matcher."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(case.as_json() + "\n" for case in cases)


def read(path: Path) -> Iterator[Case]:
    """Cases from a file, ours or another's, packed or plain."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        yield from (Case.from_json(line) for line in file if line.strip())


def outward(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def inward(value: str | dict[str, str], *, plain: bool) -> bytes:
    if isinstance(value, dict):
        return base64.b64decode(value.get("base64") or value.get("b64") or "")
    return value.encode("utf-8", "surrogateescape") if plain else base64.b64decode(value)
