"""The Textual application of `handtools watch`: a timeline of calls, details of one, and approval dialogs.

All reads and actions run in threads, so that the UI stays responsive.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal, TypeVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Input, Static

from handtools.cli.watch_screen.dialogs import ApprovalDialog, ConfirmDialog, SessionDialog
from handtools.cli.watch_screen.text_pane import PaneLine, TextPane, call_lines
from handtools.cli.watch_screen.timeline import PAGE_ROWS, Timeline, header_text
from handtools.core.approval import Reply
from handtools.core.errors import HandtoolsError
from handtools.record.session_feed import (
    AnswerOutcome,
    FeedCursor,
    FeedNews,
    PendingApproval,
    SessionFeed,
    ShownCall,
)
from handtools.text.visible_text import visible_line

T = TypeVar("T")
POLL_SECONDS = 0.25
SIDE_BY_SIDE_COLUMNS = 120
"""Minimum width to show the details next to the timeline instead of below it."""
TITLE_CHARS = 100


class TimelineColumn(Vertical):
    """A timeline with its column headers."""

    def __init__(self, session: str | None) -> None:
        super().__init__(classes="list")
        self.timeline = Timeline(session)
        self._head = Static(classes="head", markup=False)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.timeline

    def write_head(self) -> None:
        """Update the headers for the current width, with the session's name."""
        session = self.timeline.session
        name = "" if session is None else f" in session {visible_line(session, 40)}"
        self._head.update(header_text(self.timeline.size.width, f"WHAT{name}"))


