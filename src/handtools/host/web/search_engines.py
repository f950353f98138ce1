"""Search engine adapters (Brave, Tavily, Exa, Kagi, SearXNG, DuckDuckGo), and which one is configured."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from handtools.core.errors import HostError, RateLimited, Unreachable
from handtools.core.web import WebQuery, WebSearchHit, WebSearchHits
from handtools.host.web.page_text import without_tags
from handtools.text.truncation import sanitized_line
from handtools.text.web.url import BadUrl, Url, parse_url

RESULT_TITLE_CHARS, RESULT_EXCERPT_CHARS, RESULT_URL_CHARS = 300, 500, 2_000
MAX_RETRY_SECONDS = 86_400.0


_LATER_HINT = "Try later, or tell the user."


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """An HTTP request to a search engine: URL, headers, body."""

    url: Url
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The request headers, with the API key; left out of `repr`."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAdapter:
    """How to query one search engine: its environment variable, its request and its result parser."""

    name: str
    variable: str = ""
    """The environment variable that configures it: its API key, or its URL if it needs no key."""
    home: str = ""
    """The base URL of the search engine; empty for a self-hosted one."""
    ask: Callable[[WebQuery, Url, str], EngineRequest]
    read: Callable[[bytes], Sequence[WebSearchHit]]
    """Parses a response; raises ordinary Python errors such as KeyError if it is not as expected."""
    busy: frozenset[int] = frozenset({429})
    """HTTP status codes that mean that we are rate-limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredEngine:
    """A search engine with its URL and API key."""

    adapter: EngineAdapter
    url: Url
    key: str = field(default="", repr=False)

    def parse_response(
        self, status: int, retry_after: float | None, data: bytes, query: WebQuery
    ) -> WebSearchHits:
        """Parse the engine's response to a query; raises if it was rate-limited or failed."""
        name = self.adapter.name
        if status in self.adapter.busy:
            when = (
                "Try later."
                if retry_after is None
                else f"Try again in {min(retry_after, MAX_RETRY_SECONDS):.0f} s."
            )
            raise RateLimited(f"{name} is rate-limiting searches ({status}).", hint=when)
        if status in {401, 403}:
            hint = f"Ask the user to check {self.adapter.variable or 'its settings'}."
            raise Unreachable(f"{name} denied the search ({status}).", hint=hint)
        if status != 200:
            raise Unreachable(f"{name} returned status {status} instead of results.", hint=_LATER_HINT)
        try:
            found = self.adapter.read(data)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise Unreachable(f"{name} returned an unexpected response.", hint=_LATER_HINT) from error
        whole = [each for each in found if _is_web_address(each.url)]
        return WebSearchHits(engine=name, findings=tuple(whole[: query.most]))


def _is_web_address(url: str) -> bool:
    """Whether a string is a valid web address, without line breaks."""
    return (
        url.startswith(("http://", "https://"))
        and url.isprintable()
        and " " not in url
        and len(url) <= RESULT_URL_CHARS
    )


def query_url(base_url: Url, path: str, **fields: object) -> Url:
    """Return a URL with the fields of a search as its query parameters."""
    return base_url.at(f"{base_url.rest.rstrip('/')}{path}?{urlencode(fields)}")


def json_request(
    base_url: Url, path: str, headers: Mapping[str, str], fields: Mapping[str, object]
) -> EngineRequest:
    """Return a POST request with the fields of a search as JSON."""
    body = json.dumps(fields).encode()
    url = base_url.at(f"{base_url.rest.rstrip('/')}{path}")
    return EngineRequest(url=url, headers={"Content-Type": "application/json", **headers}, body=body)


def search_hit_of_entry(entry: Mapping[str, Any], *, excerpt: str, published: str = "") -> WebSearchHit:
    """Build a search result from an entry: `title` and `url`, and the fields named `excerpt` and `published`."""
    return WebSearchHit(
        title=_text_on_one_line(entry.get("title")),
        url=str(entry["url"]),
        excerpt=_text_on_one_line(entry.get(excerpt), RESULT_EXCERPT_CHARS),
        published=_text_on_one_line(entry.get(published)),
    )


def _text_on_one_line(value: object, max_chars: int = RESULT_TITLE_CHARS) -> str:
    return sanitized_line(value, max_chars) if isinstance(value, str) else ""


BRAVE_MOST_RESULTS = 20


def _brave_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:
    url = query_url(base_url, "/res/v1/web/search", q=query.text, count=min(query.most, BRAVE_MOST_RESULTS))
    return EngineRequest(url=url, headers={"X-Subscription-Token": key, "Accept": "application/json"})


