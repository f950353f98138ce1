"""Guarded web: what a tool holds instead of the machine's web."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from handtools.core.call import Call
from handtools.core.errors import Denied, InvalidInput, NotFound, Throttled, ToolError, Unreachable
from handtools.core.events import Event, Visited
from handtools.core.visits import Visit
from handtools.core.web import NO_ENGINE, Answer, Findings, Form, HostWeb, Page, Query, Request
from handtools.runtime.approval import Gate
from handtools.text.addresses import literal, refusal
from handtools.text.hosts import WEB_PORTS
from handtools.text.robots import allows
from handtools.text.urls import BadUrl, Url, read_url

MOST_HOPS = 10
ROBOT = "handtools"
"""The name by which robots.txt may speak about us."""
_TOLD_CHARS = 300
_ELSEWHERE = "Try another page, or another source."


@dataclass(slots=True)
class GuardedWeb:
    """One per call: every host is judged before it is looked up, also those that a server sends us on to."""

    call: Call
    web: HostWeb
    gate: Gate
    announce: Callable[[Event], None]

    async def fetch(self, url: str, form: Form, *, kept: bool = False) -> Page:
        """Ask, visit, follow; what comes back is the page at the end."""
        place, hops = _read(url), list[str]()
        while True:
            if self._unattended:
                await self._heed_robots(place)
            answer = await self._visit(Request(url=place, form=form, kept=kept))
            if not answer.location:
                break
            hops.append(str(place))
            place = _onward(place, answer.location, hops)
        _check(answer)
        return Page(
            url=str(place),
            media_type=answer.media_type,
            rendered=await self.web.render(answer, form),
            data=answer.data,
            hops=tuple(hops),
            kept=answer.kept,
        )

    async def search(self, query: Query) -> Findings:
        """Ask for the engine's host like for any other, and show what would be sent there."""
        engine = self.web.engine
        if engine is None:
            raise NotFound("No search engine is set up here.", hint=NO_ENGINE)
        visit = Visit(
            host=engine.url.host,
            port=engine.url.port,
            url=str(engine.url),
            purpose=f"to search with {engine.name} for: {query.text}",
        )
        await self._admit(visit)
        try:
            found = await self.web.search(query, opens=self._opens)
        except ToolError as failure:
            self.announce(Visited(self.call.id, replace(visit, refused=failure.message)))
            raise
        self.announce(Visited(self.call.id, visit))
        return found

    async def _visit(self, request: Request) -> Answer:
        url = request.url
        visit = Visit(host=url.host, port=url.port, url=str(url))
        await self._admit(visit)
        try:
            answer = await self.web.visit(request, opens=self._opens)
        except ToolError as failure:
            self.announce(Visited(self.call.id, replace(visit, refused=failure.message)))
            raise
        gone = replace(visit, addresses=answer.addresses, received_bytes=answer.received_bytes)
        self.announce(Visited(self.call.id, gone))
        return answer

    async def _admit(self, visit: Visit) -> None:
        """By what the address says: nothing is looked up for a host that nobody has said yes to."""
        try:
            self._check_place(visit)
        except Denied as no:
            self.announce(Visited(self.call.id, replace(visit, refused=no.message)))
            raise
        await self.gate.admit(visit)

    def _check_place(self, visit: Visit) -> None:
        if self._opens(visit.host, visit.port):
            return
        address = literal(visit.host)
        reason = refusal(address) if address is not None else ""
        if visit.port not in WEB_PORTS:
            reason = reason or f"Port {visit.port} of {visit.host} is not one of the web."
        if reason:
            raise Denied(reason, hint=f"A person can list `{visit.place}` in the policy's hosts.")

    def _opens(self, host: str, port: int) -> bool:
        return self.gate.policy.opens(host, port, self.call.tool)

    @property
    def _unattended(self) -> bool:
        """Whether nobody asked for this and nobody is asked about it: then sites may say how they want it."""
        return self.gate.approver is None and self.gate.policy.unattended == "allow"

    async def _heed_robots(self, place: Url) -> None:
        if place.rest == "/robots.txt":
            return
        answer = await self._visit(Request(url=place.at("/robots.txt"), form="text"))
        rules = answer.data.decode("utf-8", "replace") if answer.status == 200 else ""
        if answer.status >= 500 or not allows(rules, ROBOT, place.rest):
            hint = "A person may fetch it, or allow it by being asked."
            raise Denied(f"{place.host} does not want programs at this address (robots.txt).", hint=hint)


def _read(text: str) -> Url:
    try:
        return read_url(text)
    except BadUrl as problem:
        hint = "Give an address like https://host/path."
        raise InvalidInput(f"This URL can't be visited. {problem}", hint=hint) from None


def _onward(place: Url, location: str, hops: list[str]) -> Url:
    """Where a server sends us on to; read as strictly as what a model sends."""
    try:
        target = place.joined(location)
    except BadUrl as problem:
        message = f"{place.host} sends us on to what can't be visited. {problem}"
        raise Denied(message, hint=_ELSEWHERE) from None
    if str(target) in hops:
        message = f"{place.host} sends us round in a circle: {str(target)[:_TOLD_CHARS]} again."
        raise Unreachable(message, hint=_ELSEWHERE)
    if len(hops) > MOST_HOPS:
        message = f"It sends us on and on: {MOST_HOPS} addresses, and none is the last."
        raise Unreachable(message, hint=_ELSEWHERE)
    return target


def _check(answer: Answer) -> None:
    """A page, or why there is none."""
    url = str(answer.url)[:_TOLD_CHARS]
    if answer.status == 429 or (answer.status == 503 and answer.retry_after is not None):
        when = "later" if answer.retry_after is None else f"in {answer.retry_after:.0f} s"
        raise Throttled(
            f"{answer.url.host} answers {answer.status}: it wants us to wait.", hint=f"Try {when}."
        )
    if answer.status in {404, 410}:
        hint = "Check the address, or try another source."
        raise NotFound(f"{url} answers {answer.status}: there is no such page.", hint=hint)
    if answer.status >= 300 or answer.status < 200:
        raise Unreachable(f"{url} answers {answer.status}.", hint=_ELSEWHERE)
