"""The timeline of `handtools watch`: calls as rows, newest first; only visible rows are drawn.

It is a window over the log: at most `MAX_ROWS` calls are in memory, however many are recorded.
"""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from handtools.record.session_feed import CallState, ShownCall
from handtools.text.visible_text import visible_line

PAGE_ROWS = 100
MAX_ROWS = 1_000
"""Maximum number of calls in memory; the farthest ones are dropped and loaded again when needed."""
ROWS_AHEAD = 30
"""How many rows before the last one the next page is loaded."""
STATE_SIGNS: dict[CallState, tuple[str, str]] = {
    "running": ("▶", "bold cyan"),
    "pending": ("?", "bold yellow"),
    "done": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "denied": ("⊘", "red"),
    "cancelled": ("■", "magenta"),
}
"""Sign and colour of each state; the signs are distinct without colour."""
_TIME_CELLS, _TOOL_CELLS, _SECONDS_CELLS, _TOKENS_CELLS, _SESSION_CELLS = 8, 10, 6, 6, 14
_WIDE, _NARROW = 100, 60
"""Minimum width to show the session, and minimum width to show time and tokens, in columns."""


class Timeline(ScrollView, can_focus=True):
    """Rows of calls with a cursor; posts messages when the cursor moves and when older calls are needed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "newest", "Newest", show=False),
        Binding("end,G", "oldest_loaded", "Older", show=False),
    ]
    cursor: reactive[int] = reactive(0)

    class Highlighted(Message):
        """The cursor moved to another call, or the call under it changed."""

        def __init__(self, timeline: "Timeline", call: ShownCall | None) -> None:
            super().__init__()
            self.timeline = timeline
            self.call = call

    class OlderWanted(Message):
        """The cursor is near the last loaded row."""

        def __init__(self, timeline: "Timeline") -> None:
            super().__init__()
            self.timeline = timeline

    class NewestWanted(Message):
        """The user wants to see the newest call."""

        def __init__(self, timeline: "Timeline") -> None:
            super().__init__()
            self.timeline = timeline

    def __init__(self, session: str | None = None, *, id: str | None = None) -> None:  # noqa: A002 - as in Textual
        super().__init__(id=id)
        self.session = session
        self.matching = ""
        self.recorded: list[ShownCall] = []
        self.running: list[ShownCall] = []
        self.is_complete = False
        """Whether the oldest recorded call is loaded."""
        self.is_live = True
        """Whether the newest call is loaded; False far down in a long log."""

    @property
    def rows(self) -> list[ShownCall]:
        """All rows: running calls, then recorded ones, newest first."""
        return [*self.running, *self.recorded]

    @property
    def selected(self) -> ShownCall | None:
        rows = self.rows
        return rows[min(self.cursor, len(rows) - 1)] if rows else None

    def show_newest(self, calls: Sequence[ShownCall]) -> None:
        """Replace all rows with a first page."""
        self._replace_calls(list(calls), live=True, complete=len(calls) < PAGE_ROWS)

    def add_older(self, calls: Sequence[ShownCall]) -> None:
        """Append a page of older calls; drop the newest ones if there are too many."""
        known = {call.id for call in self.recorded}
        rows = [*self.recorded, *(call for call in calls if call.id not in known)]
        over = max(len(rows) - MAX_ROWS, 0)
        self._replace_calls(rows[over:], live=self.is_live and not over, complete=len(calls) < PAGE_ROWS)

    def update_calls(self, calls: Sequence[ShownCall], running_calls: Sequence[ShownCall]) -> None:
        """Update calls of this timeline's session, with new ones on top."""
        mine = {call.id: call for call in calls if self.session in {None, call.session}}
        known = {call.id for call in self.recorded}
        first = self.recorded[0].seq if self.recorded else 0
        new = [call for call in mine.values() if call.id not in known and call.seq > first]
        rows = [mine.get(call.id, call) for call in self.recorded]
        if self.is_live:
            rows = sorted(new, key=lambda call: -call.seq) + rows
        now = [call for call in running_calls if self.session in {None, call.session}]
        alive = {call.id for call in now}
        rows = [call for call in rows if call.id not in alive]
        cut = rows[:MAX_ROWS] if self.is_live else rows
        complete = self.is_complete and len(cut) == len(rows)
        self._replace_calls(cut, live=self.is_live, complete=complete, running_calls=now)

    def _replace_calls(
        self,
        recorded_calls: list[ShownCall],
        *,
        live: bool,
        complete: bool,
        running_calls: list[ShownCall] | None = None,
    ) -> None:
        before, follows = self.selected, self.cursor == 0 and self.is_live
        self.recorded, self.is_live, self.is_complete = recorded_calls, live, complete
        self.running = self.running if running_calls is None else running_calls
        rows = self.rows
        self.virtual_size = Size(self.size.width, len(rows))
        place = 0
        if before is not None and not follows:
            place = next((at for at, call in enumerate(rows) if call.id == before.id), self.cursor)
        self.cursor = max(min(place, len(rows) - 1), 0)
        self.refresh()
        if self.selected != before:
            self.post_message(self.Highlighted(self, self.selected))

    def watch_cursor(self, before: int, now: int) -> None:
        """Redraw the rows that lose and get the cursor, and scroll it into view."""
        for row in (before, now):
            self.refresh(Region(0, row - self.scroll_offset.y, self.size.width, 1))
        if now < self.scroll_offset.y:
            self.scroll_to(y=now, animate=False, immediate=True)
        elif now >= self.scroll_offset.y + self.size.height:
            self.scroll_to(y=now - self.size.height + 1, animate=False, immediate=True)

    def action_move(self, rows: int) -> None:
        self._move_cursor_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self._move_cursor_to(self.cursor + pages * max(self.size.height - 1, 1))

    def action_newest(self) -> None:
        """Go to the newest call."""
        self._move_cursor_to(0)
        self.post_message(self.NewestWanted(self))

    def action_oldest_loaded(self) -> None:
        """Move the cursor to the oldest loaded call, which loads older ones."""
        self._move_cursor_to(len(self.rows) - 1)

    def _move_cursor_to(self, place: int) -> None:
        rows = self.rows
        place = max(min(place, len(rows) - 1), 0)
        if place != self.cursor:
            self.cursor = place
            self.post_message(self.Highlighted(self, self.selected))
        if place >= len(rows) - ROWS_AHEAD and not self.is_complete:
            self.post_message(self.OlderWanted(self))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row."""
        self._move_cursor_to(event.y + int(self.scroll_offset.y))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-3)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.rows))

    def render_line(self, y: int) -> Strip:
        at, width = y + int(self.scroll_offset.y), self.size.width
        rows = self.rows
        if at >= len(rows):
            said = "No calls yet. They appear here when an agent makes them." if not rows and y == 0 else ""
            return Strip([Segment(said, Style(dim=True))]).adjust_cell_length(width)
        strip = Strip(row_segments(rows[at], width)).adjust_cell_length(width)
        if at != self.cursor:
            return strip
        # Reversed, so that it is visible without colours; bold if the timeline has focus.
        return strip.apply_style(Style(reverse=True, bold=self.has_focus, dim=not self.has_focus))


def row_segments(call: ShownCall, width: int) -> list[Segment]:
    """Return a row's cells, fitted to a width: sign, time, tool, subject and changes, seconds, tokens."""
    sign, colour = STATE_SIGNS[call.state]
    clock = _TIME_CELLS + 1 if width >= _NARROW else 0
    tokens = _TOKENS_CELLS + 1 if width >= _NARROW else 0
    session = _SESSION_CELLS + 1 if width >= _WIDE else 0
    room = max(width - 2 - clock - _TOOL_CELLS - 1 - session - _SECONDS_CELLS - 1 - tokens, 8)
    undone = {"no": "", "partly": "partly undone ", "yes": "undone "}[call.undone]
    said = f"{undone}{call.changed_text}" if call.changed_count else call.subject
    if call.state not in {"done", "running"}:
        said = f"{call.status}: {said}"
    if call.state == "running" and call.output_bytes:
        said = f"{call.output_bytes:,} bytes · {said}"
    parts = [
        (f"{sign} ", colour),
        (f"{clock_text(call.started)} "[:clock], "dim"),
        (set_cell_size(visible_line(call.tool, _TOOL_CELLS), _TOOL_CELLS) + " ", "bold"),
    ]
    if session:
        parts.append(
            (set_cell_size(visible_line(call.session, _SESSION_CELLS), _SESSION_CELLS) + " ", "dim")
        )
    parts += [
        (set_cell_size(said, room), "strike" if call.undone == "yes" else ""),
        (f" {seconds_text(call.seconds):>{_SECONDS_CELLS}}", ""),
        (f" {tokens_text(call.tokens):>{_TOKENS_CELLS}}"[:tokens], "dim"),
    ]
    return [Segment(text, Style.parse(style)) for text, style in parts]


def header_text(width: int, what: str = "WHAT") -> str:
    """Return the column headers for `row_segments`."""
    session = f"{'SESSION':<{_SESSION_CELLS}} " if width >= _WIDE else ""
    clock, tokens = (
        (f"{'TIME':<{_TIME_CELLS}} ", f" {'TOKENS':>{_TOKENS_CELLS}}") if width >= _NARROW else ("", "")
    )
    left = f"  {clock}{'TOOL':<{_TOOL_CELLS}} {session}{what}"
    right = f" {'TOOK':>{_SECONDS_CELLS}}{tokens}"
    return set_cell_size(left, max(width - len(right), 0)) + right


def clock_text(at: float) -> str:
    """Return the time of day, or the date if it is not today, in eight cells."""
    then = time.localtime(at)
    today = time.localtime()
    same = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same else "%y-%m-%d", then)


def seconds_text(seconds: float) -> str:
    """Return a duration in at most six cells."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 100:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def tokens_text(tokens: int) -> str:
    """Return a number of tokens in at most six cells; empty for 0."""
    if not tokens:
        return ""
    return f"{tokens:,}" if tokens < 10_000 else f"{tokens / 1000:.0f}k"
