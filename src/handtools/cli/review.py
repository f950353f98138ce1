"""CLI command `handtools review`: review agents' changes hunk by hunk, and keep or reject each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import WorkspaceJournal, approve_all, open_journal_at, open_toolbox_at
from handtools.cli.results import EXIT_FAILED, exit_code, print_result
from handtools.cli.review_questions import ReviewItem, ReviewQuestions, ReviewStopped, review_items_of_file
from handtools.cli.terminal import CliCommandError, print_json, print_remark, stdout_console, table_cell
from handtools.core.undo import LAST_NAME, PERSON_AGENT_NAME, ReviewPoint, is_change_number
from handtools.record.recorded_changes import call_target_summary
from handtools.text.changed_files import is_in_derived_folder
from handtools.text.plurals import number_with_noun
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.core.result import Result
    from handtools.runtime.review import ChangeReview, FileReviews, HeldReview

REVIEW_SESSION = "review"
"""Session name for the user's rejections, to keep them apart from the agents' sessions."""
MAX_KEPT_LISTED = 40
AUTHOR_CHARS = 60
HELD_DENIAL = "The user reviewed the changes and rejected all of them."

NamesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE[:N]|ID", help="Keep a file, its Nth change or a whole call; no prompts."),
]
RejectOption = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE[:N]|ID", help="Reject a file, its Nth change or a whole call; no prompts."),
]


def review(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Only these files and folders.")
    ] = None,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="ID|COMMIT",
            help="Only changes since this call or commit.",
            autocompletion=completed_values.complete_call_ids,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="Session to review [default: the last one].",
            autocompletion=completed_values.complete_sessions,
        ),
    ] = None,
    accept: NamesOption = None,
    reject: RejectOption = None,
    listed: Annotated[bool, typer.Option("--list", help="List the changes to review and exit.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Include changes that you accepted before.")] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Review an agent's changes; keep or reject each one.

    The keys are the same as in `git add -p`: y keeps, n rejects, ? lists all keys. Your own edits are
    skipped and kept. Rejecting is recorded as a change, so `handtools undo` can restore it.

    Commands whose changes wait for approval come first; none of their changes has been applied yet.

    Example: handtools review --since HEAD src
    """
    with open_journal_at(workspace) as record:
        chosen = _Chosen(record, _starting_point(record, since, session), tuple(paths or ()), every=every)
        if listed or (as_json and not (accept or reject)):
            _print_list(chosen, as_json=as_json)
            return
        held: list[_HeldDecision] = []
        if accept or reject:
            kept, rejected = ([*chosen.named(names or ())] for names in (accept, reject))
        else:
            held, kept, rejected = _ask_about_changes(chosen)
        for item in kept:
            chosen.accept(item)
    for each in held:
        _answer_held_command(workspace, each)
    if rejected:
        _revert_rejected_items(workspace, chosen.point, rejected, as_json=as_json)
    elif as_json:
        print_json({"accepted": sum(len(item.parts) for item in kept), "restored": []})
    elif kept:
        print_remark(f"Kept {number_with_noun(len(kept), 'change')}; nothing was rejected.")


