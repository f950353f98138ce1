"""Choosing an engine: by what a person has put into the environment."""

import re
from collections.abc import Mapping

from handtools.core.errors import HostError
from handtools.host.web.engines.adapting import Adapter, SetUp
from handtools.host.web.engines.brave import BRAVE
from handtools.host.web.engines.duckduckgo import DUCKDUCKGO
from handtools.host.web.engines.exa import EXA
from handtools.host.web.engines.kagi import KAGI
from handtools.host.web.engines.searxng import SEARXNG
from handtools.host.web.engines.tavily import TAVILY
from handtools.text.urls import BadUrl, Url, read_url

ENGINES: tuple[Adapter, ...] = (BRAVE, TAVILY, EXA, KAGI, SEARXNG, DUCKDUCKGO)
"""Where several are set up, the first."""
CHOICE = "HANDTOOLS_SEARCH"
"""Names the engine; the one way to have one that needs no key."""
ADDRESS = "HANDTOOLS_SEARCH_URL"
"""Another address for the engine that `HANDTOOLS_SEARCH` names."""

_KEY = re.compile(r"[\x21-\x7e]+")


def chosen(environment: Mapping[str, str]) -> SetUp | None:
    """The engine that is set up; None when none is."""
    choice = environment.get(CHOICE, "").strip().lower()
    for adapter in ENGINES:
        given = environment.get(adapter.variable, "").strip() if adapter.variable else ""
        if choice == adapter.name or (not choice and given):
            return _set_up(adapter, given, environment.get(ADDRESS, "").strip() if choice else "")
    if choice:
        names = ", ".join(adapter.name for adapter in ENGINES)
        raise HostError(f"{CHOICE} names no engine that we know: {names}.")
    return None


def _set_up(adapter: Adapter, given: str, address: str) -> SetUp | None:
    keyed = bool(adapter.variable and adapter.home)
    home = address or adapter.home or given
    if not home or (keyed and not given):
        return None
    # Checked here, where it can't be in the message: a library would quote the header that it can't send.
    if keyed and not _KEY.fullmatch(given):
        raise HostError(f"{adapter.variable} holds characters that no key has.")
    return SetUp(adapter=adapter, url=_read(home), key=given if keyed else "")


def _read(address: str) -> Url:
    try:
        return read_url(address)
    except BadUrl as problem:
        raise HostError(f"The address of the search engine can't be used. {problem}") from problem
