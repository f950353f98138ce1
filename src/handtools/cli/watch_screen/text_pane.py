"""A scrolling pane for long, untrusted text: control characters visible, wrapped, drawn line by line."""

import json
from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from handtools.cli.watch_screen.timeline import clock_text, seconds_text
from handtools.core.approval import Approval
from handtools.record.session_feed import CallDetails
from handtools.text.visible_text import visible_line, with_visible_characters

MAX_LINES = 5_000
"""Maximum number of lines shown of one text; the rest is replaced by a note."""
MAX_LINE_CHARS = 4_000
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DIFF_HEADS = ("--- ", "+++ ", "diff --git ")
NAME_CHARS = 60


class PaneLine(NamedTuple):
    """One line of a pane and its style."""

    text: str
    style: str = ""


class TextPane(ScrollView, can_focus=True):
    """Scrolls lines, wrapped to its width; follows the end as text is added."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("space", "page_down", "Page down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - as in Textual
        super().__init__(id=id)
        self._lines: list[PaneLine] = []
        self._folded: list[PaneLine] = []

    @property
    def text(self) -> str:
        """All shown lines as one text."""
        return "\n".join(line.text for line in self._lines)

    def show(self, lines: Iterable[PaneLine], *, at_end: bool = False) -> None:
        """Replace the contents, and scroll to the first or last line."""
        self._lines = list(lines)
        self._wrap_lines()
        place = max(len(self._folded) - self.size.height, 0) if at_end else 0
        self.scroll_to(y=place, animate=False, immediate=True)

    def update_lines(self, lines: Iterable[PaneLine]) -> None:
        """Update the contents: keep the scroll position, or follow the end if it was visible."""
        follows = self.scroll_offset.y + self.size.height >= len(self._folded)
        self._lines = list(lines)
        self._wrap_lines()
        if follows:
            self.scroll_to(y=max(len(self._folded) - self.size.height, 0), animate=False, immediate=True)

    def on_resize(self) -> None:
        self._wrap_lines()

    def _wrap_lines(self) -> None:
        width = max(self.size.width - 1, 10)
        self._folded = [
            PaneLine(part, line.style) for line in self._lines for part in folded(line.text, width)
        ]
        self.virtual_size = Size(width, len(self._folded))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = y + int(self.scroll_offset.y)
        line = self._folded[at] if at < len(self._folded) else PaneLine("")
        return Strip([Segment(line.text, Style.parse(line.style))]).adjust_cell_length(self.size.width)


def folded(text: str, width: int) -> list[str]:
    """Split a line into pieces that fit a width."""
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [text]
    return chop_cells(text, width) or [""]


def harmless_lines(text: str, style: str = "", indent: str = "") -> Iterator[PaneLine]:
    """Yield the lines of an untrusted text, clipped and with control characters made visible."""
    lines = text.expandtabs(4).split("\n")
    for line in lines[:MAX_LINES]:
        cut = f" [… {len(line) - MAX_LINE_CHARS:,} more characters]" if len(line) > MAX_LINE_CHARS else ""
        yield PaneLine(indent + with_visible_characters(line[:MAX_LINE_CHARS]) + cut, style)
    if len(lines) > MAX_LINES:
        yield PaneLine(f"[… {len(lines) - MAX_LINES:,} more lines; `handtools show` has them]", "dim")


def diff_lines(diff: str) -> Iterator[PaneLine]:
    """Yield the lines of a diff, coloured."""
    for line in harmless_lines(diff.rstrip("\n")):
        bold = line.text.startswith(_DIFF_HEADS)
        yield PaneLine(line.text, "bold" if bold else _DIFF_STYLES.get(line.text[:1], ""))


def call_lines(details: CallDetails) -> Iterator[PaneLine]:
    """Yield the full description of a call."""
    call = details.call
    undone = {"no": "", "partly": ", partly undone", "yes": ", undone"}[call.undone]
    yield PaneLine(
        f"{visible_line(call.tool, NAME_CHARS)} {visible_line(call.subject, NAME_CHARS)}", "bold"
    )
    who = " · ".join(
        visible_line(part, NAME_CHARS) for part in (call.session, call.turn, call.agent) if part
    )
    yield PaneLine(
        f"{call.status}{undone} · {clock_text(call.started)} · {seconds_text(call.seconds)} · {who}"
    )
    yield PaneLine(
        f"call {visible_line(call.id, NAME_CHARS)}" + (f" · {call.tokens:,} tokens" if call.tokens else ""),
        "dim",
    )
    if details.approval is not None:
        yield PaneLine("")
        yield from approval_lines(details.approval)
        return
    if details.diff:
        yield PaneLine("")
        yield PaneLine("CHANGES", "bold")
        yield from diff_lines(details.diff)
    yield PaneLine("")
    yield PaneLine("OUTPUT SO FAR" if call.state == "running" else "RESULT", "bold")
    if details.cut:
        yield PaneLine(details.cut, "dim")
    yield from harmless_lines(details.answer)
    if details.args:
        yield PaneLine("")
        yield PaneLine("ARGUMENTS", "bold")
        for name, value in details.args.items():
            yield from _argument_lines(name, value)


def approval_lines(approval: Approval) -> Iterator[PaneLine]:
    """Yield an approval request: title, rule, caller, preview, and what remembering it would store."""
    yield from (PaneLine(line.text, "bold") for line in harmless_lines(approval.title))
    yield from harmless_lines(f"asked by: {approval.rule}", "yellow")
    if who := " · ".join(filter(None, (approval.session, approval.agent))):
        yield PaneLine(f"from: {visible_line(who, NAME_CHARS)}", "dim")
    yield PaneLine("")
    yield from diff_lines(approval.preview)
    yield PaneLine("")
    kept = [line for line in approval.remembered.split("\n") if line]
    yield PaneLine(
        "session or project would store:" if kept else "This call can only be approved once.", "dim"
    )
    for line in kept:
        yield from harmless_lines(line, "", "  ")


def _argument_lines(name: str, value: object) -> Iterator[PaneLine]:
    text = value if isinstance(value, str) else json.dumps(value)
    name = visible_line(name, NAME_CHARS)
    if "\n" not in text:
        yield from harmless_lines(f"{name}: {text}")
        return
    yield PaneLine(f"{name}:")
    yield from harmless_lines(text.rstrip("\n"), "", "  ")