@dataclass(frozen=True)
class _Chosen:
    """What to review: the journal, the starting point, the paths, and whether to include accepted changes."""

    journal: WorkspaceJournal
    point: ReviewPoint
    within: tuple[str, ...]
    every: bool

    @cached_property
    def changes(self) -> "ChangeReview":
        """The changes that calls made since the starting point."""
        from handtools.runtime.review import ChangeReview

        return ChangeReview(self.journal.journal, self.journal.files, self.point)

    @cached_property
    def ignored(self) -> set[str]:
        """The changed files that are generated or that ignore files exclude; they are reviewed only by name."""
        import anyio

        from handtools.host.search.several_folders_search import local_search

        derived = {path for path in self.changes.paths if is_in_derived_folder(path)}
        rest = [path for path in self.changes.paths if path not in derived]
        return derived | anyio.run(local_search(self.journal.path).find_ignored_paths, rest)

    def items(self, reviews: "FileReviews", *, ignored: bool = False) -> Iterator[list[ReviewItem]]:
        """Yield the list of items of each file; files without items, and ignored ones, are skipped."""
        skipped = self.ignored if reviews is self.changes and not (ignored or self.within) else set()
        folders = [self.journal.files.locate(path) for path in self.within]
        for path in reviews.paths:
            if path in skipped:
                continue
            if folders and not any(_is_within(path, folder) for folder in folders):
                continue
            items = review_items_of_file(reviews.file(path))
            items = items if self.every else [item for item in items if not self.is_accepted(item)]
            if items:
                yield items

    def held(self) -> "Iterator[HeldReview]":
        """The commands whose changes wait for approval, oldest first."""
        from handtools.runtime.review import HeldReview

        for approval in self.journal.calls.waiting():
            ran = self.journal.journal.pending_commands.find(approval.call_id)
            waiting = self.journal.calls.suspended(approval.call_id)
            if ran is None or waiting is None or not ran.delta:
                continue
            if self.point.scope != "session" or waiting.call.session == self.point.name:
                yield HeldReview(approval.call_id, ran, self.journal.files)

    def named(self, names: Sequence[str]) -> Iterator[ReviewItem]:
        """The items named by `FILE`, `FILE:N` or a call id; raises `CliCommandError` if there are none."""
        changes = self.changes
        for name in names:
            found = [*self._items_of_path(changes, name)] or [*self._items_of_call(changes, name)]
            if not found:
                step = (
                    f"`{self.journal.suggested_command('review', '--list')}` lists the changes to review."
                )
                raise CliCommandError(f"`{name}` has no changes to review.", step)
            yield from found

    def _items_of_path(self, changes: "ChangeReview", name: str) -> Iterator[ReviewItem]:
        for typed, number in ((name, 0), *_split_file_and_number(name)):
            located = self.journal.files.locate(typed)
            paths = [path for path in changes.paths if _is_within(path, located)]
            for path in paths:
                yield from (i for i in review_items_of_file(changes.file(path)) if number in (0, i.number))
            if paths:
                return

    def _items_of_call(self, changes: "ChangeReview", name: str) -> Iterator[ReviewItem]:
        if not self.journal.journal.calls_named(name):
            return
        call_id = self.journal.find_call_id(name)
        for items in self.items(changes, ignored=True):
            yield from (item for item in items if item.authors == (call_id,))

    def is_accepted(self, item: ReviewItem) -> bool:
        """Whether every part was accepted in an earlier review and has not changed since."""
        entries = self.journal.journal.entries
        return all(entries.is_hunk_accepted(item.file.path, part.id) for part in item.parts)

    def accept(self, item: ReviewItem) -> None:
        """Record that an item was accepted, so that later reviews skip it."""
        with self.journal.journal.together():
            for part in item.parts:
                self.journal.journal.entries.accept_hunk(item.file.path, part.id)

    def name_author(self, call_id: str) -> str:
        """Describe a call in one line: tool, id, agent, and the command if it ran one."""
        logged = self.journal.calls.find(call_id)
        if logged is None:
            return f"call {call_id}"
        by = f" ({logged.agent})" if logged.agent else ""
        ran = f": {call_target_summary(logged, ())}" if logged.tool == "bash" else ""
        return table_cell(f"{logged.tool} {self.journal.calls.short(call_id)}{by}{ran}", AUTHOR_CHARS)


def _starting_point(journal: WorkspaceJournal, since: str | None, session: str | None) -> ReviewPoint:
    """Resolve the options to a starting point: a session, a call, or the time of a commit."""
    if since is not None and session is not None:
        raise typer.BadParameter("Give --since or --session, not both.")
    if since is None:
        named = session not in (None, LAST_NAME)
        return ReviewPoint("session", str(session) if named else journal.calls.last_agent_session())
    if journal.journal.calls_named(since) or is_change_number(since):
        return ReviewPoint("since", journal.find_call_id(since))
    from handtools.host.files.git_repository import commit_time

    made = commit_time(journal.path, since)
    if made is None:
        step = f"`{journal.suggested_command('log')}` lists the calls, `git log` the commits."
        raise CliCommandError(f"`{since}` is neither a recorded call nor a commit.", step)
    return ReviewPoint("time", str(made))


def _ask_about_changes(chosen: _Chosen) -> "tuple[list[_HeldDecision], list[ReviewItem], list[ReviewItem]]":
    """Ask about every file; return the decisions on held commands, the kept and the rejected items."""
    held: list[_HeldDecision] = []
    items: list[ReviewItem] = []
    try:
        for review in chosen.held():
            held.append(_HeldDecision(review))
            _ask_about_held_command(chosen, held[-1])
        _ask_about_files(chosen, items)
    except ReviewStopped:
        pass
    except KeyboardInterrupt:
        stdout_console().print()
        raise CliCommandError(
            "Stopped; nothing was rejected.",
            f"`{chosen.journal.suggested_command('review')}` starts over.",
        ) from None
    else:
        if not items and not held:
            _print_nothing_to_review(chosen)
    left = sum(item.decision is None for item in items)
    if left:
        print_remark(f"{number_with_noun(left, 'change')} left undecided.")
    return held, [i for i in items if i.decision == "accept"], [i for i in items if i.decision == "reject"]


