"""Terminal input and output of the CLI: coloured text, tables, diffs, JSON, questions, the approval prompt.

All output of the CLI is written here. Control, invisible and direction characters are made visible, even in
a pipe, because piped output often ends up on a terminal. Two kinds of output are unchanged: JSON, which
escapes such characters itself, and output for other programs, which is the diff of `handtools diff` and the
result of `call`.
"""

import json
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from handtools.core.approval import Approval, RememberScope, Reply
from handtools.core.errors import HandtoolsError
from handtools.text.truncation import collapse_to_one_line
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")

PIPE_COLUMNS = 1_000
"""Width of tables, in characters, when the output is not a terminal."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}
"""The colours of `_DIFF_STYLES` as ANSI codes."""
_HEADERS = ("--- ", "+++ ", "diff --git ")


class CliCommandError(HandtoolsError):
    """Error that ends a CLI command; its message is printed with `step`, the suggested next step."""

    def __init__(self, message: str, step: str) -> None:
        super().__init__(message)
        self.step = step


def stdout_console() -> "Console":
    """A rich console on stdout, for a command's output."""
    return _console(stderr=False)


def stderr_console() -> "Console":
    """A rich console on stderr, for remarks, prompts and errors, so that a pipe gets only the output."""
    return _console(stderr=True)


def table_cell(text: str, most: int = 60) -> str:
    """Text for a table cell: one line, clipped, with control characters made visible."""
    return collapse_to_one_line(with_visible_characters(collapse_to_one_line(text)), most)


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value to stdout as JSON, on one line unless `indent` is given."""
    _write_with_newline(json.dumps(value, indent=indent))


def print_text(text: str) -> None:
    """Print text to stdout with control characters made visible and a newline at the end."""
    _write_with_newline(with_visible_characters(text))


def pass_on_text(text: str) -> None:
    """Print a tool's result to stdout; in a pipe it is unchanged, for the program that reads it."""
    _write_with_newline(_visible_text_if_terminal(text))


def pass_on_lines(text: str) -> None:
    """Like `pass_on_text`, for lines of a running command's output: flushes, and adds no newline."""
    sys.stdout.write(_visible_text_if_terminal(text))
    sys.stdout.flush()


def _visible_text_if_terminal(text: str) -> str:
    return with_visible_characters(text) if stdout_console().is_terminal else text


def _write_with_newline(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")


def print_diff(diff: str, *, to_apply: bool = False) -> None:
    """Print a unified diff to stdout, coloured on a terminal.

    A diff longer than the screen is shown in the pager. In a pipe, control characters are made visible,
    except with `to_apply`, so that another program can apply the diff.
    """
    console = stdout_console()
    if not console.is_terminal:
        sys.stdout.write(diff if to_apply else with_visible_characters(diff))
    elif sys.stdin.isatty() and diff.count("\n") >= console.height:
        _show_in_pager(
            "\n".join(
                _diff_lines_with_ansi(
                    diff, coloured=console.color_system is not None and not console.no_color
                )
            )
        )
    else:
        console.print(coloured_diff(diff), soft_wrap=True, end="")


def _show_in_pager(text: str) -> None:
    """Show text in `$PAGER`, less or more; print it if there is no pager."""
    import pydoc

    # As git does: pass colours through, and quit at once if the text fits on one screen.
    os.environ.setdefault("LESS", "FRX")
    pydoc.pager(text)


def _diff_lines_with_ansi(diff: str, *, coloured: bool) -> Iterator[str]:
    """Yield the lines of a diff, with ANSI colours if `coloured`; rich is too slow for long diffs."""
    for line in with_visible_characters(diff).split("\n"):
        colour = "1" if line.startswith(_HEADERS) else _DIFF_COLOURS.get(line[:1], "")
        yield f"\x1b[{colour}m{line}\x1b[m" if colour and coloured else line


def coloured_diff(diff: str) -> "Text":
    """A unified diff as rich text: changed and header lines coloured, control characters made visible."""
    from rich.text import Text

    text = Text()
    for line in with_visible_characters(diff).split("\n"):
        style = "bold" if line.startswith(_HEADERS) else _DIFF_STYLES.get(line[:1], "")
        text.append(f"{line}\n", style)
    text.right_crop(1)
    return text


def with_progress_bar(items: Sequence[T], label: str) -> Iterator[T]:
    """Yield the items; if stderr is a terminal, show a progress bar there in the meantime."""
    console = stderr_console()
    if not console.is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, label, console=console, transient=True)


SLOW_SECONDS = 1.0


