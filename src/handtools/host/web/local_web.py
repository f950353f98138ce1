"""The Web port: fetch pages and search the web from this machine, and look up host names. `NoWeb` refuses all."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from handtools.core.errors import Denied, HostError, NotFound, TimedOut, Unreachable
from handtools.core.web import (
    NO_ENGINE_HINT,
    HostIsListed,
    PageForm,
    RenderedPage,
    SearchEngine,
    WebQuery,
    WebRequest,
    WebResponse,
    WebSearchHits,
)
from handtools.host.web.page_cache import CachedPage, PageCache
from handtools.host.web.request_limits import RateLimiter, ResponseLimits
from handtools.text.web.host_access import ip_address_refusal, ip_literal, is_address_of_this_machine
from handtools.text.web.url import Url

if TYPE_CHECKING:
    import ssl

    from handtools.host.web.search_engines import ConfiguredEngine

LookUpHost = Callable[[str, int], Sequence[str]]
"""A function that looks up the IP addresses of a host and port; raises `OSError`."""


def system_lookup(host: str, port: int) -> list[str]:
    """Look up a host's addresses with the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


async def vetted_addresses(url: Url, look_up: LookUpHost, opens: HostIsListed) -> tuple[str, ...]:
    """Return the addresses of a URL's host to which we may connect; raises `Denied` if there are none."""
    if ip_literal(url.host) is not None:
        addresses: Sequence[str] = [url.host]
    else:
        try:
            addresses = await to_thread.run_sync(look_up, url.host, url.port, abandon_on_cancel=True)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "no such host name"
            hint = "Check the host name, or try another source."
            raise Unreachable(f"Can't resolve {url.host}: {reason}.", hint=hint) from error
    reasons = {each: _refusal_reason(each, url, opens) for each in addresses}
    fit = tuple(each for each, reason in reasons.items() if not reason)
    if not fit:
        told = " ".join(dict.fromkeys(reasons.values())) or "It has no address."
        hint = "The user can allow an address and port in `hosts` of the policy."
        raise Denied(f"Access to {url.host} is not allowed. {told}", hint=hint)
    return fit


def _refusal_reason(address: str, url: Url, opens: HostIsListed) -> str:
    reason = ip_address_refusal(address)
    if not reason or opens(address, url.port):
        return ""
    # The owner of a name can point it to any address, except for `localhost`, which is always this machine.
    own = url.host == "localhost" or url.host.endswith(".localhost")
    return "" if own and is_address_of_this_machine(address) and opens(url.host, url.port) else reason


REQUIRED_WEB_LIBRARIES = ("httpcore2", "html_to_markdown")
WEB_NOT_INSTALLED = "The web tools are not installed: `pip install handtools-slim[web]`."


