"""The HTTP server of `handtools view`: a live page of calls for one browser, with approvals and undo."""

import hmac
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs, urlencode

import anyio
from anyio import to_thread

from handtools.cli.html_live_view import (
    LiveCall,
    content_policy,
    live_call_item,
    live_question_item,
    live_view_page,
    outcome_page,
)
from handtools.cli.html_report import ReportedCall
from handtools.cli.log import format_log_time
from handtools.cli.open_workspace import WorkspaceJournal
from handtools.cli.report import argument_lines, reported_call
from handtools.core.approval import RememberScope, Reply
from handtools.core.errors import HandtoolsError
from handtools.host.loopback_peers import is_peer_of_other_user
from handtools.mcp.asgi_responses import (
    PING_EVENT,
    PING_SECONDS,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    HttpRefusal,
    encode_headers,
    send_body_chunk,
    send_response,
    start_event_stream,
    wait_for_disconnect,
)
from handtools.mcp.http_access import (
    REQUEST_BODY_SECONDS,
    check_host_and_origin,
    new_token,
    read_body,
    single_headers,
    token_digest,
)
from handtools.record.session_feed import AnswerOutcome, FeedCursor, SessionFeed, ShownCall

if TYPE_CHECKING:
    from handtools.runtime.journal import LoggedCall

CALLS_PER_PAGE = 200
VIEW_POLL_SECONDS = 0.5
HTML_CONTENT_TYPE = "text/html; charset=utf-8"
TEXT_CONTENT_TYPE = "text/plain; charset=utf-8"
FORM_CONTENT_TYPE = "application/x-www-form-urlencoded"
TOKEN_IS_USED = "This link was already used, or is not for this server. Run `handtools view` for a new one."  # noqa: S105
OTHER_USER = (
    "Connection refused: it is not from the user who runs `handtools view`. Use that user's browser."
)
OUTCOME_CHARS = 600

FormFields = Mapping[str, str]


