"""Arguments of a tool, as people and programs write them on a command line."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import typer

STDIN = "-"


def arguments(given: str | None, pairs: Sequence[str] | None) -> dict[str, Any]:
    """Put `--json` and `key=value` words together; a word wins over the JSON."""
    text = sys.stdin.read() if given == STDIN else given
    whole = {} if text is None else _loaded(text, "--json")
    if not isinstance(whole, dict):
        raise typer.BadParameter('It must be an object, as in \'{"path": "a.txt"}\'.', param_hint="--json")
    return whole | dict(_pair(word) for word in pairs or ())


def _pair(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.removesuffix(":"):
        raise typer.BadParameter(f"`{word}` is not KEY=VALUE.", param_hint="KEY=VALUE")
    # Plain values stay text: the tool's own model turns `limit=3` into a number.
    return (name[:-1], _loaded(value, word)) if name.endswith(":") else (name, value)


def _loaded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise typer.BadParameter(f"It is not JSON: {problem}.", param_hint=where) from problem