@dataclass(slots=True, kw_only=True)
class LocalWeb:
    """Fetches pages and searches the web; sends no cookies and ignores proxy settings of the environment."""

    pages: PageCache | None = None
    """The cache of pages; None for no cache."""
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    look_up: LookUpHost = system_lookup
    trust: "ssl.SSLContext | None" = None
    """The TLS context with trusted certificates; None for the system default."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The environment variables with the keys of search engines."""
    limiter: RateLimiter = field(default_factory=RateLimiter)
    proxy: str = ""
    """The HTTP proxy for all requests, as `http://[USER:PASSWORD@]HOST:PORT`; empty for none."""
    root: str | os.PathLike[str] = ""
    """The workspace; no library is imported from it."""

    @property
    def missing(self) -> str:
        """Why there is no web access; empty if there is."""
        return "" if all(find_spec(name) for name in REQUIRED_WEB_LIBRARIES) else WEB_NOT_INSTALLED

    @property
    def engine(self) -> SearchEngine | None:
        """The search engine configured in the environment; None if there is none or it is misconfigured."""
        try:
            found = self._configured_engine
        except HostError:
            return None
        return SearchEngine(found.adapter.name, found.url) if found else None

    async def fetch_response(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:
        """Fetch one URL, from the cache if the page there is fresh; redirects are returned, not followed."""
        kept = await to_thread.run_sync(self._cached_page, request)
        if (
            kept is not None
            and self.pages is not None
            and self.pages.is_usable_without_request(kept, request)
        ):
            return kept.answer(request.url)
        from handtools.host.web.http_client import HttpClient

        client = HttpClient(self.limits, self._tls_context, self.limiter, self.proxy)
        addresses = await self._look_up_allowed_addresses(request.url, opens)
        received = await client.page(request, addresses, kept.conditions if kept else {})
        if kept is not None and received.status == 304:
            answer = replace(kept.answer(request.url), addresses=addresses)
        else:
            answer = await to_thread.run_sync(client.decode_response, request, received, addresses)
        if self.pages is not None:
            await to_thread.run_sync(self._update_cache, request, answer, received.headers, kept)
        return answer

    async def render(self, response: WebResponse, form: PageForm) -> RenderedPage:
        """Convert a response to text or Markdown."""
        from handtools.host.web.page_text import rendered_page

        return await rendered_page(response, form, self.root)

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:
        """Search with the configured engine."""
        found = self._configured_engine
        if found is None:
            raise NotFound("No search engine is configured.", hint=NO_ENGINE_HINT)
        from handtools.host.web.http_client import HttpClient

        client = HttpClient(self.limits, self._tls_context, self.limiter, self.proxy)
        addresses = await self._look_up_allowed_addresses(found.url, opens)
        return await client.search(found, query, addresses)

    async def _look_up_allowed_addresses(self, url: Url, opens: HostIsListed) -> tuple[str, ...]:
        try:
            with anyio.fail_after(self.limits.connect):
                return await vetted_addresses(url, self.look_up, opens)
        except Unreachable:
            if self.proxy:  # the proxy may resolve names that this machine can't
                return ()
            raise
        except TimeoutError as error:
            if self.proxy:
                return ()
            message = f"The DNS lookup timed out after {self.limits.connect:g} s for {url.host}."
            raise TimedOut(message, hint="Try again, or another source.") from error

    @property
    def _configured_engine(self) -> "ConfiguredEngine | None":
        from handtools.host.web.search_engines import configured_engine

        return configured_engine(self.environment)

    def _tls_context(self) -> "ssl.SSLContext":
        if self.trust is None:
            from httpcore2 import default_ssl_context

            self.trust = default_ssl_context()
        return self.trust

    def _cached_page(self, request: WebRequest) -> CachedPage | None:
        return self.pages.find_even_if_stale(request) if self.pages is not None else None

    def _update_cache(
        self,
        request: WebRequest,
        response: WebResponse,
        headers: Mapping[str, str],
        cached: CachedPage | None,
    ) -> None:
        assert self.pages is not None
        control = headers.get("cache-control", "")
        if response.status != 200 or "no-store" in control.lower():
            if response.status in {404, 410} or "no-store" in control.lower():
                self.pages.delete_page(request)
            return
        fresh = self.pages.fresh_until(control)
        if response.kept and cached is not None:
            self.pages.store_page(request, replace(cached, fresh_until=fresh))
            return
        self.pages.store_page(
            request,
            CachedPage(
                url=str(request.url),
                media_type=response.media_type,
                charset=response.charset,
                etag=headers.get("etag", ""),
                modified=headers.get("last-modified", ""),
                fresh_until=fresh,
                data=response.data,
            ),
        )


class NoWeb:
    """The Web port without web access: refuses everything."""

    missing = "Web access is not available."
    engine: SearchEngine | None = None

    async def fetch_response(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:  # noqa: ARG002
        raise Denied(self.missing, hint="Continue without it, or ask the user.")

    async def render(self, response: WebResponse, form: PageForm) -> RenderedPage:  # noqa: ARG002
        raise Denied(self.missing, hint="Continue without it, or ask the user.")

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:  # noqa: ARG002
        raise Denied(self.missing, hint="Continue without it, or ask the user.")