def _brave_results(data: bytes) -> list[WebSearchHit]:
    found = json.loads(data)
    if found["type"] != "search":
        raise ValueError("not a search response")
    # Without results, the response has no `web` part.
    entries = found.get("web", {}).get("results", [])
    plain = [{**each, "description": without_tags(each.get("description") or "")} for each in entries]
    return [search_hit_of_entry(each, excerpt="description", published="age") for each in plain]


BRAVE = EngineAdapter(
    name="brave",
    variable="BRAVE_API_KEY",
    home="https://api.search.brave.com",
    ask=_brave_request,
    read=_brave_results,
)

_DUCKDUCKGO_RESULT = re.compile(r'<div\b[^>]*\bclass="result[\s"]')
_DUCKDUCKGO_TITLE = re.compile(r'<a\b([^>]*\bclass="[^"]*\bresult__a\b[^>]*)>(.*?)</a>', re.DOTALL)
_DUCKDUCKGO_HREF = re.compile(r'\bhref="([^"]*)"')
_DUCKDUCKGO_EXCERPT = re.compile(
    r'<(?:a|div|td)\b[^>]*\bclass="[^"]*\bresult__snippet\b[^>]*>(.*?)</(?:a|div|td)>', re.DOTALL
)
_DUCKDUCKGO_CHALLENGES = (b"anomaly-modal", b"anomaly.js", b"challenge-form")


def _duckduckgo_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:  # noqa: ARG001 — it has no key
    return EngineRequest(url=query_url(base_url, "/html/", q=query.text), headers={"Accept": "text/html"})


def _duckduckgo_results(data: bytes) -> list[WebSearchHit]:
    if any(mark in data for mark in _DUCKDUCKGO_CHALLENGES):
        raise RateLimited("duckduckgo suspects a bot and asks for a CAPTCHA.", hint="Don't retry soon.")
    page = data.decode("utf-8", "replace")
    found = [
        entry for entry in map(_duckduckgo_hit, _DUCKDUCKGO_RESULT.split(page)[1:]) if entry is not None
    ]
    if not found and "no-results" not in page and "No results" not in page:
        raise ValueError("neither results nor a no-results message")
    return found


def _duckduckgo_hit(piece: str) -> WebSearchHit | None:
    """Parse one result of a DuckDuckGo page; None for an advertisement."""
    kind = piece.partition(">")[0]
    title, excerpt = _DUCKDUCKGO_TITLE.search(piece), _DUCKDUCKGO_EXCERPT.search(piece)
    href = _DUCKDUCKGO_HREF.search(title[1]) if title else None
    if "result--ad" in kind or title is None or href is None:
        return None
    return WebSearchHit(
        title=_duckduckgo_text(title[2]),
        url=_duckduckgo_target(unescape(href[1])),
        excerpt=_duckduckgo_text(excerpt[1]) if excerpt else "",
    )


def _duckduckgo_target(href: str) -> str:
    """Return the real URL of a DuckDuckGo result, which links to a redirect."""
    parts = urlsplit(f"https:{href}" if href.startswith("//") else href)
    onward = parse_qs(parts.query).get("uddg")
    return onward[0] if onward else parts.geturl()


def _duckduckgo_text(markup: str) -> str:
    return " ".join(without_tags(markup).split())[:RESULT_EXCERPT_CHARS]


DUCKDUCKGO = EngineAdapter(
    name="duckduckgo",
    home="https://html.duckduckgo.com",
    ask=_duckduckgo_request,
    read=_duckduckgo_results,
    busy=frozenset({202, 429}),  # it sends 202 "accepted" to clients it blocks
)


def _exa_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:
    fields = {"query": query.text, "numResults": query.most, "contents": {"highlights": True}}
    return json_request(base_url, "/search", {"x-api-key": key}, fields)


def _exa_results(data: bytes) -> list[WebSearchHit]:
    return [
        search_hit_of_entry(_exa_entry_with_excerpt(each), excerpt="excerpt", published="publishedDate")
        for each in json.loads(data)["results"]
    ]


def _exa_entry_with_excerpt(entry: dict[str, Any]) -> dict[str, Any]:
    passages = entry.get("highlights") or [entry.get("summary") or entry.get("text") or ""]
    return {**entry, "excerpt": " … ".join(passages)}


EXA = EngineAdapter(
    name="exa", variable="EXA_API_KEY", home="https://api.exa.ai", ask=_exa_request, read=_exa_results
)

