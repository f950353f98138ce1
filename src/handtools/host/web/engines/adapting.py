"""Adapting: what an engine is to us: a way to ask, and a way to read what it answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from handtools.core.errors import Throttled, Unreachable
from handtools.core.web import Finding, Findings, Query
from handtools.text.clipping import one_line
from handtools.text.urls import Url

TITLE_CHARS, EXCERPT_CHARS, URL_CHARS = 300, 500, 2_000
MOST_WAIT = 86_400.0


_LATER = "Try later, or tell the person."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A search as it is sent."""

    url: Url
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Here is the key: it is shown nowhere."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One engine."""

    name: str
    variable: str = ""
    """The environment variable that sets it up: its key, or its address where it has no key."""
    home: str = ""
    """Its address; empty where each person has their own."""
    ask: Callable[[Query, Url, str], Wish]
    read: Callable[[bytes], Sequence[Finding]]
    """Fails as Python does where the answer is not what the engine's manual says."""
    busy: frozenset[int] = frozenset({429})
    """Answers that mean "not now"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """An engine with its address and key."""

    adapter: Adapter
    url: Url
    key: str = field(default="", repr=False)

    def findings(self, status: int, retry_after: float | None, data: bytes, query: Query) -> Findings:
        """What an answer says; "not now" is not "nothing"."""
        name = self.adapter.name
        if status in self.adapter.busy:
            when = "Try later." if retry_after is None else f"Try in {min(retry_after, MOST_WAIT):.0f} s."
            raise Throttled(f"{name} does not answer any more questions now ({status}).", hint=when)
        if status in {401, 403}:
            hint = f"A person should look at {self.adapter.variable or 'its settings'}."
            raise Unreachable(f"{name} does not let us search ({status}).", hint=hint)
        if status != 200:
            raise Unreachable(f"{name} answers {status} instead of results.", hint=_LATER)
        try:
            found = self.adapter.read(data)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise Unreachable(f"{name} answers with something else than results.", hint=_LATER) from error
        whole = [each for each in found if _is_address(each.url)]
        return Findings(engine=name, findings=tuple(whole[: query.most]))


def _is_address(url: str) -> bool:
    """Whether an address is one: no line of its own making can come after it."""
    return (
        url.startswith(("http://", "https://"))
        and url.isprintable()
        and " " not in url
        and len(url) <= URL_CHARS
    )


def asked(base: Url, path: str, **fields: object) -> Url:
    """A question in the address."""
    return base.at(f"{base.rest.rstrip('/')}{path}?{urlencode(fields)}")


def posted(base: Url, path: str, headers: Mapping[str, str], fields: Mapping[str, object]) -> Wish:
    """A question as JSON."""
    body = json.dumps(fields).encode()
    url = base.at(f"{base.rest.rstrip('/')}{path}")
    return Wish(url=url, headers={"Content-Type": "application/json", **headers}, body=body)


def finding(entry: Mapping[str, Any], *, excerpt: str, published: str = "") -> Finding:
    """A result from the fields that all engines call the same."""
    return Finding(
        title=_line(entry.get("title")),
        url=str(entry["url"]),
        excerpt=_line(entry.get(excerpt), EXCERPT_CHARS),
        published=_line(entry.get(published)),
    )


def _line(value: object, max_chars: int = TITLE_CHARS) -> str:
    return one_line(value, max_chars) if isinstance(value, str) else ""
