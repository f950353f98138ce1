"""The screen: what people read, coloured where there is a terminal; what programs read, as JSON."""

import json
import sys
from typing import TYPE_CHECKING, Any

from handtools.core.errors import HandtoolsError
from handtools.text.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PIPE_COLUMNS = 1_000
"""How wide a table may become where no terminal limits it."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_HEADERS = ("--- ", "+++ ", "diff --git ")


class Stopped(HandtoolsError):
    """A command can't go on; what a person does next is part of it."""

    def __init__(self, message: str, step: str) -> None:
        super().__init__(message)
        self.step = step


def out() -> "Console":
    """Where answers go."""
    return _console(stderr=False)


def err() -> "Console":
    """Where remarks and failures go, so that a pipe gets the answer alone."""
    return _console(stderr=True)


def one_line(text: str, most: int = 60) -> str:
    """Text for a cell of a table."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def print_json(value: Any) -> None:
    """One value on one line."""
    print(json.dumps(value))


def print_text(text: str) -> None:
    """Text as it is into a pipe, made harmless on a terminal."""
    console = out()
    if console.is_terminal:
        console.print(visible(text), soft_wrap=True)
    else:
        sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")


def print_diff(diff: str) -> None:
    """A diff: coloured on a terminal, exact in a pipe so that it can be applied."""
    console = out()
    if console.is_terminal:
        console.print(painted(diff), soft_wrap=True, end="")
    else:
        sys.stdout.write(diff)


def painted(diff: str) -> "Text":
    """A diff in the colours that people expect."""
    from rich.text import Text

    text = Text()
    for line in visible(diff).split("\n"):
        style = "bold" if line.startswith(_HEADERS) else _DIFF_STYLES.get(line[:1], "")
        text.append(f"{line}\n", style)
    text.right_crop(1)
    return text


def table(*columns: str) -> "Table":
    """A table without lines: as readable in a pipe as on a terminal."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 3, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold")
    return made


def remark(*lines: str) -> None:
    """Say something beside the answer."""
    for line in lines:
        err().print(visible(line), style="dim", soft_wrap=True)


def tell_failure(message: str, step: str) -> None:
    """Say what went wrong, and what to do next."""
    _tell(("✗ ", "bold red"), message, step)


def tell_waiting(message: str, step: str) -> None:
    """Say what is held up, and how to go on."""
    _tell(("⏸ ", "bold yellow"), message, step)


def _tell(mark: tuple[str, str], message: str, step: str) -> None:
    from rich.text import Text

    console = err()
    console.print(Text.assemble(mark, visible(message)), soft_wrap=True)
    if step:
        console.print(Text.assemble(("  → ", "dim"), visible(step)), soft_wrap=True)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console
