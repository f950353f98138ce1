"""Typer options and arguments shared by several commands, and parsing of KEY=VALUE tool arguments."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from handtools.cli import completed_values

WorkspaceOption = Annotated[
    Path,
    typer.Option(
        "--workspace",
        "-C",
        exists=True,
        file_okay=False,
        help="Workspace folder (repeatable).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
KeyValueArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Arguments; KEY:=JSON for other types; or a JSON object, or -.",
    ),
]
RunnerOption = Annotated[
    str, typer.Option("--runner", help="Sandbox for commands: bubblewrap, container:IMAGE, plain …")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to all questions.")]
CallArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID|CHANGE",
        help="Call id or prefix, or the number of a change.",
        autocompletion=completed_values.complete_call_ids,
    ),
]

CURRENT_FOLDER = Path()

STDIN_WORD = "-"


def parse_tool_arguments(words: Sequence[str] | None) -> dict[str, Any]:
    """Build a tool's arguments from a JSON object and from KEY=VALUE words, which override it.

    The object is a separate word; the word `-` reads it from stdin. Raises `typer.BadParameter` for malformed
    input.
    """
    words = list(words or ())
    given = next((word for word in words if word == STDIN_WORD or _is_json_object(word)), None)
    words = [word for word in words if word != given]
    text = sys.stdin.read() if given == STDIN_WORD else given
    whole = {} if text is None else _parse_json(text, STDIN_WORD)
    if not isinstance(whole, dict):
        raise typer.BadParameter('Must be an object, as in \'{"path": "a.txt"}\'.', param_hint=STDIN_WORD)
    return whole | dict(_parse_pair(word) for word in words)


def _is_json_object(word: str) -> bool:
    try:
        return word.startswith("{") and isinstance(json.loads(word), dict)
    except ValueError:
        return False


def _parse_pair(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.removesuffix(":"):
        raise typer.BadParameter(f"`{word}` is not KEY=VALUE.", param_hint="KEY=VALUE")
    # Plain values stay strings: the tool's parameter model converts `limit=3` to a number.
    return (name[:-1], _parse_json(value, word)) if name.endswith(":") else (name, value)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise typer.BadParameter(f"Not valid JSON: {problem}.", param_hint=where) from problem
