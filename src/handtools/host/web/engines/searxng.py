"""SearXNG, at an address of one's own."""

import json

from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import Adapter, Wish, asked, finding
from handtools.text.urls import Url


def _ask(query: Query, base: Url, key: str) -> Wish:  # noqa: ARG001 — it has no key
    return Wish(url=asked(base, "/search", q=query.text, format="json"))


def _read(data: bytes) -> list[Finding]:
    found = json.loads(data)
    if not found["results"] and found.get("unresponsive_engines"):
        raise ValueError("none of the engines behind it answers")
    return [finding(each, excerpt="content", published="publishedDate") for each in found["results"]]


SEARXNG = Adapter(name="searxng", variable="SEARXNG_URL", ask=_ask, read=_read)
