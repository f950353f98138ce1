"""Shell completion values: call ids, sessions, changed paths and tool names."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from handtools.cli.open_workspace import WorkspaceJournal

MAX_COMPLETIONS = 50


def complete_call_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The newest calls, each with its tool and status."""
    return _completions_from_journal(
        ctx,
        incomplete,
        lambda record: (
            (record.calls.short(call.id), f"{call.tool} {call.status}")
            for call in record.calls.page(limit=MAX_COMPLETIONS)
        ),
    )


def complete_waiting_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The calls that wait for approval."""
    return _completions_from_journal(
        ctx,
        incomplete,
        lambda record: (
            (record.calls.short(asked.call_id), asked.title) for asked in record.calls.waiting()
        ),
    )


def complete_sessions(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The sessions, most recently active first."""
    return _completions_from_journal(
        ctx,
        incomplete,
        lambda record: (
            (session.name, f"{session.calls} calls") for session in record.calls.sessions(MAX_COMPLETIONS)
        ),
    )


def complete_changed_paths(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The paths that the newest calls changed."""

    def found(journal: "WorkspaceJournal") -> Iterable[tuple[str, str]]:
        for call in journal.calls.page(limit=MAX_COMPLETIONS):
            for touch in journal.entries.selected("call", call.id):
                if "folder" not in {side.kind for side in (touch.before, touch.after) if side}:
                    yield touch.path, ""

    return _completions_from_journal(ctx, incomplete, found)


def complete_ids_and_paths(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Calls and changed paths together."""
    return [*complete_call_ids(ctx, incomplete), *complete_changed_paths(ctx, incomplete)]


def complete_tools(incomplete: str) -> list[str]:
    """The names of the built-in tools."""
    from handtools.toolbox import EVERYTHING

    return sorted(name for name in EVERYTHING if name.startswith(incomplete))


def _completions_from_journal(
    ctx: typer.Context,
    incomplete: str,
    find: "Callable[[WorkspaceJournal], Iterable[tuple[str, str]]]",
) -> list[tuple[str, str]]:
    """The completions that `find` returns from the workspace's journal; empty if there is no journal."""
    from handtools.cli.open_workspace import open_journal_at
    from handtools.core.errors import HandtoolsError
    from handtools.text.visible_text import visible_line

    try:
        with open_journal_at(Path(ctx.params.get("workspace") or ".")) as record:
            found = dict.fromkeys(find(record))
            return [
                (word, visible_line(told, 60))
                for word, told in found
                if word.startswith(incomplete) and word.isprintable()
            ]
    except HandtoolsError:
        return []
