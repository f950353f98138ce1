"""Kagi."""

import json

from handtools.core.web import Finding, Query
from handtools.host.web.engines.adapting import Adapter, Wish, asked, finding
from handtools.text.urls import Url

_RESULT = 0
"""The kind of an entry that is a result; others are related searches."""


def _ask(query: Query, base: Url, key: str) -> Wish:
    url = asked(base, "/api/v0/search", q=query.text, limit=query.most)
    return Wish(url=url, headers={"Authorization": f"Bot {key}"})


def _read(data: bytes) -> list[Finding]:
    entries = [each for each in json.loads(data)["data"] if each.get("t") == _RESULT]
    return [finding(each, excerpt="snippet", published="published") for each in entries]


KAGI = Adapter(name="kagi", variable="KAGI_API_KEY", home="https://kagi.com", ask=_ask, read=_read)