class WatchApp(App[None]):
    """Shows agents' calls in a folder live, and lets the user answer, cancel and undo them."""

    CSS = """
    #main { layout: vertical; }
    #main.wide { layout: horizontal; }
    #lists { height: 2fr; }
    #main.wide #lists { height: 1fr; width: 3fr; }
    .list { width: 1fr; padding-right: 1; }
    .head { height: 1; text-style: bold; color: $text-muted; }
    #details { height: 3fr; border-top: solid $primary; }
    #main.wide #details { height: 1fr; width: 2fr; border-top: none; border-left: solid $primary; }
    #details:focus { border-top: heavy $accent; }
    #main.wide #details:focus { border-top: none; border-left: heavy $accent; }
    TextPane, Timeline { overflow-x: hidden; scrollbar-size-vertical: 1; }
    #status { height: 1; padding: 0 1; background: $panel; }
    #status.asked { background: $warning; color: $text; text-style: bold; }
    #search { display: none; border: none; height: 1; padding: 0 1; }
    #search.shown { display: block; }
    ModalScreen { align: center middle; }
    #dialog { width: 96%; height: 90%; border: round $warning; padding: 0 1; background: $surface; }
    #question { height: 1fr; }
    #who-runs { height: auto; color: $text-muted; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer", "Answer"),
        Binding("u", "revert('undo')", "Undo"),
        Binding("r", "revert('redo')", "Redo"),
        Binding("x", "cancel", "Cancel"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("s", "session", "Session"),
        Binding("v", "split", "Split"),
        Binding("tab", "focus_next", "Pane", show=False),
        Binding("escape", "clear_search", "All", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, feed: SessionFeed, *, session: str | None = None) -> None:
        super().__init__()
        self.feed = feed
        self.first_session = session
        self.pending: tuple[PendingApproval, ...] = ()
        self._news = FeedNews(FeedCursor())
        self._shown: ShownCall | None = None
        self._wanted: tuple[ShownCall, bool] | None = None
        """The call whose details to show next, and whether it is already shown."""
        self._busy = ""
        self._failure = ""
        self._used: Timeline | None = None
        # Keep references: while a dialog is open, queries search only the dialog's screen.
        self._search_line = Input(
            placeholder="Search: tool, argument, path, status …", id="search", compact=True
        )
        self._details = TextPane(id="details")
        self._status = Static(id="status", markup=False)
        self._main = Vertical(id="main")
        self._lists = Horizontal(id="lists")
        self._columns = [TimelineColumn(session)]

    def compose(self) -> ComposeResult:
        yield self._search_line
        with self._main:
            with self._lists:
                yield from self._columns
            yield self._details
        yield self._status
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        """Show the first page, then poll for new calls."""
        self.title = f"handtools watch {self.feed.root}"
        self._update_layout()
        timeline = self._columns[0].timeline
        timeline.focus()
        self._news = FeedNews(await self._run_in_thread(self.feed.current_cursor) or FeedCursor())
        await self._show_newest(timeline)
        await self._refresh_from_feed(force=True)
        self.run_worker(self._poll_feed(), name="follow")

    def on_resize(self) -> None:
        """Put the details next to or below the timeline."""
        self._update_layout()

    def _update_layout(self) -> None:
        self._main.set_class(self.size.width >= SIDE_BY_SIDE_COLUMNS, "wide")
        self.call_after_refresh(self._update_all_headers)

    def _update_all_headers(self) -> None:
        for column in self._columns:
            column.write_head()
        self._update_status_line()

    async def _poll_feed(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            # Checked here, without a thread: most of the time nothing happens.
            if self._news.running_calls or not self.feed.is_quiet():
                await self._refresh_from_feed()

    async def _refresh_from_feed(self, *, force: bool = False) -> None:
        news = await self._run_in_thread(partial(self._news_if_changed, force))
        if news is not None and (force or news != self._news):
            await self._apply_news(news)

    def _news_if_changed(self, force: bool) -> FeedNews | None:
        attended = self.feed.record_user_watching()
        changed = self.feed.is_journal_changed()
        # A call whose process died, or stopped waiting for a reply, is noticed by the time that passes.
        aged = self._news.running_calls or (self._news.cursor.unsettled and attended)
        return self.feed.news_since(self._news.cursor) if changed or force or aged else None

    async def _apply_news(self, news: FeedNews) -> None:
        self._news = news
        known = {asked.approval.fingerprint for asked in self.pending}
        if any(asked.approval.fingerprint not in known for asked in news.pending):
            self.bell()
        self.pending = news.pending
        for timeline in self.query(Timeline):
            if (timeline.matching and news.calls) or (news.is_cut and timeline.is_live):
                await self._show_newest(timeline)
            else:
                timeline.update_calls(news.calls, news.running_calls if not timeline.matching else ())
        self._close_answered_dialog()
        self._update_status_line()
        if self._shown is not None and self._shown.id in {
            call.id for call in (*news.running_calls, *news.calls)
        }:
            self._load_details(self._shown, again=True)

    def _close_answered_dialog(self) -> None:
        """Close the open approval dialog if its request was answered elsewhere."""
        screen = self.screen
        if isinstance(screen, ApprovalDialog):
            waiting = {asked.approval.fingerprint for asked in self.pending}
            if screen.pending.approval.fingerprint not in waiting:
                screen.dismiss(None)
                self._notify_user("The request was answered elsewhere or withdrawn.", "warning")

    def _update_status_line(self) -> None:
        status = self._status
        status.set_class(bool(self.pending), "asked")
        if self.pending:
            many = "1 call needs" if len(self.pending) == 1 else f"{len(self.pending)} calls need"
            title = visible_line(self.pending[0].approval.title, TITLE_CHARS)
            status.update(f"? {many} your approval; press a to answer · {title}")
            return
        timeline = self._focused_timeline()
        where = (
            "all sessions" if timeline.session is None else f"session {visible_line(timeline.session, 40)}"
        )
        found = (
            f" · only “{visible_line(timeline.matching, 40)}”, Esc shows all" if timeline.matching else ""
        )
        runs = f" · {len(timeline.running)} running" if timeline.running else ""
        status.update(self._busy or f"{where}{found}{runs} · no approval requests")

    def _focused_timeline(self) -> Timeline:
        """The timeline that has focus, or had it last."""
        focused = self.screen_stack[0].focused
        if isinstance(focused, Timeline):
            self._used = focused
        timelines = [column.timeline for column in self._columns]
        return self._used if self._used in timelines else timelines[0]

    async def _show_newest(self, timeline: Timeline) -> None:
        read = partial(
            self.feed.recorded_calls_page,
            session=timeline.session,
            matching=timeline.matching,
            limit=PAGE_ROWS,
        )
        if (page := await self._run_in_thread(read)) is not None:
            timeline.show_newest(page)

    @work(exclusive=True, group="older")
    async def on_timeline_older_wanted(self, message: Timeline.OlderWanted) -> None:
        """Load the next page of a timeline."""
        timeline = message.timeline
        if timeline.recorded and not timeline.is_complete:
            read = partial(
                self.feed.recorded_calls_page,
                session=timeline.session,
                matching=timeline.matching,
                before=timeline.recorded[-1].seq,
                limit=PAGE_ROWS,
            )
            if (page := await self._run_in_thread(read)) is not None:
                timeline.add_older(page)

    async def on_timeline_newest_wanted(self, message: Timeline.NewestWanted) -> None:
        """Return a timeline to the newest calls."""
        if not message.timeline.is_live:
            await self._show_newest(message.timeline)

    def on_timeline_highlighted(self, message: Timeline.Highlighted) -> None:
        """Show the call under the cursor."""
        if message.timeline is self._focused_timeline() and message.call is not None:
            self._load_details(
                message.call, again=self._shown is not None and self._shown.id == message.call.id
            )

    def on_descendant_focus(self) -> None:
        """Show the selected call of the timeline that has focus now."""
        call = self._focused_timeline().selected
        if call is not None and (self._shown is None or call.id != self._shown.id):
            self._load_details(call, again=False)

    def _load_details(self, call: ShownCall, *, again: bool) -> None:
        """Show or refresh a call's details once the previous load has finished."""
        self._shown = call
        is_loading = self._wanted is not None
        self._wanted = call, again and (self._wanted is None or self._wanted[1])
        if not is_loading:
            self.run_worker(self._load_wanted_details(), group="details")

    async def _load_wanted_details(self) -> None:
        while (wanted := self._wanted) is not None:
            call, again = wanted
            lines = await self._run_in_thread(partial(_lines_of_call, self.feed, call.id)) or []
            if again:
                self._details.update_lines(lines)
            else:
                self._details.show(lines, at_end=call.state == "running")
            if self._wanted is wanted:
                self._wanted = None

    def action_answer(self) -> None:
        """Open the approval dialog for the selected call, or for the oldest request."""
        if not self.pending:
            self._notify_user("No calls are waiting for approval.")
            return
        selected = self._focused_timeline().selected
        asked = next(
            (each for each in self.pending if selected and each.approval.call_id == selected.id),
            self.pending[0],
        )
        self.push_screen(ApprovalDialog(asked, len(self.pending) - 1), partial(self._handle_reply, asked))

    def _handle_reply(self, pending: PendingApproval, reply: Reply | None) -> None:
        if reply is not None:
            self._send_answer(pending.approval.call_id, reply)

    @work(group="acts")
    async def _send_answer(self, call_id: str, reply: Reply) -> None:
        outcome = await self._run_with_status(
            "Running the call …", partial(self.feed.answer_pending_call, call_id, reply)
        )
        if outcome is not None:
            self._notify_user(answer_text(outcome), "warning" if outcome.by == "another" else "information")

    @work(group="acts")
    async def action_revert(self, action: Literal["undo", "redo"]) -> None:
        """Undo or redo the selected call, after showing what that would do."""
        call = self._focused_timeline().selected
        if call is None or not call.changed_count:
            self._notify_user("This call made no changes to undo.")
            return
        revert = partial(self.feed.undo_or_redo_call, action, call.id)
        planned = await self._run_with_status("Checking what it would do …", partial(revert, dry_run=True))
        if planned is None:
            return
        if not planned.restored:
            self._notify_user(planned.text, "warning")
            return
        if await self.push_screen_wait(
            ConfirmDialog(f"{action.capitalize()} this {call.tool}?", planned.text)
        ):
            done = await self._run_with_status(f"{action} …", partial(revert, dry_run=False))
            if done is not None:
                self._notify_user(done.text, "information" if done.ok else "warning")

    @work(group="acts")
    async def action_cancel(self) -> None:
        """Cancel the selected call if it is running."""
        call = self._focused_timeline().selected
        if call is None or call.state != "running":
            self._notify_user("Only running calls can be cancelled.")
            return
        text = f"{call.tool} {call.subject}\n\nThe call is stopped, and the agent is told not to repeat it."
        if await self.push_screen_wait(ConfirmDialog("Cancel this call?", text)):
            asked = await self._run_with_status("Cancelling …", partial(self.feed.request_cancel, call.id))
            if asked is False:
                self._notify_user("The call has already ended.")

    async def _run_with_status(self, busy: str, act: Callable[[], T]) -> T | None:
        """Run an action in a thread with a status message, then refresh."""
        self._busy = busy
        self._update_status_line()
        done = await self._run_in_thread(act)
        self._busy = ""
        await self._refresh_from_feed(force=True)
        return done

    async def _run_in_thread(self, read: Callable[[], T]) -> T | None:
        """Run a function in a thread; on an error, show it and return None."""
        try:
            done = await asyncio.to_thread(read)
        except HandtoolsError as failure:
            # Every poll may fail the same way; show the error once.
            if str(failure) != self._failure:
                self._failure = str(failure)
                self._notify_user(str(failure), "error")
            return None
        self._failure = ""
        return done

    def action_search(self) -> None:
        self._search_line.add_class("shown")
        self._search_line.focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Show only the calls that match."""
        if event.input is self._search_line:
            await self._show_matching_calls(event.value.strip())

    async def action_clear_search(self) -> None:
        """Show all calls again."""
        self._search_line.value = ""
        await self._show_matching_calls("")

    async def _show_matching_calls(self, text: str) -> None:
        self._search_line.set_class(bool(text), "shown")
        timeline = self._focused_timeline()
        timeline.matching = text
        timeline.focus()
        await self._show_newest(timeline)
        await self._refresh_from_feed(force=True)

    @work(group="acts")
    async def action_session(self) -> None:
        """Let the user choose the session of the timeline that has focus."""
        timeline = self._focused_timeline()
        names = await self._run_in_thread(self.feed.sessions) or []
        chosen = await self.push_screen_wait(SessionDialog(names))
        if chosen is not None:
            await self._show_session(timeline, chosen or None)

    async def _show_session(self, timeline: Timeline, session: str | None) -> None:
        timeline.session = session
        await self._show_newest(timeline)
        await self._refresh_from_feed(force=True)
        self._update_all_headers()

    @work(group="acts")
    async def action_split(self) -> None:
        """Toggle between one timeline and two sessions side by side."""
        first = self._columns[0].timeline
        if len(self._columns) > 1:
            first.focus()
            await self._columns.pop().remove()
        else:
            names = await self._run_in_thread(self.feed.sessions) or []
            if first.session is None and names:
                await self._show_session(first, names[0])
            second_column = TimelineColumn(next((name for name in names if name != first.session), None))
            self._columns.append(second_column)
            await self._lists.mount(second_column)
            await self._show_newest(second_column.timeline)
        self.call_after_refresh(self._update_all_headers)

    def _notify_user(
        self, text: str, severity: Literal["information", "warning", "error"] = "information"
    ) -> None:
        shown = "\n".join(visible_line(line, TITLE_CHARS) for line in text.split("\n")[:8])
        self.notify(shown, severity=severity, markup=False)


def _lines_of_call(feed: SessionFeed, call_id: str) -> list[PaneLine]:
    details = feed.call_details(call_id)
    return list(call_lines(details)) if details else []


def answer_text(outcome: AnswerOutcome) -> str:
    """Return the message to show the user after an answer."""
    word = "approved" if outcome.reply.allow else "denied"
    if outcome.by == "another":
        return f"The call was already {word} elsewhere."
    if outcome.by == "agent":
        return f"You {word} the call; the agent continues."
    return f"You {word} the call.\n{outcome.text}"