def _ask_about_files(chosen: _Chosen, review_items: list[ReviewItem]) -> None:
    """Ask about the changed files, and add their items to `review_items`, even if the user quits."""
    questions = ReviewQuestions(chosen.name_author, _edit_in_editor)
    changes = chosen.changes
    paths = [path for path in changes.paths if chosen.within or path not in chosen.ignored]
    number_of = {path: number for number, path in enumerate(paths, 1)}
    if changes.git_paths:
        files = number_with_noun(changes.git_paths, "file")
        print_remark(f"{files} in .git changed; `handtools undo ID` undoes a commit.")
    _tell_ignored(chosen)
    for items in chosen.items(changes):
        path = items[0].file.path
        where = f" (file {number_of[path]} of {len(number_of)})" if len(number_of) > 1 else ""
        try:
            questions.ask(items, path + where)
        finally:
            review_items += questions.items


def _print_nothing_to_review(chosen: _Chosen) -> None:
    scope, name = chosen.point
    of = {"session": f" of session {name}", "since": " since that call", "time": " since that commit"}[
        scope
    ]
    print_remark(f"No changes{of} to review." if name or scope != "session" else "No change is recorded.")
    if not chosen.every:
        print_remark(f"To include accepted changes: {chosen.journal.suggested_command('review', '--all')}")


def _edit_in_editor(text: str) -> str | None:
    """Let the user edit a text in `$VISUAL` or `$EDITOR`; None if it was not saved."""
    import click

    return click.edit(text, extension=".diff", require_save=True)


def _print_list(chosen: _Chosen, *, as_json: bool) -> None:
    found = 0
    reviews: list[FileReviews] = [*chosen.held(), chosen.changes]
    for review in reviews:
        waits = review is not reviews[-1]
        for item in (item for items in chosen.items(review) for item in items):
            found += 1
            if as_json:
                print_json(_item_to_json(chosen, item, waits=waits))
            else:
                _print_item(chosen, item, waits=waits)
    if not as_json:
        _tell_ignored(chosen)
        if not found:
            _print_nothing_to_review(chosen)


def _tell_ignored(chosen: _Chosen) -> None:
    if chosen.ignored and not chosen.within:
        files, first = number_with_noun(len(chosen.ignored), "ignored file"), min(chosen.ignored)
        named = chosen.journal.suggested_command("review", first)
        print_remark(f"Passed over {files}. To review one: {named}")


def _print_item(chosen: _Chosen, item: ReviewItem, *, waits: bool) -> None:
    from rich.text import Text

    kind: str = item.parts[0].kind
    added, removed = (sum(row.startswith(sign) for row in item.text.split("\n")) for sign in "+-")
    line = Text(f"{with_visible_characters(item.file.path)}:{item.number}  ")
    line.append(f"+{added:,} ", "green").append(f"-{removed:,}", "red")
    words = [kind if kind != "hunk" else "", f"by {', '.join(map(chosen.name_author, item.authors))}"]
    words += ["waiting for approval" if waits else "", item.refusal]
    line.append(f"  {'; '.join(filter(None, words))}", "dim")
    stdout_console().print(line, soft_wrap=True)


def _item_to_json(chosen: _Chosen, item: ReviewItem, *, waits: bool) -> dict[str, Any]:
    return {
        "path": item.file.path,
        "number": item.number,
        "kind": item.parts[0].kind,
        "ids": [part.id for part in item.parts],
        "calls": list(item.authors),
        "refusal": item.refusal,
        "accepted": chosen.is_accepted(item),
        "waits": waits,
        "diff": item.text,
    }


