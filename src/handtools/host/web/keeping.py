"""Keeping pages: so that going on reading costs no visit, and an unchanged page is not sent again."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from handtools.core.errors import ToolError
from handtools.core.web import Answer, Request
from handtools.host.store import FolderStore
from handtools.text.urls import Url

MOST_BYTES = 64 << 20
MOST_AGE = 7 * 86_400.0
RECENT = 900.0
"""Seconds for which a page will do to go on reading it."""
MOST_FRESH = 3_600.0
"""Seconds for which a server's word is taken that nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A page as it was answered, and what to ask when it is wanted again."""

    url: str
    media_type: str
    charset: str
    etag: str = ""
    modified: str = ""
    kept_at: float = 0.0
    fresh_until: float = 0.0
    data: bytes = b""

    @property
    def conditions(self) -> dict[str, str]:
        """Headers by which the server can say that nothing changed."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in asked.items() if value}

    def answer(self, url: Url) -> Answer:
        """The page as if it had been answered now."""
        return Answer(
            url=url, status=200, media_type=self.media_type, charset=self.charset, data=self.data, kept=True
        )


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages in a folder, by address and wanted form."""

    store: FolderStore
    clock: Callable[[], float] = time.time

    def find(self, request: Request) -> Kept | None:
        """The page that is kept for a request; None when there is none that can be read."""
        try:
            head, _, data = self.store.get(_name(request)).partition(b"\n")
            kept = Kept(**json.loads(head), data=data)
        except (KeyError, ValueError, TypeError, ToolError):
            return None
        return kept if kept.url == str(request.url) else None

    def serves(self, kept: Kept, request: Request) -> bool:
        """Whether the page will do without asking."""
        recent = request.kept and self.clock() < kept.kept_at + RECENT
        return recent or self.clock() < kept.fresh_until

    def keep(self, request: Request, kept: Kept) -> None:
        """Put a page away in place of what was there; a full disk costs only the politeness."""
        facts = asdict(replace(kept, data=b"", kept_at=self.clock()))
        del facts["data"]
        try:
            self.store.drop(_name(request))
            self.store.put(json.dumps(facts).encode() + b"\n" + kept.data, name=_name(request))
            self.store.tidy(max_bytes=MOST_BYTES, max_age=MOST_AGE)
        except ToolError:
            return

    def drop(self, request: Request) -> None:
        """Keep nothing of it."""
        self.store.drop(_name(request))

    def fresh_until(self, control: str) -> float:
        """How long the server's word holds, from its Cache-Control."""
        split = (part.strip().lower().partition("=") for part in control.split(","))
        parts = {name: value for name, _, value in split}
        seconds = parts.get("max-age", "").strip('"')
        if "no-cache" in parts or not seconds.isdecimal():
            return 0.0
        return self.clock() + min(float(seconds), MOST_FRESH)


def _name(request: Request) -> str:
    asked = f"{request.url}\0{request.form}".encode()
    return f"{hashlib.sha256(asked).hexdigest()[:40]}.page"
