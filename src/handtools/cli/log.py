"""`handtools log`: what was called, newest first."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.opening import Record, record_at
from handtools.cli.recorded import logged_to_json, touched, touches_of, undone
from handtools.cli.screen import one_line, out, print_json, remark, table

if TYPE_CHECKING:
    from rich.text import Text

    from handtools.runtime.journal import LoggedCall, Touch

    Row = tuple[LoggedCall, list[Touch]]

DAY = 86_400.0
STYLES = {"ok": "green", "pending": "yellow", "denied": "red", "error": "red", "timeout": "red"}
UNDONE = {"no": "", "partly": " · partly undone", "yes": " · undone"}


def log(
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many calls.")] = 20,
    before: Annotated[
        int | None, typer.Option(help="Only calls before this number: the next page.")
    ] = None,
    as_json: options.AsJson = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """List the recorded calls, newest first."""
    with record_at(workspace) as record:
        page = record.calls.page(session=session, before=before, limit=limit + 1)
        rows = [(logged, touches_of(record, logged.id)) for logged in page[:limit]]
        if as_json:
            for logged, touches in rows:
                print_json(logged_to_json(logged, touches))
            return
        if not rows:
            remark("No calls" + (f" of session {session}" if session else "") + " are recorded.")
            return
        _print_rows(record, rows)
        if len(page) > limit:
            words = ["log", "--before", str(rows[-1][0].seq), "-n", str(limit)]
            older = record.step(*words, *(["--session", session] if session else []))
            remark("", f"Older: {older}")


def _print_rows(record: Record, rows: Sequence["Row"]) -> None:
    # A column that would say the same in every row says nothing.
    sessions = len({logged.session for logged, _ in rows}) > 1
    agents = any(logged.agent for logged, _ in rows)
    extra = [name for name, wanted in (("SESSION", sessions), ("AGENT", agents)) if wanted]
    shown = table("WHEN", "CALL", "TOOL", "TOUCHED", "STATUS", *extra)
    for column in shown.columns[:3]:
        column.no_wrap = True
    for logged, touches in rows:
        more = [one_line(getattr(logged, name.lower()), 24) for name in extra]
        what = one_line(touched(logged, touches))
        when, short = moment(logged.started), one_line(record.calls.short(logged.id), 40)
        shown.add_row(when, short, one_line(logged.tool), what, _status(logged, touches), *more)
    out().print(shown)


def moment(at: float) -> str:
    """A time of day for what is recent, a date for what is not."""
    recent = 0 <= time.time() - at < DAY / 2
    return time.strftime("%H:%M:%S" if recent else "%Y-%m-%d %H:%M", time.localtime(at))


def _status(logged: "LoggedCall", touches: Sequence["Touch"]) -> "Text":
    from rich.text import Text

    # A denial's code says the same word again.
    code = f" {logged.code}" if logged.code not in {"", logged.status} else ""
    back = UNDONE[undone(touches)]
    return Text.assemble((logged.status, STYLES.get(logged.status, "")), code, (back, "dim"))
