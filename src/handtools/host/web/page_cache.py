"""A cache of fetched pages: reading on costs no request, and an unchanged page is not sent again."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from handtools.core.errors import ToolError
from handtools.core.web import WebRequest, WebResponse
from handtools.host.files.blob_store import FolderStore
from handtools.text.web.url import Url

CACHE_BYTES = 64 << 20
CACHE_SECONDS = 7 * 86_400.0
REREAD_SECONDS = 900.0
"""Seconds for which a page will do to go on reading it."""
MOST_FRESH_SECONDS = 3_600.0
"""Seconds for which a server's word is taken that nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPage:
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

    def answer(self, url: Url) -> WebResponse:
        """The page as if it had been answered now."""
        return WebResponse(
            url=url, status=200, media_type=self.media_type, charset=self.charset, data=self.data, kept=True
        )


@dataclass(frozen=True, slots=True)
class PageCache:
    """Pages in a folder, by address and wanted form."""

    store: FolderStore
    clock: Callable[[], float] = time.time

    def find(self, request: WebRequest) -> CachedPage | None:
        """The page that is kept for a request; None when there is none that can be read."""
        try:
            head, _, data = self.store.get(_cache_name(request)).partition(b"\n")
            kept = CachedPage(**json.loads(head), data=data)
        except (KeyError, ValueError, TypeError, ToolError):
            return None
        return kept if kept.url == str(request.url) else None

    def serves(self, kept: CachedPage, request: WebRequest) -> bool:
        """Whether the page will do without asking."""
        recent = request.kept and self.clock() < kept.kept_at + REREAD_SECONDS
        return recent or self.clock() < kept.fresh_until

    def keep(self, request: WebRequest, kept: CachedPage) -> None:
        """Put a page away in place of what was there; a full disk costs only the politeness."""
        facts = asdict(replace(kept, data=b"", kept_at=self.clock()))
        del facts["data"]
        try:
            self.store.drop(_cache_name(request))
            self.store.put(json.dumps(facts).encode() + b"\n" + kept.data, name=_cache_name(request))
            self.store.tidy(max_bytes=CACHE_BYTES, max_age=CACHE_SECONDS)
        except ToolError:
            return

    def drop(self, request: WebRequest) -> None:
        """Keep nothing of it."""
        self.store.drop(_cache_name(request))

    def fresh_until(self, control: str) -> float:
        """How long the server's word holds, from its Cache-Control."""
        split = (part.strip().lower().partition("=") for part in control.split(","))
        parts = {name: value for name, _, value in split}
        seconds = parts.get("max-age", "").strip('"')
        if "no-cache" in parts or not seconds.isdecimal():
            return 0.0
        return self.clock() + min(float(seconds), MOST_FRESH_SECONDS)


def _cache_name(request: WebRequest) -> str:
    asked = f"{request.url}\0{request.form}".encode()
    return f"{hashlib.sha256(asked).hexdigest()[:40]}.page"
