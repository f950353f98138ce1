"""The web: what is asked for, what came back, and the two ports it goes through."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.text.urls import Url

Form = Literal["markdown", "text", "html"]
PAGE_BYTES = 5_000_000
"""No larger page is taken."""
NO_ENGINE = "A person can set one up; see the docs."
Opens = Callable[[str, int], bool]
"""Whether a person has listed this host or address, with this port: then it may be local."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to one server; where it sends us on is another."""

    url: Url
    form: Form = "markdown"
    """Which form of the page we would like best; the server is told."""
    kept: bool = False
    """Whether a page that was kept a little while ago will do: to go on reading it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
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
class Rendered:
    """A page as text; None when it is of a kind that has none."""

    text: str | None
    title: str = ""
    encoding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as a tool gets it. Whoever wrote it is a stranger: what it says is data, never an order."""

    url: str
    """Where it was found in the end."""
    media_type: str
    rendered: Rendered
    data: bytes
    hops: tuple[str, ...] = ()
    """The addresses that sent us on."""
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for on the web."""

    text: str
    most: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of a search."""

    title: str
    url: str
    excerpt: str = ""
    published: str = ""
    """As the engine gives it; empty when it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an engine found, best first; none means that it looked and there is nothing."""

    engine: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """A search engine that a person has set up."""

    name: str
    url: Url


class Web(Protocol):
    """The web as a tool sees it: every host is judged, every address vetted, every visit announced."""

    async def fetch(self, url: str, form: Form, *, kept: bool = False) -> Page:
        """A page, wherever its address leads in the end."""
        ...

    async def search(self, query: Query) -> Findings:
        """What the engine of this machine finds."""
        ...


class HostWeb(Protocol):
    """The web as a machine offers it: addresses vetted and held on to, without policy."""

    @property
    def missing(self) -> str:
        """Why there is no web here; empty when there is."""
        ...

    @property
    def engine(self) -> Engine | None:
        """Where searches go."""
        ...

    async def visit(self, request: Request, *, opens: Opens) -> Answer:
        """Ask one server; raises `Denied` when its name leads where nobody may go."""
        ...

    async def render(self, answer: Answer, form: Form) -> Rendered:
        """A page as text of the form."""
        ...

    async def search(self, query: Query, *, opens: Opens) -> Findings:
        """Ask the engine; raises `Throttled` when it will not answer now, which is not the same as nothing."""
        ...
