"""Cache of fetched web pages, with revalidation by ETag and Last-Modified."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from handtools.core.errors import ToolError
from handtools.core.web import WebRequest, WebResponse
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.text.web.url import Url

PAGE_CACHE_BYTES = 64 << 20
PAGE_CACHE_SECONDS = 7 * 86_400.0
PAGE_REREAD_SECONDS = 900.0
"""Seconds for which the next part of a page is read from the cache, without asking the server."""
MAX_FRESH_SECONDS = 3_600.0
"""The longest freshness lifetime, in seconds, accepted from a server's Cache-Control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPage:
    """A cached response, with the time it was fetched and its validators (ETag, Last-Modified)."""

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
        """The headers of a conditional request (If-None-Match, If-Modified-Since)."""
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in asked.items() if value}

    def answer(self, url: Url) -> WebResponse:
        """Return the cached page as a `WebResponse` for a URL."""
        return WebResponse(
            url=url, status=200, media_type=self.media_type, charset=self.charset, data=self.data, kept=True
        )


@dataclass(frozen=True, slots=True)
class PageCache:
    """Stores pages in a folder, keyed by URL and requested form."""

    store: FolderBlobStore
    clock: Callable[[], float] = time.time

    def find_even_if_stale(self, request: WebRequest) -> CachedPage | None:
        """Return the cached page for a request; None if there is none or it can't be read."""
        try:
            head, _, data = self.store.get(_cache_file_name(request)).partition(b"\n")
            cached = CachedPage(**json.loads(head), data=data)
        except (KeyError, ValueError, TypeError, ToolError):
            return None
        return cached if cached.url == str(request.url) else None

    def is_usable_without_request(self, cached: CachedPage, request: WebRequest) -> bool:
        """Whether a cached page may be used without a request to the server."""
        recent = request.kept and self.clock() < cached.kept_at + PAGE_REREAD_SECONDS
        return recent or self.clock() < cached.fresh_until

    def store_page(self, request: WebRequest, cached: CachedPage) -> None:
        """Store a page, replacing an older one; errors such as a full disk are ignored."""
        facts = asdict(replace(cached, data=b"", kept_at=self.clock()))
        del facts["data"]
        try:
            self.store.drop(_cache_file_name(request))
            self.store.put(json.dumps(facts).encode() + b"\n" + cached.data, name=_cache_file_name(request))
            self.store.tidy(max_bytes=PAGE_CACHE_BYTES, max_age=PAGE_CACHE_SECONDS)
        except ToolError:
            return

    def delete_page(self, request: WebRequest) -> None:
        """Delete the cached page for a request."""
        self.store.drop(_cache_file_name(request))

    def fresh_until(self, control: str) -> float:
        """Return the time until which a page is fresh, from its Cache-Control header; 0 if it never is."""
        split = (part.strip().lower().partition("=") for part in control.split(","))
        parts = {name: value for name, _, value in split}
        seconds = parts.get("max-age", "").strip('"')
        if "no-cache" in parts or not seconds.isdecimal():
            return 0.0
        return self.clock() + min(float(seconds), MAX_FRESH_SECONDS)


def _cache_file_name(request: WebRequest) -> str:
    asked = f"{request.url}\0{request.form}".encode()
    return f"{hashlib.sha256(asked).hexdigest()[:40]}.page"
