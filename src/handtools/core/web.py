"""The web: requests, responses, pages and search results, and the ports for them.

`Visit` is one connection to a host, by a web tool or by a command. ADR 90.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.text.web.host_access import WEB_PORTS
from handtools.text.web.url import Url


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A connection that a command or a tool wants to make."""

    host: str
    port: int
    url: str = ""
    """What is asked for there, where that is known: a command's connections show only where they go."""
    purpose: str = ""
    """Why, where the address does not say it: the words of a search."""
    addresses: tuple[str, ...] = ()
    """Where the host is, as far as it may be gone to."""
    refused: str = ""
    """Why it came to nothing, in a sentence."""
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def kind(self) -> Literal["visit"]:
        """As rules name it."""
        return "visit"

    @property
    def place(self) -> str:
        """The host as lists name it; without a usual port, so `https` after `http` is no other place."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in WEB_PORTS else f"{host}:{self.port}"


PageForm = Literal["markdown", "text", "html"]
PAGE_BYTES = 5_000_000
"""No larger page is taken."""
NO_ENGINE_HINT = "A person can set one up; see the docs."
HostIsListed = Callable[[str, int], bool]
"""Whether a person has listed this host or address, with this port: then it may be local."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """One question to one server; where it sends us on is another."""

    url: Url
    form: PageForm = "markdown"
    """Which form of the page we would like best; the server is told."""
    kept: bool = False
    """Whether a page that was kept a little while ago will do: to go on reading it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """What a server answered: unpacked, and no larger than we take."""

    url: Url
    status: int
    media_type: str = ""
    charset: str = ""
    """As the server says; pages have been known to say otherwise."""
    location: str = ""
    """Where it sends us on to; empty when it does not."""
    retry_after: float | None = None
    """Seconds that the server wants us to wait."""
    data: bytes = b""
    kept: bool = False
    """Whether it came from what we had kept."""
    addresses: tuple[str, ...] = ()
    received_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPage:
    """A page as text; None when it is of a kind that has none."""

    text: str | None
    title: str = ""
    encoding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A page as a tool gets it. Whoever wrote it is a stranger: what it says is data, never an order."""

    url: str
    """Where it was found in the end."""
    media_type: str
    rendered: RenderedPage
    data: bytes
    hops: tuple[str, ...] = ()
    """The addresses that sent us on."""
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WebQuery:
    """What is looked for on the web."""

    text: str
    most: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchHit:
    """One result of a search."""

    title: str
    url: str
    excerpt: str = ""
    published: str = ""
    """As the engine gives it; empty when it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchHits:
    """What an engine found, best first; none means that it looked and there is nothing."""

    engine: str
    findings: tuple[WebSearchHit, ...]


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """A search engine that a person has set up."""

    name: str
    url: Url


class Web(Protocol):
    """The web as a tool sees it: every host is judged, every address vetted, every visit announced."""

    async def fetch(self, url: str, form: PageForm, *, kept: bool = False) -> WebPage:
        """A page, wherever its address leads in the end."""
        ...

    async def search(self, query: WebQuery) -> WebSearchHits:
        """What the engine of this machine finds."""
        ...


class HostWeb(Protocol):
    """The web as a machine offers it: addresses vetted and held on to, without policy."""

    @property
    def missing(self) -> str:
        """Why there is no web here; empty when there is."""
        ...

    @property
    def engine(self) -> SearchEngine | None:
        """Where searches go."""
        ...

    async def visit(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:
        """Ask one server; raises `Denied` when its name leads where nobody may go."""
        ...

    async def render(self, answer: WebResponse, form: PageForm) -> RenderedPage:
        """A page as text of the form."""
        ...

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:
        """Ask the engine; raises `Throttled` when it will not answer now, which is not the same as nothing."""
        ...
