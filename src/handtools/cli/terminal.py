"""The terminal: what people read, coloured, and programs read, as JSON; questions, and the approval prompt."""

import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from handtools.core.approval import Approval, Remember, Reply
from handtools.core.errors import HandtoolsError
from handtools.text.truncation import one_line
from handtools.text.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


PIPE_COLUMNS = 1_000
"""How wide a table may become where no terminal limits it."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_HEADERS = ("--- ", "+++ ", "diff --git ")


class CommandStopped(HandtoolsError):
    """A command can't go on; what a person does next is part of it."""

    def __init__(self, message: str, step: str) -> None:
        super().__init__(message)
        self.step = step


def stdout_console() -> "Console":
    """Where answers go."""
    return _console(stderr=False)


def stderr_console() -> "Console":
    """Where remarks and failures go, so that a pipe gets the answer alone."""
    return _console(stderr=True)


def table_cell(text: str, most: int = 60) -> str:
    """Text for a cell of a table."""
    return one_line(visible(one_line(text)), most)


def print_json(value: Any) -> None:
    """One value on one line."""
    print(json.dumps(value))


def print_text(text: str) -> None:
    """Text as it is into a pipe, made harmless on a terminal."""
    console = stdout_console()
    if console.is_terminal:
        console.print(visible(text), soft_wrap=True)
    else:
        sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")


def print_diff(diff: str) -> None:
    """A diff: coloured on a terminal, exact in a pipe so that it can be applied."""
    console = stdout_console()
    if console.is_terminal:
        console.print(coloured_diff(diff), soft_wrap=True, end="")
    else:
        sys.stdout.write(diff)


def coloured_diff(diff: str) -> "Text":
    """A diff in the colours that people expect."""
    from rich.text import Text

    text = Text()
    for line in visible(diff).split("\n"):
        style = "bold" if line.startswith(_HEADERS) else _DIFF_STYLES.get(line[:1], "")
        text.append(f"{line}\n", style)
    text.right_crop(1)
    return text


def plain_table(*columns: str) -> "Table":
    """A table without lines: as readable in a pipe as on a terminal."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold")
    return made


def print_remark(*lines: str) -> None:
    """Say something beside the answer."""
    for line in lines:
        stderr_console().print(visible(line), style="dim", soft_wrap=True)


def print_failure(message: str, step: str) -> None:
    """Say what went wrong, and what to do next."""
    _print_with_step(("✗ ", "bold red"), message, step)


def print_waiting(message: str, step: str) -> None:
    """Say what is held up, and how to go on."""
    _print_with_step(("⏸ ", "bold yellow"), message, step)


def _print_with_step(mark: tuple[str, str], message: str, step: str) -> None:
    from rich.text import Text

    console = stderr_console()
    console.print(Text.assemble(mark, visible(message)), soft_wrap=True)
    if step:
        console.print(Text.assemble(("  → ", "dim"), visible(step)), soft_wrap=True)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


def is_interactive() -> bool:
    """Whether there is a person who sees a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(console: "Console", question: str) -> str:
    """One line; empty when the input ends or the person presses Ctrl-C."""
    try:
        console.print(question, end="", soft_wrap=True)
        return _read_line().strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return ""


def ask_yes_no(console: "Console", question: str) -> bool:
    """Whether a person says yes; anything else is a no."""
    return ask_line(console, f"{question} [y/N] ").lower() in {"y", "yes"}


def _read_line() -> str:
    """One line, without its end; `EOFError` when the input ends, `KeyboardInterrupt` on Ctrl-C.

    A Ctrl-C in the instant before `input` begins to read would be noticed only after the next key. So both are
    waited for, and only a line that is there is read.
    """
    if sys.platform == "win32":
        return input()
    with _signal_pipe() as signals:
        while sys.stdin not in (ready := select.select([sys.stdin, signals], [], [])[0]):
            # Python runs the handler between these two lines; Ctrl-C does not come any further.
            if signals in ready:
                os.read(signals, 64)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def _signal_pipe() -> Iterator[int]:
    """A file that can be read from as soon as a signal has come, wherever Python was at that moment."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


PROMPT_LINES = 40
PROMPT_BYTES = 8_000
REMEMBER_KEYS: dict[str, Remember] = {"o": "once", "s": "session", "p": "project"}


def ask_approval(approval: Approval, more: str) -> Reply | None:
    """Put the question; None when the person leaves it open. `more` says how to see a clipped preview."""
    console = stderr_console()
    print_approval(console, approval, more)
    console.print(f'  o  once\n  s  for this session   ("{table_cell(approval.remembered)}")')
    console.print("  p  for this project\n  n  no\n  ↵  decide later")
    while True:
        answer = ask_line(console, "Allow? [o/s/p/n] ")
        if not answer:
            return None
        key = answer[0].lower()
        if key in REMEMBER_KEYS:
            return Reply(allow=True, remember=REMEMBER_KEYS[key])
        if key == "n":
            return Reply(allow=False, message=ask_line(console, "What to do instead (may stay empty): "))


def print_approval(console: "Console", approval: Approval, more: str) -> None:
    """The change, the rule that asked, and who wants it."""
    from rich.panel import Panel
    from rich.text import Text

    shown = approval.excerpt(max_lines=PROMPT_LINES, max_bytes=PROMPT_BYTES)
    why = Text(f"asked: {visible(approval.rule)}\n", "dim")
    if approval.agent:
        why.append(f"agent: {visible(approval.agent)}\n", "dim")
    body = why + Text("\n") + coloured_diff(shown)
    if shown != approval.preview:
        body.append(f"\nmore of it: {more}", "dim")
    console.print(Text(visible(approval.title), "bold"))
    console.print(Panel(body, border_style="yellow", expand=False))
