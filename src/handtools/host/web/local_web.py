"""Local web: pages and searches from this machine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from handtools.core.errors import Denied, HostError, NotFound, TimedOut
from handtools.core.web import NO_ENGINE, Answer, Engine, Findings, Form, Opens, Query, Rendered, Request
from handtools.host.web.keeping import Kept, Pages
from handtools.host.web.limits import Limits
from handtools.host.web.looking_up import LookUp, looked_up, vetted
from handtools.host.web.pacing import Pace
from handtools.text.urls import Url

if TYPE_CHECKING:
    import ssl

    from handtools.host.web.engines.adapting import SetUp

NEEDS = ("httpcore2", "html_to_markdown")
MISSING = "The web tools are not installed: `pip install handtools-slim[web]`."


@dataclass(slots=True, kw_only=True)
class LocalWeb:
    """The HostWeb port over connections of our own: no proxy, no cookies, nothing taken from the environment."""

    pages: Pages | None = None
    """Where pages are kept; None keeps nothing."""
    limits: Limits = field(default_factory=Limits)
    look_up: LookUp = looked_up
    trust: "ssl.SSLContext | None" = None
    """Whom to believe; None is whom the system believes."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Where a person has put the keys of search engines."""
    pace: Pace = field(default_factory=Pace)
    root: str | os.PathLike[str] = ""
    """The workspace, from which no library is loaded."""

    @property
    def missing(self) -> str:
        """Why there is no web here."""
        return "" if all(find_spec(name) for name in NEEDS) else MISSING

    @property
    def engine(self) -> Engine | None:
        """Where searches go: what is set up in the environment; what is set up wrongly, `doctor` tells."""
        try:
            found = self._set_up
        except HostError:
            return None
        return Engine(found.adapter.name, found.url) if found else None

    async def visit(self, request: Request, *, opens: Opens) -> Answer:
        """Ask one server, unless what is kept will do."""
        kept = await to_thread.run_sync(self._kept, request)
        if kept is not None and self.pages is not None and self.pages.serves(kept, request):
            return kept.answer(request.url)
        from handtools.host.web.visiting import Visiting

        visiting = Visiting(self.limits, self._trusted, self.pace)
        addresses = await self._vetted(request.url, opens)
        received = await visiting.page(request, addresses, kept.conditions if kept else {})
        if kept is not None and received.status == 304:
            answer = replace(kept.answer(request.url), addresses=addresses)
        else:
            answer = await to_thread.run_sync(visiting.answer, request, received, addresses)
        if self.pages is not None:
            await to_thread.run_sync(self._keep, request, answer, received.headers, kept)
        return answer

    async def render(self, answer: Answer, form: Form) -> Rendered:
        """A page as text."""
        from handtools.host.web.rendering import rendered

        return await rendered(answer, form, self.root)

    async def search(self, query: Query, *, opens: Opens) -> Findings:
        """Ask the engine that is set up."""
        found = self._set_up
        if found is None:
            raise NotFound("No search engine is set up here.", hint=NO_ENGINE)
        from handtools.host.web.visiting import Visiting

        visiting = Visiting(self.limits, self._trusted, self.pace)
        addresses = await self._vetted(found.url, opens)
        return await visiting.search(found, query, addresses)

    async def _vetted(self, url: Url, opens: Opens) -> tuple[str, ...]:
        try:
            with anyio.fail_after(self.limits.connect):
                return await vetted(url, self.look_up, opens)
        except TimeoutError as error:
            message = f"Nobody said within {self.limits.connect:g} s where {url.host} is."
            raise TimedOut(message, hint="Try again, or another source.") from error

    @property
    def _set_up(self) -> "SetUp | None":
        from handtools.host.web.engines.choosing import chosen

        return chosen(self.environment)

    def _trusted(self) -> "ssl.SSLContext":
        if self.trust is None:
            from httpcore2 import default_ssl_context

            self.trust = default_ssl_context()
        return self.trust

    def _kept(self, request: Request) -> Kept | None:
        return self.pages.find(request) if self.pages is not None else None

    def _keep(
        self, request: Request, answer: Answer, headers: Mapping[str, str], kept: Kept | None
    ) -> None:
        assert self.pages is not None
        control = headers.get("cache-control", "")
        if answer.status != 200 or "no-store" in control.lower():
            if answer.status in {404, 410} or "no-store" in control.lower():
                self.pages.drop(request)
            return
        fresh = self.pages.fresh_until(control)
        if answer.kept and kept is not None:
            self.pages.keep(request, replace(kept, fresh_until=fresh))
            return
        self.pages.keep(
            request,
            Kept(
                url=str(request.url),
                media_type=answer.media_type,
                charset=answer.charset,
                etag=headers.get("etag", ""),
                modified=headers.get("last-modified", ""),
                fresh_until=fresh,
                data=answer.data,
            ),
        )


class NoWeb:
    """The HostWeb port of a machine that has none."""

    missing = "There is no web here."
    engine: Engine | None = None

    async def visit(self, request: Request, *, opens: Opens) -> Answer:  # noqa: ARG002
        """Nobody goes anywhere."""
        raise Denied(self.missing, hint="Go on without it, or ask the person.")

    async def render(self, answer: Answer, form: Form) -> Rendered:  # noqa: ARG002
        """There is nothing to show."""
        raise Denied(self.missing, hint="Go on without it, or ask the person.")

    async def search(self, query: Query, *, opens: Opens) -> Findings:  # noqa: ARG002
        """Nothing is looked for."""
        raise Denied(self.missing, hint="Go on without it, or ask the person.")