@contextmanager
def shown_when_slow(label: str) -> Iterator[None]:
    """Show a spinner if the block takes longer than `SLOW_SECONDS` and stderr is a terminal.

    The block must neither print nor prompt.
    """
    if not sys.stderr.isatty():
        yield
        return
    import threading

    status = stderr_console().status(f"{label} …")
    timer = threading.Timer(SLOW_SECONDS, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def make_plain_table(*columns: str) -> "Table":
    """A rich table without borders and with the given column headings."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold")
    return made


def print_remark(*lines: str) -> None:
    """Print dimmed lines to stderr, separate from the command's output on stdout."""
    for line in lines:
        stderr_console().print(with_visible_characters(line), style="dim", soft_wrap=True)


def print_failure(message: str, step: str) -> None:
    """Print an error message to stderr, with the suggested next step."""
    _print_with_step(("✗ ", "bold red"), message, step)


def print_pending_call(message: str, step: str) -> None:
    """Print to stderr that a call is pending approval, with the commands that answer it."""
    _print_with_step(("⏸ ", "bold yellow"), message, step)


def _print_with_step(mark: tuple[str, str], message: str, step: str) -> None:
    from rich.text import Text

    console = stderr_console()
    console.print(Text.assemble(mark, with_visible_characters(message)), soft_wrap=True)
    if step:
        console.print(Text.assemble(("  → ", "dim"), with_visible_characters(step)), soft_wrap=True)


def _console(*, stderr: bool) -> "Console":
    console = _visible_console_class()(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


@cache
def _visible_console_class() -> "type[Console]":
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        """A console that makes control and invisible characters visible in everything it prints."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                # Control segments are rich's own escape codes, not text.
                yield (
                    segment
                    if segment.control
                    else Segment(with_visible_characters(segment.text), segment.style)
                )

    return VisibleConsole


def is_interactive() -> bool:
    """Whether stdin and stderr are terminals, so that the user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def refuse_agent_shell() -> None:
    """Refuse a command that answers approval requests if an AI client runs it for its agent.

    Raises `CliCommandError`. Checking for a terminal is not enough, because clients give their shells one.
    """
    from handtools.host.agent_shell_detection import client_by_ancestry, client_by_variables

    if client := client_by_variables() or (not is_interactive() and client_by_ancestry()):
        raise CliCommandError(
            f"This shell was started by {client}, and agents can't answer approval requests.",
            "Run the command yourself in another terminal.",
        )


def ask_line(console: "Console", question: str) -> str:
    """Print a question and read one line from stdin; empty at the end of input or on Ctrl-C."""
    try:
        return ask_key(console, question) or ""
    except KeyboardInterrupt:
        console.print()
        return ""


def ask_key(console: "Console", question: str) -> str | None:
    """Print a question and read a line from stdin; None at the end of input. Raises `KeyboardInterrupt`."""
    console.print(question, end="", soft_wrap=True)
    console.file.flush()
    try:
        answer = _read_line().strip()
    except EOFError:
        console.print()
        return None
    if not sys.stdin.isatty():
        console.print()  # piped input is not echoed, so the cursor is still behind the question
    return answer


def ask_yes_no(console: "Console", question: str) -> bool:
    """Ask a yes/no question on the terminal; True only for `y` or `yes`."""
    return ask_line(console, f"{question} [y/N] ").lower() in {"y", "yes"}


def _read_line() -> str:
    """Read one line from stdin; raises `EOFError` at the end of input, `KeyboardInterrupt` on Ctrl-C.

    A Ctrl-C that arrives just before `input` blocks would be noticed only after the next key. So `select`
    waits for a line or a signal, and a line is read only once it is available.
    """
    if sys.platform == "win32":
        return input()
    if not sys.stdin.isatty():
        # Python reads ahead from a pipe, so `select` would not see lines that are already buffered.
        return _read_line_of_stream(sys.stdin)
    with _signal_pipe() as signals:
        while sys.stdin not in (ready := select.select([sys.stdin, signals], [], [])[0]):
            # Python runs the signal handler here, so Ctrl-C raises before anything is read.
            if signals in ready:
                os.read(signals, 64)
    return _read_line_of_stream(sys.stdin)


def _read_line_of_stream(stream: TextIO) -> str:
    line = stream.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def _signal_pipe() -> Iterator[int]:
    """A file descriptor that becomes readable when a signal arrives (`signal.set_wakeup_fd`)."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


APPROVAL_PREVIEW_LINES = 40
APPROVAL_PREVIEW_BYTES = 8_000
APPROVAL_ANSWER_KEYS: dict[str, RememberScope] = {
    "y": "once",
    "o": "once",
    "s": "session",
    "p": "project",
}


def ask_approval(approval: Approval, more: str) -> Reply | None:
    """Show an approval request in the terminal and read the reply: once, session, project or no.

    None if the user decides later; `more` is the command that shows a clipped preview in full.
    """
    console = stderr_console()
    print_approval(console, approval, more)
    console.print(f'  y  yes, once\n  s  yes, for this session   ("{table_cell(approval.remembered)}")')
    console.print("  p  yes, for this project\n  n  no\n  ↵  decide later")
    while True:
        answer = ask_line(console, "Allow? [y/s/p/n] ")
        if not answer:
            return None
        key = answer[0].lower()
        if key in APPROVAL_ANSWER_KEYS:
            return Reply(allow=True, remember=APPROVAL_ANSWER_KEYS[key])
        if key == "n":
            return Reply(allow=False, message=ask_line(console, "What to do instead (optional): "))


def print_approval(console: "Console", approval: Approval, more: str) -> None:
    """Print an approval request: its title, the rule, the agent, and a clipped preview of the change.

    `more` is the command that shows the full preview.
    """
    from rich.panel import Panel
    from rich.text import Text

    shown = approval.excerpt(max_lines=APPROVAL_PREVIEW_LINES, max_bytes=APPROVAL_PREVIEW_BYTES)
    why = Text(f"asked: {with_visible_characters(approval.rule)}\n", "dim")
    if approval.agent:
        why.append(f"agent: {with_visible_characters(approval.agent)}\n", "dim")
    body = why + Text("\n") + coloured_diff(shown)
    if shown != approval.preview:
        body.append(f"\nfull preview: {more}", "dim")
    console.print(Text(with_visible_characters(approval.title), "bold"))
    console.print(Panel(body, border_style="yellow", expand=False))