_KAGI_RESULT = 0
"""The `t` of a Kagi entry that is a search result; others are related searches."""


def _kagi_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:
    url = query_url(base_url, "/api/v0/search", q=query.text, limit=query.most)
    return EngineRequest(url=url, headers={"Authorization": f"Bot {key}"})


def _kagi_results(data: bytes) -> list[WebSearchHit]:
    entries = [each for each in json.loads(data)["data"] if each.get("t") == _KAGI_RESULT]
    return [search_hit_of_entry(each, excerpt="snippet", published="published") for each in entries]


KAGI = EngineAdapter(
    name="kagi", variable="KAGI_API_KEY", home="https://kagi.com", ask=_kagi_request, read=_kagi_results
)


def _searxng_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:  # noqa: ARG001 — it has no key
    return EngineRequest(url=query_url(base_url, "/search", q=query.text, format="json"))


def _searxng_results(data: bytes) -> list[WebSearchHit]:
    found = json.loads(data)
    if not found["results"] and found.get("unresponsive_engines"):
        raise ValueError("none of its engines responded")
    return [
        search_hit_of_entry(each, excerpt="content", published="publishedDate") for each in found["results"]
    ]


SEARXNG = EngineAdapter(name="searxng", variable="SEARXNG_URL", ask=_searxng_request, read=_searxng_results)

TAVILY_MOST_RESULTS = 20


def _tavily_request(query: WebQuery, base_url: Url, key: str) -> EngineRequest:
    headers = {"Authorization": f"Bearer {key}"}
    return json_request(
        base_url,
        "/search",
        headers,
        {"query": query.text, "max_results": min(query.most, TAVILY_MOST_RESULTS)},
    )


def _tavily_results(data: bytes) -> list[WebSearchHit]:
    return [
        search_hit_of_entry(each, excerpt="content", published="published_date")
        for each in json.loads(data)["results"]
    ]


TAVILY = EngineAdapter(
    name="tavily",
    variable="TAVILY_API_KEY",
    home="https://api.tavily.com",
    ask=_tavily_request,
    read=_tavily_results,
    busy=frozenset({429, 432, 433}),  # too many requests; plan limit; pay-as-you-go limit
)

SEARCH_ENGINES: tuple[EngineAdapter, ...] = (BRAVE, TAVILY, EXA, KAGI, SEARXNG, DUCKDUCKGO)
"""All search engines; when several are configured, the first one is used."""
SEARCH_ENGINE_VARIABLE = "HANDTOOLS_SEARCH"
"""Environment variable that names the search engine; needed for one that no other variable configures."""
SEARCH_ENGINE_URL_VARIABLE = "HANDTOOLS_SEARCH_URL"
"""Environment variable with a URL to use instead of the default for the engine in `HANDTOOLS_SEARCH`."""

_KEY_CHARACTERS = re.compile(r"[\x21-\x7e]+")


def configured_engine(environment: Mapping[str, str]) -> ConfiguredEngine | None:
    """Return the search engine configured in the environment; None if there is none."""
    choice = environment.get(SEARCH_ENGINE_VARIABLE, "").strip().lower()
    for adapter in SEARCH_ENGINES:
        given = environment.get(adapter.variable, "").strip() if adapter.variable else ""
        if choice == adapter.name or (not choice and given):
            return _configured_engine_or_none(
                adapter, given, environment.get(SEARCH_ENGINE_URL_VARIABLE, "").strip() if choice else ""
            )
    if choice:
        names = ", ".join(adapter.name for adapter in SEARCH_ENGINES)
        raise HostError(f"{SEARCH_ENGINE_VARIABLE} names an unknown search engine. Use one of: {names}.")
    return None


def _configured_engine_or_none(adapter: EngineAdapter, given: str, address: str) -> ConfiguredEngine | None:
    keyed = bool(adapter.variable and adapter.home)
    home = address or adapter.home or given
    if not home or (keyed and not given):
        return None
    # Checked here, because the HTTP library's error would quote the header with the key.
    if keyed and not _KEY_CHARACTERS.fullmatch(given):
        raise HostError(f"{adapter.variable} contains characters that are not valid in an API key.")
    return ConfiguredEngine(adapter=adapter, url=_engine_url(home), key=given if keyed else "")


def _engine_url(address: str) -> Url:
    try:
        return parse_url(address)
    except BadUrl as problem:
        raise HostError(f"Invalid search engine URL. {problem}") from problem
