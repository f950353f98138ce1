"""Tavily."""

import json

from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import Adapter, Wish, finding, posted
from handtools.text.urls import Url

MOST = 20


def _ask(query: Query, base: Url, key: str) -> Wish:
    headers = {"Authorization": f"Bearer {key}"}
    return posted(base, "/search", headers, {"query": query.text, "max_results": min(query.most, MOST)})


def _read(data: bytes) -> list[Finding]:
    return [
        finding(each, excerpt="content", published="published_date") for each in json.loads(data)["results"]
    ]


TAVILY = Adapter(
    name="tavily",
    variable="TAVILY_API_KEY",
    home="https://api.tavily.com",
    ask=_ask,
    read=_read,
    busy=frozenset({429, 432, 433}),  # too fast; the plan's limit; the limit of what is paid by use
)
