"""What search engines answer: hits, or one of the errors that count as a broken answer."""

import json

from handtools.host.web import search_engines
from tests.fuzz.drawn_values import DrawnValues

ENGINES = [each for each in vars(search_engines).values() if isinstance(each, search_engines.EngineAdapter)]
WORDS = ["results", "web", "type", "search", "title", "url", "description", "content", "data", "t", "snippet", "age",
         "https://a.example/x", "text", "highlights", "publishedDate", "published", "score"]  # fmt: skip
PAGE = (
    '<div class="result results_links"><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example">T'
    '</a><a class="result__snippet">S</a></div>'
)
HIT = {"title": "T", "url": "https://a.example", "description": "d", "content": "c", "t": 0}
SEEDS = [b"\x00" + bytes([number]) + json.dumps(
    {"type": "search", "web": {"results": [HIT]}, "results": [HIT], "data": [HIT]}).encode() for number in range(6)
] + [b"\x00" + bytes([number]) + PAGE.encode() for number in range(6)]  # fmt: skip
PARSERS = ["handtools.host.web.search_engines", "handtools.text.web"]
FOUND: dict[str, bytes] = {}
BROKEN = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What the caller takes for an answer that is none (`host/web/search_engines.py`)."""


def fuzz(data):
    drawn = DrawnValues(data)
    made, engine = drawn.below(2), drawn.pick(ENGINES)
    body = json.dumps({key: drawn.json(WORDS) for key in ("results", "web", "data", "type")}).encode()
    try:
        hits = engine.read(body if made else drawn.rest())
    except BROKEN:
        return
    for hit in hits:
        assert isinstance(hit.url, str)
        assert "\n" not in hit.title + hit.excerpt
