"""Typer options and arguments that several commands share: their completion, and KEY=VALUE tool arguments."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli.open_workspace import open_journal_at
from handtools.core.errors import HandtoolsError
from handtools.text.visible_text import visible_line

if TYPE_CHECKING:
    from handtools.cli.open_workspace import WorkspaceJournal

MOST_COMPLETIONS = 50
COMPLETION_HELP_CHARS = 60

CompletionWords = Iterator[tuple[str, str]]
"""Words that can be completed to, each with what it stands for."""


def complete_call_id(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of a recorded call, the newest first."""

    def words(record: "WorkspaceJournal") -> CompletionWords:
        for logged in record.calls.page(limit=MOST_COMPLETIONS):
            yield record.calls.short(logged.id), f"{logged.tool} in session {logged.session}"

    return _completed(context, incomplete, words)


def complete_waiting_id(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of a call that waits for an answer."""

    def words(record: "WorkspaceJournal") -> CompletionWords:
        for approval in record.calls.waiting():
            yield record.calls.short(approval.call_id), approval.title

    return _completed(context, incomplete, words)


def complete_session(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the name of a session, the one that was active last first."""

    def words(record: "WorkspaceJournal") -> CompletionWords:
        for session in record.calls.sessions(MOST_COMPLETIONS):
            yield session.name, f"{session.calls} calls {session.agents}".rstrip()

    return _completed(context, incomplete, words)


def _completed(
    context: typer.Context, incomplete: str, words: "Callable[[WorkspaceJournal], CompletionWords]"
) -> list[tuple[str, str]]:
    """The words that begin as typed; none where nothing is recorded, so that the shell completes files instead."""
    try:
        with open_journal_at(context.params.get("workspace") or Path()) as record:
            found = [(word, visible_line(told, COMPLETION_HELP_CHARS)) for word, told in words(record)]
    except HandtoolsError:
        return []
    # A name that can't be typed as it is would be completed to something else.
    return [(word, told) for word, told in found if word.startswith(incomplete) and word.isprintable()]


class OutputFormat(StrEnum):
    """Values of `--output` for `call` and `why`, whose `--json` option already takes the tool arguments."""

    text = "text"
    json = "json"


WorkspaceOption = Annotated[
    Path,
    typer.Option(
        "--workspace",
        "-C",
        exists=True,
        file_okay=False,
        help="The folder the tools work in; given several times, all of them.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer as JSON, for programs.")]
JsonArgumentsOption = Annotated[
    str | None, typer.Option("--json", metavar="JSON", help="The arguments as a JSON object; - reads them.")
]
KeyValueArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Arguments one by one; KEY:=JSON for lists and the like."),
]
OutputOption = Annotated[OutputFormat, typer.Option("--output", help="json answers for programs.")]
RunnerOption = Annotated[
    str, typer.Option("--runner", help="What commands run under: bubblewrap, container:IMAGE, plain …")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to what is asked.")]
CallArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="A call id, or the start of one.", autocompletion=complete_call_id),
]

CURRENT_FOLDER = Path()

STDIN_WORD = "-"


def parse_tool_arguments(given: str | None, pairs: Sequence[str] | None) -> dict[str, Any]:
    """Build a tool's arguments from the `--json` object and from KEY=VALUE words, which override it.

    `--json -` reads stdin; malformed input raises `typer.BadParameter`.
    """
    text = sys.stdin.read() if given == STDIN_WORD else given
    whole = {} if text is None else _parse_json(text, "--json")
    if not isinstance(whole, dict):
        raise typer.BadParameter('It must be an object, as in \'{"path": "a.txt"}\'.', param_hint="--json")
    return whole | dict(_parse_pair(word) for word in pairs or ())


def _parse_pair(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.removesuffix(":"):
        raise typer.BadParameter(f"`{word}` is not KEY=VALUE.", param_hint="KEY=VALUE")
    # Plain values stay text: the tool's own model turns `limit=3` into a number.
    return (name[:-1], _parse_json(value, word)) if name.endswith(":") else (name, value)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise typer.BadParameter(f"It is not JSON: {problem}.", param_hint=where) from problem
