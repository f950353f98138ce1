"""A web that nobody visits: each address has its answer. For testing tools without a network."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from handtools.core.errors import ToolError, Unreachable
from handtools.core.web import Answer, Engine, Finding, Findings, Form, Opens, Query, Rendered, Request
from handtools.host.web.rendering import rendered
from handtools.text.urls import read_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an address answers."""

    data: bytes = b""
    media_type: str = "text/html"
    charset: str = ""
    status: int = 200
    location: str = ""
    retry_after: float | None = None


@dataclass(slots=True)
class MemoryWeb:
    """The HostWeb port over a dict of answers; nothing is kept, so every visit is counted."""

    sites: Mapping[str, Site] = field(default_factory=dict)
    found: tuple[Finding, ...] | ToolError = ()
    """What the engine finds, or how it fails."""
    missing: str = ""
    engine: Engine | None = field(
        default_factory=lambda: Engine("memory", read_url("https://engine.example"))
    )
    visited: list[str] = field(default_factory=list)
    """Every address that was asked, in order."""

    async def visit(self, request: Request, *, opens: Opens) -> Answer:  # noqa: ARG002
        """Give the answer of an address."""
        url = str(request.url)
        self.visited.append(url)
        site = self.sites.get(url)
        if site is None:
            hint = "Check the name, or try another source."
            raise Unreachable(f"{request.url.host} can't be found: there is no such name.", hint=hint)
        return Answer(
            url=request.url,
            status=site.status,
            media_type=site.media_type,
            charset=site.charset,
            location=site.location,
            retry_after=site.retry_after,
            data=site.data,
            received_bytes=len(site.data),
        )

    async def render(self, answer: Answer, form: Form) -> Rendered:
        """A page as text."""
        return await rendered(answer, form)

    async def search(self, query: Query, *, opens: Opens) -> Findings:  # noqa: ARG002
        """What there is."""
        self.visited.append(f"search {query.text}")
        if isinstance(self.found, ToolError):
            raise self.found
        return Findings(engine="memory", findings=self.found[: query.most])