@dataclass
class ViewServer:
    """ASGI application that shows a workspace's calls to one user and accepts their answers.

    The one-time token is exchanged for a cookie, which every other request needs. Other users of this
    machine are refused even with the token or cookie.
    """

    feed: SessionFeed
    journal: WorkspaceJournal
    title: str
    host: str
    """Address and port that the server listens on; requests with another Host header are refused."""
    token: str
    session: str | None = None
    stopping: bool = False
    _cookie: str = field(default_factory=new_token)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle one ASGI request; a refusal is sent as a page with the reason."""
        if scope["type"] != "http":
            return
        try:
            await self._handle_request(scope, receive, send)
        except HttpRefusal as refusal:
            await self._send_page(send, refusal.status, outcome_page(refusal.reason))

    @property
    def cookie_name(self) -> str:
        """The cookie's name; it includes the port, because all ports of an address share cookies."""
        return f"handtools-view-{self.host.rpartition(':')[2]}"

    async def _handle_request(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if await to_thread.run_sync(is_peer_of_other_user, scope["client"], scope["server"]):
            raise HttpRefusal(403, OTHER_USER)
        headers = single_headers(scope)
        check_host_and_origin(headers, {self.host})
        query = _parse_form_fields(scope["query_string"])
        method, path = scope["method"], scope["path"]
        if method == "GET" and path == "/" and "token" in query:
            await self._exchange_token(query["token"], headers, send)
            return
        # Browsers send the cookie to every port of the address; refuse requests from pages on other ports.
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            raise HttpRefusal(403, "Only this server's own page may send requests.")
        if not self.has_cookie(headers):
            raise HttpRefusal(401, TOKEN_IS_USED)
        if method == "GET" and path == "/":
            await self._send_page(send, 200, await to_thread.run_sync(self._page_html, query))
        elif method == "GET" and path == "/events":
            await self._send_events(_parse_cursor(scope["query_string"]), receive, send)
        elif method == "POST" and path in self._actions:
            await self._run_posted_action(self._actions[path], headers, receive, send)
        else:
            raise HttpRefusal(404, "Page not found.")

    async def _exchange_token(self, token: str, headers: Mapping[str, str], send: AsgiSend) -> None:
        """Exchange the one-time token for the cookie; a browser with the cookie may open the link again."""
        if not self.has_cookie(headers):
            if not self.token or not hmac.compare_digest(token_digest(token), token_digest(self.token)):
                raise HttpRefusal(401, TOKEN_IS_USED)
            self.token = ""
        cookie = f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
        # Not a redirect: if the link was opened from another page, browsers don't send SameSite=Strict
        # cookies with the redirected request.
        await self._send_page(
            send, 200, outcome_page("Welcome."), refresh="0; url=/", **{"set-cookie": cookie}
        )

    def has_cookie(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the cookie."""
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        given = [value for name, _, value in pairs if name == self.cookie_name]
        return len(given) == 1 and hmac.compare_digest(token_digest(given[0]), token_digest(self._cookie))

    async def _send_page(self, send: AsgiSend, status: int, page: str, **headers: str) -> None:
        body, own = page.encode("utf-8", "replace"), _security_headers() | headers
        await send_response(send, status, HTML_CONTENT_TYPE, body, encode_headers(own))

    def _page_html(self, query: FormFields) -> str:
        cursor = self.feed.current_cursor()
        news = self.feed.news_since(cursor)
        before = _parse_number(query.get("before", ""))
        page = self.journal.calls.page(session=self.session, before=before, limit=CALLS_PER_PAGE)
        running = [
            self._live_running_call(shown)
            for shown in news.running_calls
            if self._is_session_shown(shown.session)
        ]
        ids = {live.id for live in running}
        calls = [self._live_call(logged) for logged in page if logged.id not in ids]
        where = [
            ("seq", cursor.seq),
            ("entry", cursor.entry),
            *(("waits", each) for each in cursor.unsettled),
        ]
        return live_view_page(
            self.title,
            [*running, *calls] if before is None else calls,
            [asked for asked in news.pending if self._is_session_shown(asked.session)],
            events=f"/events?{urlencode(where)}" if before is None else "",
            older=f"/?before={page[-1].seq}" if len(page) == CALLS_PER_PAGE else "",
        )

    def _is_session_shown(self, session: str) -> bool:
        return self.session is None or session == self.session

    def _live_call(self, logged: "LoggedCall") -> LiveCall:
        call = reported_call(self.journal, logged)
        # No buttons on an undo call: to reverse it, redo the call that it undid.
        is_change = logged.tool != "undo" or "version" in logged.args
        actions = [("undo", is_change and call.undo_command), ("redo", is_change and call.undone)]
        # The page has an undo button instead of the command.
        shown = replace(call, id=logged.id, undo_command="")
        return LiveCall(logged.id, shown, tuple(action for action, possible in actions if possible))

    def _live_running_call(self, shown: ShownCall) -> LiveCall:
        details = self.feed.call_details(shown.id)
        call = ReportedCall(
            id=shown.id,
            tool=shown.tool,
            subject=shown.subject,
            at=format_log_time(shown.started),
            # Not the elapsed time: it would redraw the call on every poll.
            seconds=0.0,
            tokens=0,
            status="running",
            code="" if shown.status == "running" else shown.status,
            undone="",
            agent=shown.agent,
            arguments="\n".join(argument_lines(details.args.items())) if details else "",
            answer=details.answer if details else "",
            diff="",
            began=shown.started,
            ended=time.time(),
        )
        return LiveCall(shown.id, call, ("cancel",))

    async def _send_events(self, cursor: FeedCursor, receive: AsgiReceive, send: AsgiSend) -> None:
        """Send updates as server-sent events until the browser disconnects.

        As long as it is connected, agents wait for the user's answers.
        """
        await start_event_stream(send, encode_headers(_security_headers()))
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                await wait_for_disconnect(receive)
                group.cancel_scope.cancel()

            group.start_soon(listen)
            before, drawn, silent = "", dict[str, str](), time.monotonic()
            while not self.stopping:
                news, cursor = await to_thread.run_sync(self._updates_json_and_cursor, cursor, drawn)
                if news != before or json.loads(news)["calls"]:
                    await send_body_chunk(send, f"data: {news}\n\n".encode(), more=True)
                    before, silent = news, time.monotonic()
                elif time.monotonic() - silent > PING_SECONDS:
                    await send_body_chunk(send, PING_EVENT, more=True)
                    silent = time.monotonic()
                await anyio.sleep(VIEW_POLL_SECONDS)
            group.cancel_scope.cancel()
        await send_body_chunk(send, b"", more=False)

    def _updates_json_and_cursor(self, cursor: FeedCursor, drawn: dict[str, str]) -> tuple[str, FeedCursor]:
        """The page's updates as JSON, without unchanged calls, and the next cursor.

        `drawn` maps call ids to the HTML that was sent last, and is updated.
        """
        self.feed.record_user_watching()
        news = self.feed.news_since(cursor)
        ended = [shown.id for shown in reversed(news.calls) if self._is_session_shown(shown.session)]
        found = {each.id: each for each in self.journal.calls.listed(ended)}
        lives = [self._live_call(found[each]) for each in ended if each in found]
        lives += [
            self._live_running_call(shown)
            for shown in news.running_calls
            if self._is_session_shown(shown.session)
        ]
        calls: list[tuple[str, str]] = []
        for live in lives:
            item = live_call_item(live)
            if drawn.get(live.id) != item:
                calls.append((f"call-{live.id}", item))
            drawn[live.id] = item
        questions = {
            f"question-{asked.approval.call_id}": live_question_item(asked)
            for asked in news.pending
            if self._is_session_shown(asked.session)
        }
        return json.dumps({"calls": calls, "questions": questions, "cut": news.is_cut}), news.cursor

    @property
    def _actions(self) -> "Mapping[str, Callable[[FormFields], str]]":
        return {
            "/answer": self._answer_question,
            "/undo": lambda form: (
                self.feed.undo_or_redo_call("undo", form.get("call", ""), dry_run=False).text
            ),
            "/redo": lambda form: (
                self.feed.undo_or_redo_call("redo", form.get("call", ""), dry_run=False).text
            ),
            "/cancel": self._cancel_call,
        }

    async def _run_posted_action(
        self,
        action: "Callable[[FormFields], str]",
        headers: Mapping[str, str],
        receive: AsgiReceive,
        send: AsgiSend,
    ) -> None:
        if "origin" not in headers:
            raise HttpRefusal(403, "The Origin header is missing.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_CONTENT_TYPE:
            raise HttpRefusal(415, f"The body must be {FORM_CONTENT_TYPE}.")
        form = _parse_form_fields(await read_body(receive, headers, REQUEST_BODY_SECONDS))
        try:
            status, told = 200, await to_thread.run_sync(action, form)
        except HandtoolsError as problem:
            status, told = 409, str(problem)
        if headers.get("accept", "") == "text/plain":
            own = encode_headers(_security_headers())
            await send_response(send, status, TEXT_CONTENT_TYPE, told.encode("utf-8", "replace"), own)
        else:
            await self._send_page(send, status, outcome_page(told))

    def _answer_question(self, form: FormFields) -> str:
        answer, fingerprint = form.get("answer", ""), form.get("fingerprint", "")
        if answer not in {"once", "session", "project", "deny"} or not fingerprint:
            raise HandtoolsError("Not a valid answer.")
        remember = cast("RememberScope", "once" if answer == "deny" else answer)
        reply = Reply(
            allow=answer != "deny",
            remember=remember,
            message=form.get("message", "").strip() if answer == "deny" else "",
            fingerprint=fingerprint,
        )
        return _revert_outcome_text(self.feed.answer_pending_call(form.get("call", ""), reply))

    def _cancel_call(self, form: FormFields) -> str:
        asked = self.feed.request_cancel(form.get("call", ""))
        return "Cancelling the call." if asked else "The call is no longer running."


def _revert_outcome_text(outcome: AnswerOutcome) -> str:
    said = "allowed" if outcome.reply.allow else "denied"
    if outcome.by == "another":
        return f"The call was already {said} elsewhere."
    if outcome.by == "agent":
        return f"You {said} the call; the agent continues."
    told = outcome.text if len(outcome.text) <= OUTCOME_CHARS else f"{outcome.text[:OUTCOME_CHARS]} …"
    return f"You {said} the call. {told}"


def _parse_form_fields(text: bytes) -> FormFields:
    """Parse the fields of a query or form; if a name is repeated, its first value counts."""
    found = parse_qs(text.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def _parse_cursor(query: bytes) -> FeedCursor:
    found = parse_qs(query.decode("utf-8", "replace"))
    seq, entry = (_parse_number(found.get(name, [""])[0]) or 0 for name in ("seq", "entry"))
    return FeedCursor(seq, entry, frozenset(found.get("waits", ())))


def _parse_number(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def _security_headers() -> dict[str, str]:
    """Headers of all pages: other sites can't frame, read or include them, and get no referrer."""
    return {
        "content-security-policy": content_policy(),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        # With `no-referrer`, browsers would send `Origin: null` with our own forms.
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
