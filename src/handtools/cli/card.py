"""The approval card: what is about to happen, and a question that one key answers."""

from typing import TYPE_CHECKING

from handtools.cli.keyboard import answered
from handtools.cli.screen import err, one_line, painted
from handtools.core.approval import Approval, Remember, Reply
from handtools.text.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

CARD_LINES = 40
CARD_BYTES = 8_000
REMEMBERED: dict[str, Remember] = {"o": "once", "s": "session", "p": "project"}


def ask(approval: Approval, more: str) -> Reply | None:
    """Put the question; None when the person leaves it open. `more` says how to see a clipped preview."""
    console = err()
    show_card(console, approval, more)
    console.print(f'  o  once\n  s  for this session   ("{one_line(approval.remembered)}")')
    console.print("  p  for this project\n  n  no\n  ↵  decide later")
    while True:
        answer = answered(console, "Allow? [o/s/p/n] ")
        if not answer:
            return None
        key = answer[0].lower()
        if key in REMEMBERED:
            return Reply(allow=True, remember=REMEMBERED[key])
        if key == "n":
            return Reply(allow=False, message=answered(console, "What to do instead (may stay empty): "))


def show_card(console: "Console", approval: Approval, more: str) -> None:
    """The change, the rule that asked, and who wants it."""
    from rich.panel import Panel
    from rich.text import Text

    shown = approval.excerpt(max_lines=CARD_LINES, max_bytes=CARD_BYTES)
    why = Text(f"asked: {visible(approval.rule)}\n", "dim")
    if approval.agent:
        why.append(f"agent: {visible(approval.agent)}\n", "dim")
    body = why + Text("\n") + painted(shown)
    if shown != approval.preview:
        body.append(f"\nmore of it: {more}", "dim")
    console.print(Text(visible(approval.title), "bold"))
    console.print(Panel(body, border_style="yellow", expand=False))
