"""Brave Search."""

import json

from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import Adapter, Wish, asked, finding
from handtools.text.markup import without_tags
from handtools.text.urls import Url

MOST = 20


def _ask(query: Query, base: Url, key: str) -> Wish:
    url = asked(base, "/res/v1/web/search", q=query.text, count=min(query.most, MOST))
    return Wish(url=url, headers={"X-Subscription-Token": key, "Accept": "application/json"})


def _read(data: bytes) -> list[Finding]:
    found = json.loads(data)
    if found["type"] != "search":
        raise ValueError("not what a search answers")
    # A search that finds nothing has no part for the web.
    entries = found.get("web", {}).get("results", [])
    plain = [{**each, "description": without_tags(each.get("description") or "")} for each in entries]
    return [finding(each, excerpt="description", published="age") for each in plain]


BRAVE = Adapter(
    name="brave",
    variable="BRAVE_API_KEY",
    home="https://api.search.brave.com",
    ask=_ask,
    read=_read,
)
