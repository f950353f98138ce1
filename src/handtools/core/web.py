"""Web access: requests, responses, pages, search results, and the ports for them.

`Visit` is the effect of connecting to a host, by a web tool or by a command.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.text.web.host_access import WEB_PORTS
from handtools.text.web.url import Url


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Effect of connecting to a host, by a web tool or a command."""

    host: str
    port: int
    url: str = ""
    """Requested URL, if known; for connections of commands only host and port are known."""
    purpose: str = ""
    """Purpose, if the URL does not show it: the query of a web search."""
    addresses: tuple[str, ...] = ()
    """IP addresses of the host that may be connected to."""
    refused: str = ""
    """Why the connection was refused, in a sentence; empty if it was not."""
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def kind(self) -> Literal["visit"]:
        """The effect kind that policy rules use for connections."""
        return "visit"

    @property
    def place(self) -> str:
        """The host, with its port unless that is 80 or 443, as written in host lists."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in WEB_PORTS else f"{host}:{self.port}"


PageForm = Literal["markdown", "text", "html"]
MAX_WEB_PAGE_BYTES = 5_000_000
"""Largest web page in bytes that is downloaded."""
NO_ENGINE_HINT = "The user can configure one; see the docs."
HostIsListed = Callable[[str, int], bool]
"""Callback: whether the user listed this host or address with this port, so that it may even be local."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """One HTTP request to one server; following a redirect takes another request."""

    url: Url
    form: PageForm = "markdown"
    """Preferred form of the page, sent in the Accept header."""
    kept: bool = False
    """Whether a recently cached copy may be used, to continue reading the same page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """HTTP response with its decompressed, size-limited body."""

    url: Url
    status: int
    media_type: str = ""
    charset: str = ""
    """Charset according to the server's header."""
    location: str = ""
    """Redirect target; empty if there is no redirect."""
    retry_after: float | None = None
    """Seconds to wait before a retry, as the server asked."""
    data: bytes = b""
    kept: bool = False
    """Whether the response comes from the cache."""
    addresses: tuple[str, ...] = ()
    received_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPage:
    """A web page converted to text; `text` is None for media types without text."""

    text: str | None
    title: str = ""
    encoding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A fetched web page for a tool. Its text is untrusted data, not instructions."""

    url: str
    """Final URL, after redirects."""
    media_type: str
    rendered: RenderedPage
    data: bytes
    hops: tuple[str, ...] = ()
    """URLs that redirected to the page."""
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebQuery:
    """Web search query: text and maximum number of results."""

    text: str
    most: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchHit:
    """One result of a web search: title, URL, excerpt."""

    title: str
    url: str
    excerpt: str = ""
    published: str = ""
    """Publication date in the search engine's wording; empty if it gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchHits:
    """Web search results, best first; empty when the search found nothing."""

    engine: str
    findings: tuple[WebSearchHit, ...]


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """The search engine that the user configured: name and URL."""

    name: str
    url: Url


class Web(Protocol):
    """Port for tools to use the web: checks hosts by policy, checks addresses, announces visits."""

    async def fetch(self, url: str, form: PageForm, *, kept: bool = False) -> WebPage:
        """Fetch a page, following redirects; with `kept` a cached copy may be used."""
        ...

    async def search(self, query: WebQuery) -> WebSearchHits:
        """Search the web with the configured search engine."""
        ...


class HostWeb(Protocol):
    """Host port for web access: checks and pins addresses, but applies no policy."""

    @property
    def missing(self) -> str:
        """Why the web is not available here; empty when it is."""
        ...

    @property
    def engine(self) -> SearchEngine | None:
        """The configured search engine, or None."""
        ...

    async def fetch_response(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:
        """Send one request and return the response; raises `Denied` if the host has a forbidden address."""
        ...

    async def render(self, response: WebResponse, form: PageForm) -> RenderedPage:
        """Convert a response to text in the given form."""
        ...

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:
        """Query the search engine; raises `RateLimited` if it throttles requests."""
        ...
