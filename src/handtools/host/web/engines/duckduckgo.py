"""DuckDuckGo without scripts: a page made for people, so it is asked only where a person has said so."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

from handtools.core.errors import Throttled
from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import EXCERPT_CHARS, Adapter, Wish, asked
from handtools.text.markup import without_tags
from handtools.text.urls import Url

_RESULT = re.compile(r'<div\b[^>]*\bclass="result[\s"]')
_TITLE = re.compile(r'<a\b([^>]*\bclass="[^"]*\bresult__a\b[^>]*)>(.*?)</a>', re.DOTALL)
_HREF = re.compile(r'\bhref="([^"]*)"')
_EXCERPT = re.compile(
    r'<(?:a|div|td)\b[^>]*\bclass="[^"]*\bresult__snippet\b[^>]*>(.*?)</(?:a|div|td)>', re.DOTALL
)
_CHALLENGES = (b"anomaly-modal", b"anomaly.js", b"challenge-form")


def _ask(query: Query, base: Url, key: str) -> Wish:  # noqa: ARG001 — it has no key
    return Wish(url=asked(base, "/html/", q=query.text), headers={"Accept": "text/html"})


def _read(data: bytes) -> list[Finding]:
    if any(mark in data for mark in _CHALLENGES):
        raise Throttled(
            "duckduckgo takes us for a robot and wants a puzzle solved.", hint="Do not try again soon."
        )
    page = data.decode("utf-8", "replace")
    found = [entry for entry in map(_finding, _RESULT.split(page)[1:]) if entry is not None]
    if not found and "no-results" not in page and "No results" not in page:
        raise ValueError("neither results nor their absence")
    return found


def _finding(piece: str) -> Finding | None:
    """One result from where it begins; None for an advertisement."""
    kind = piece.partition(">")[0]
    title, excerpt = _TITLE.search(piece), _EXCERPT.search(piece)
    href = _HREF.search(title[1]) if title else None
    if "result--ad" in kind or title is None or href is None:
        return None
    return Finding(
        title=_plain(title[2]),
        url=_target(unescape(href[1])),
        excerpt=_plain(excerpt[1]) if excerpt else "",
    )


def _target(href: str) -> str:
    """Where a result leads: the page sends people through a counter of its own."""
    parts = urlsplit(f"https:{href}" if href.startswith("//") else href)
    onward = parse_qs(parts.query).get("uddg")
    return onward[0] if onward else parts.geturl()


def _plain(markup: str) -> str:
    return " ".join(without_tags(markup).split())[:EXCERPT_CHARS]


DUCKDUCKGO = Adapter(
    name="duckduckgo",
    home="https://html.duckduckgo.com",
    ask=_ask,
    read=_read,
    busy=frozenset({202, 429}),  # it says "accepted" to those whom it will not answer
)
