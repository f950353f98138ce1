"""Exa."""

import json
from typing import Any

from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import Adapter, Wish, finding, posted
from handtools.text.urls import Url


def _ask(query: Query, base: Url, key: str) -> Wish:
    fields = {"query": query.text, "numResults": query.most, "contents": {"highlights": True}}
    return posted(base, "/search", {"x-api-key": key}, fields)


def _read(data: bytes) -> list[Finding]:
    return [
        finding(_flat(each), excerpt="excerpt", published="publishedDate")
        for each in json.loads(data)["results"]
    ]


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    passages = entry.get("highlights") or [entry.get("summary") or entry.get("text") or ""]
    return {**entry, "excerpt": " … ".join(passages)}


EXA = Adapter(name="exa", variable="EXA_API_KEY", home="https://api.exa.ai", ask=_ask, read=_read)