def _revert_rejected_items(
    workspace: Path, point: ReviewPoint, items: Sequence[ReviewItem], *, as_json: bool
) -> None:
    """Revert the rejected parts in one call in the user's name, and print the result."""
    from handtools.cli import reject
    from handtools.core.call import Call
    from handtools.toolbox import BlockingToolbox, Toolbox

    parts, edited = _rejected_and_edited_parts(items)
    args = {"scope": point.scope, "name": point.name, "parts": parts, "edited": edited}
    call = Call(tool=reject.review.name, args=args, agent=PERSON_AGENT_NAME, session=REVIEW_SESSION)
    with open_toolbox_at(workspace, yes=True) as (toolbox, record):
        box = toolbox.toolbox
        person_toolbox = Toolbox(
            [reject.review], workspace=box.workspace, policy=box.policy, approver=approve_all
        )
        result = BlockingToolbox(person_toolbox).call(call)
        kept = result.details.kept if result.ok else []
        if as_json or not result.ok:
            print_result(result, call.id, record, as_json=as_json)
        else:
            _print_reverted(result, record, call.id)
    raise typer.Exit(EXIT_FAILED if kept else exit_code(result))


def _rejected_and_edited_parts(items: Sequence[ReviewItem]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The ids of rejected parts by path, and the replacement text of edited parts by id."""
    parts: dict[str, list[str]] = {}
    for item in items:
        parts.setdefault(item.file.path, []).extend(part.id for part in item.parts)
    edited = {item.parts[0].id: item.edited for item in items if item.edited is not None}
    return {path: list(dict.fromkeys(ids)) for path, ids in parts.items()}, edited


def _print_reverted(result: "Result[Any]", journal: WorkspaceJournal, call_id: str) -> None:
    from rich.text import Text

    from handtools.cli.undo import print_touched

    console = stdout_console()
    print_touched(result.changes.touched if result.changes else ())
    for kept in result.details.kept[:MAX_KEPT_LISTED]:
        told = with_visible_characters(f"{kept.path}: {kept.reason}")
        console.print(Text.assemble(("kept     ", "yellow"), told), soft_wrap=True)
    if result.changes:
        print_remark(f"To undo this: {journal.suggested_command('undo', journal.calls.short(call_id))}")


@dataclass(slots=True)
class _HeldDecision:
    """A command whose changes wait for approval, and the decision on each change."""

    review: "HeldReview"
    items: list[ReviewItem] = field(default_factory=list)
    complete: bool = False
    """Whether the user saw every change, i.e. did not quit before the end."""

    @property
    def decided(self) -> bool:
        return self.complete and bool(self.items) and all(item.decision for item in self.items)

    @property
    def rejected(self) -> list[ReviewItem]:
        return [item for item in self.items if item.decision == "reject"]


def _ask_about_held_command(chosen: _Chosen, held: _HeldDecision) -> None:
    """Ask about each change of a command that waits for approval, before any is applied."""
    questions = ReviewQuestions(chosen.name_author, _edit_in_editor, "Apply this change")
    waits = f"Waiting for approval: {chosen.name_author(held.review.call_id)}"
    stdout_console().print(waits, style="bold yellow")
    for path in held.review.paths:
        questions.ask(review_items_of_file(held.review.file(path)), path)
        held.items += questions.items
    held.complete = True


def _answer_held_command(workspace: Path, decision: _HeldDecision) -> None:
    """Answer a command's approval request: apply all of its changes, none, or the kept ones."""
    from handtools.core.approval import Reply

    call_id, rejected = decision.review.call_id, decision.rejected
    with open_toolbox_at(workspace, plugins=True, yes=True) as (toolbox, record):
        short = record.calls.short(call_id)
        waiting = record.calls.suspended(call_id)
        if waiting is None or not decision.decided:
            print_remark(
                f"Call {short} is still waiting for approval: {record.suggested_command('approve', short)}"
            )
            return
        mark = waiting.approval.fingerprint
        if (
            rejected
            and len(rejected) == len(decision.items)
            and not _rejected_and_edited_parts(rejected)[1]
        ):
            toolbox.resume(call_id, Reply(allow=False, message=HELD_DENIAL, fingerprint=mark))
            print_remark(f"Denied call {short}; nothing was changed.")
            return
        if rejected:
            record.journal.pending_commands.keep(
                call_id, decision.review.without(*_rejected_and_edited_parts(rejected))
            )
        result = toolbox.resume(call_id, Reply(allow=True, fingerprint=mark))
        print_result(result, call_id, record, as_json=False)


def _is_within(path: str, folder: str) -> bool:
    return folder in ("", ".") or path == folder or path.startswith(f"{folder}/")


def _split_file_and_number(name: str) -> list[tuple[str, int]]:
    """Split `FILE:N` into file and number; empty if the name has no number."""
    path, _, number = name.rpartition(":")
    return [(path, int(number))] if path and number.isascii() and number.isdigit() else []
