"""Guarded web access: checks every host, even in redirects, before looking it up in DNS; respects robots.txt."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from handtools.core.call import Call
from handtools.core.errors import Denied, InvalidInput, NotFound, RateLimited, ToolError, Unreachable
from handtools.core.events import Event, Visited
from handtools.core.web import (
    NO_ENGINE_HINT,
    HostWeb,
    PageForm,
    Visit,
    WebPage,
    WebQuery,
    WebRequest,
    WebResponse,
    WebSearchHits,
)
from handtools.runtime.approval.gate import ApprovalGate
from handtools.text.web.host_access import WEB_PORTS, ip_address_refusal, ip_literal
from handtools.text.web.url import BadUrl, Url, parse_url

MAX_WEB_REDIRECTS = 10
ROBOTS_USER_AGENT = "handtools"
"""User agent name to look for in robots.txt."""
_TOLD_CHARS = 300
_OTHER_SOURCE_HINT = "Try another page, or another source."


@dataclass(slots=True)
class GuardedWeb:
    """The web port for one call: checks each host, even in redirects, before looking it up in DNS."""

    call: Call
    web: HostWeb
    gate: ApprovalGate
    announce: Callable[[Event], None]

    async def fetch(self, url: str, form: PageForm, *, kept: bool = False) -> WebPage:
        """Fetch a page: check the host, send the request, follow redirects; returns the final page."""
        place, hops = _url_or_error(url), list[str]()
        while True:
            if self._unattended:
                await self._heed_robots(place)
            answer = await self._visit(WebRequest(url=place, form=form, kept=kept))
            if not answer.location:
                break
            hops.append(str(place))
            place = _redirect_target(place, answer.location, hops)
        _refuse_failed_response(answer)
        return WebPage(
            url=str(place),
            media_type=answer.media_type,
            rendered=await self.web.render(answer, form),
            data=answer.data,
            hops=tuple(hops),
            kept=answer.kept,
        )

    async def search(self, query: WebQuery) -> WebSearchHits:
        """Search the web after checking the engine's host; the approval request shows the query."""
        engine = self.web.engine
        if engine is None:
            raise NotFound("No search engine is configured.", hint=NO_ENGINE_HINT)
        visit = Visit(
            host=engine.url.host,
            port=engine.url.port,
            url=str(engine.url),
            purpose=f"to search with {engine.name} for: {query.text}",
        )
        await self._admit(visit)
        try:
            found = await self.web.search(query, opens=self._is_listed_host)
        except ToolError as failure:
            self.announce(Visited(self.call.id, replace(visit, refused=failure.message)))
            raise
        self.announce(Visited(self.call.id, visit))
        return found

    async def _visit(self, request: WebRequest) -> WebResponse:
        url = request.url
        visit = Visit(host=url.host, port=url.port, url=str(url))
        await self._admit(visit)
        try:
            answer = await self.web.fetch_response(request, opens=self._is_listed_host)
        except ToolError as failure:
            self.announce(Visited(self.call.id, replace(visit, refused=failure.message)))
            raise
        gone = replace(visit, addresses=answer.addresses, received_bytes=answer.received_bytes)
        self.announce(Visited(self.call.id, gone))
        return answer

    async def _admit(self, visit: Visit) -> None:
        """Check a visit by its URL, before any DNS lookup."""
        try:
            self._check_place(visit)
        except Denied as no:
            self.announce(Visited(self.call.id, replace(visit, refused=no.message)))
            raise
        await self.gate.admit(visit)

    def _check_place(self, visit: Visit) -> None:
        if self._is_listed_host(visit.host, visit.port):
            return
        address = ip_literal(visit.host)
        reason = ip_address_refusal(address) if address is not None else ""
        if visit.port not in WEB_PORTS:
            reason = reason or f"Port {visit.port} of {visit.host} is not a web port."
        if reason:
            raise Denied(reason, hint=f"The user can add `{visit.place}` to the policy's hosts.")

    def _is_listed_host(self, host: str, port: int) -> bool:
        return self.gate.policy.opens(host, port, self.call.tool)

    @property
    def _unattended(self) -> bool:
        """Whether the policy allows visits because there is no user to ask; robots.txt applies then."""
        return self.gate.approver is None and self.gate.policy.unattended == "allow"

    async def _heed_robots(self, url: Url) -> None:
        if url.rest == "/robots.txt":
            return
        answer = await self._visit(WebRequest(url=url.at("/robots.txt"), form="text"))
        rules = answer.data.decode("utf-8", "replace") if answer.status == 200 else ""
        if answer.status >= 500 or not robots_allow(rules, ROBOTS_USER_AGENT, url.rest):
            hint = "Ask the user to fetch it, or to run with approvals."
            raise Denied(f"robots.txt of {url.host} disallows this address for programs.", hint=hint)


def _url_or_error(text: str) -> Url:
    try:
        return parse_url(text)
    except BadUrl as problem:
        hint = "Use a URL like https://host/path."
        raise InvalidInput(f"This URL can't be visited. {problem}", hint=hint) from None


def _redirect_target(url: Url, location: str, hops: list[str]) -> Url:
    """Parse a redirect's target URL; raises a tool error for a bad one or too many redirects."""
    try:
        target = url.joined(location)
    except BadUrl as problem:
        message = f"{url.host} redirects to a URL that can't be visited. {problem}"
        raise Denied(message, hint=_OTHER_SOURCE_HINT) from None
    if str(target) in hops:
        message = f"{url.host} redirects in a loop: {str(target)[:_TOLD_CHARS]} again."
        raise Unreachable(message, hint=_OTHER_SOURCE_HINT)
    if len(hops) > MAX_WEB_REDIRECTS:
        message = f"Too many redirects: stopped after {MAX_WEB_REDIRECTS}."
        raise Unreachable(message, hint=_OTHER_SOURCE_HINT)
    return target


def _refuse_failed_response(response: WebResponse) -> None:
    """Raise a tool error if the response has an error status."""
    url = str(response.url)[:_TOLD_CHARS]
    if response.status == 429 or (response.status == 503 and response.retry_after is not None):
        when = "later" if response.retry_after is None else f"in {response.retry_after:.0f} s"
        raise RateLimited(
            f"{response.url.host} returned {response.status}: rate limited.", hint=f"Try again {when}."
        )
    if response.status in {404, 410}:
        hint = "Check the URL, or try another source."
        raise NotFound(f"{url} returned {response.status}: page not found.", hint=hint)
    if response.status >= 300 or response.status < 200:
        raise Unreachable(f"{url} returned {response.status}.", hint=_OTHER_SOURCE_HINT)


MAX_ROBOTS_CHARS = 500_000
_ROBOTS_LINE = re.compile(r"[ \t]*([A-Za-z-]+)[ \t]*:[ \t]*([^#\r\n]*)")


def robots_allow(text: str, agent: str, path: str) -> bool:
    """Whether robots.txt allows an agent to fetch a path; the longest matching rule wins, and on a tie `allow`."""
    rules = [
        (len(rule), allowed)
        for rule, allowed in _robots_rules(text, agent)
        if _robots_rule_matches(rule, path)
    ]
    return max(rules, default=(0, True))[1]


def _robots_rules(text: str, agent: str) -> list[tuple[str, bool]]:
    """Return the rules of all groups that name the agent; if none does, the rules of the groups for `*`."""
    groups = list(_robots_groups(text[:MAX_ROBOTS_CHARS]))
    ours = [rule for names, rules in groups if agent.lower() in names for rule in rules]
    named = any(agent.lower() in names for names, _ in groups)
    return ours if named else [rule for names, rules in groups if "*" in names for rule in rules]


def _robots_groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, bool]]]]:
    names, rules, naming = set[str](), list[tuple[str, bool]](), False
    for line in text.splitlines():
        found = _ROBOTS_LINE.match(line)
        if found is None:
            continue
        field, value = found[1].lower(), found[2].strip()
        if field == "user-agent":
            if not naming:
                yield names, rules
                names, rules = set(), []
            names.add(value.lower().partition("/")[0])
            naming = True
        elif field in {"allow", "disallow"}:
            naming = False
            if value:
                rules.append((value, field == "allow"))
    yield names, rules


def _robots_rule_matches(rule: str, path: str) -> bool:
    """Whether a path matches a rule: by prefix, with `*` for anything and `$` for the end.

    Each star takes time linear in the length of the path.
    """
    ends = rule.endswith("$")
    first, *others = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    last = others.pop() if ends and others else None
    for part in others:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if last is not None:
        return path.endswith(last) and len(path) - len(last) >= at
    return not ends or at == len(path)
