"""Live feed of what agents do in other processes, for user interfaces, with approval, cancelling and undo.

It reads only the journal, so it covers every client. `handtools watch` and other views display it.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.changes import TouchedPath
from handtools.core.errors import HandtoolsError, ToolError
from handtools.core.undo import PERSON_AGENT_NAME
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.local_journal import open_local_journal
from handtools.record.recorded_changes import ACTION_SIGNS, change_name, net_diff_text
from handtools.runtime.approval.questions import claim_reply
from handtools.runtime.journal import Journal, LoggedCall
from handtools.runtime.journal.running_calls import STALE_SECONDS, RunningCall
from handtools.text.changed_files import ChangedFile, changed_files_text
from handtools.text.git_config import enclosing_git_folder
from handtools.text.terminal_emulator import decode_output, plain_output
from handtools.text.visible_text import visible_line

if TYPE_CHECKING:
    from handtools.core.result import Result
    from handtools.toolbox import BlockingToolbox, Toolbox

CallState = Literal["running", "pending", "done", "failed", "denied", "cancelled"]
AnsweredBy = Literal["here", "agent", "another"]
"""Process that continues a call after a reply: this one or the agent's; `another` if an earlier reply counts."""

CALL_STATES: Mapping[str, CallState] = {
    "ok": "done",
    "pending": "pending",
    "denied": "denied",
    "cancelled": "cancelled",
}
"""State of a recorded call by its status in the log; any other status means `failed`."""
MAX_NEW_CALLS = 200
"""Maximum number of new calls that `news_since` returns; if there are more, the view must reload its page."""
NAMED_PATHS = 3
MAX_DIFFED_PATHS = 200
"""Maximum number of changed paths that the diff of a call includes."""
SUBJECT_CHARS = 200
SHOWN_OUTPUT_BYTES = 64 << 10
ATTEND_SECONDS = STALE_SECONDS / 3
CLOCK_TICK_NS = 20_000_000
"""A file's time may lag behind the clock by this many nanoseconds, one kernel tick."""
PLANNED_VERBS = {"created": "recreate", "changed": "restore", "deleted": "remove"}


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call in a timeline: its subject, state, changes and cost."""

    seq: int
    """Number of the call in the log, used for paging; 0 while it runs for the first time."""
    id: str
    session: str
    turn: str
    agent: str
    tool: str
    subject: str
    """The path, command or other main argument, on one line and safe to print."""
    started: float
    seconds: float
    state: CallState
    status: str
    """Status as shown in the log: `ok`, `failed exit 1`, `denied` …"""
    touched_paths: tuple[TouchedPath, ...] = ()
    """The first few paths that the call changed."""
    changed_count: int = 0
    undone: Literal["no", "partly", "yes"] = "no"
    tokens: int = 0
    """Estimated tokens of the result that the model received."""
    output_bytes: int = 0
    """Bytes that a running command has printed so far."""

    @property
    def changed_text(self) -> str:
        """The changed paths with a sign each (`+` created, `~` changed, `-` deleted), and how many more."""
        signed = [
            f"{ACTION_SIGNS[each.action]}{visible_line(each.path, 80)}" for each in self.touched_paths
        ]
        more = self.changed_count - len(signed)
        return " ".join([*signed, f"and {more:,} more"] if more > 0 else signed)


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """An unanswered approval request and its call."""

    approval: Approval
    tool: str
    args: Mapping[str, Any]
    session: str
    agent: str
    at: float
    is_awaited: bool
    """Whether the agent's process is waiting for the reply and will continue the call at once."""


@dataclass(frozen=True, slots=True)
class CallDetails:
    """Everything recorded about one call. Its texts must be escaped before they are printed."""

    call: ShownCall
    args: Mapping[str, Any]
    answer: str
    """Result text for the model; for a running command, the end of its output so far."""
    diff: str
    approval: Approval | None
    """The approval request that the call is waiting for; None if it isn't waiting."""
    cut: str = ""
    """Sentence about what was left out; empty if nothing was."""


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """Position of a reader in the feed."""

    seq: int = 0
    entry: int = 0
    unsettled: frozenset[str] = frozenset()
    """Ids of calls that were running or pending then; the next news reports their state again."""


@dataclass(frozen=True, slots=True)
class FeedNews:
    """What changed since a cursor, and all running and pending calls."""

    cursor: FeedCursor
    calls: tuple[ShownCall, ...] = ()
    """Calls that ended or whose state changed, newest first."""
    running_calls: tuple[ShownCall, ...] = ()
    pending: tuple[PendingApproval, ...] = ()
    is_cut: bool = False
    """Whether there were more new calls than returned, so that the reader should reload its page."""


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """Outcome of answering an approval request."""

    by: AnsweredBy
    reply: Reply
    """The reply that counts, which is the first one."""
    text: str = ""
    """Result text of the call, if it was run here."""


@dataclass(frozen=True, slots=True)
class RevertOutcome:
    """Outcome of an undo or redo, or of its dry run."""

    ok: bool
    text: str
    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Paths that changed since the call and were left as they are."""


@dataclass(slots=True)
class SessionFeed:
    """All calls in a workspace, from every session, client and process, for a user interface.

    Methods may be called from any thread. Reading loads no tools; the first answer or undo does.
    """

    root: Path
    state: Path | None = None
    _journal: Journal = field(init=False)
    _outputs: FolderBlobStore = field(init=False)
    _toolbox: "BlockingToolbox | None" = field(init=False, default=None)
    _version: int | None = field(init=False, default=None)
    _stamp: tuple[int, int] | None = field(init=False, default=None)
    _attended: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        opened = open_local_journal(self.root, self.state)
        self._journal = opened.journal
        self._outputs = FolderBlobStore(opened.state / "outputs")

    def recorded_calls_page(
        self, *, session: str | None = None, matching: str = "", before: int | None = None, limit: int = 100
    ) -> list[ShownCall]:
        """List recorded calls, newest first; `before` is the `seq` of the last call on the previous page.

        `matching` is text to find in the tool, arguments, status, agent, id or changed paths.
        """
        found = self._journal.calls.page(session=session, before=before, matching=matching, limit=limit)
        return [self._shown_call(logged) for logged in found]

    def sessions(self) -> list[str]:
        """List the sessions, most recently active first."""
        names: list[str] = self._journal.calls.session_names()
        return names

    def current_cursor(self) -> FeedCursor:
        """Return a cursor for the current position, to pass to `news_since` later."""
        unsettled = {each.id for each in self._journal.running.listed()}
        unsettled |= {waiting.call.id for waiting in self._journal.calls.waiting_calls()}
        return FeedCursor(
            self._journal.calls.newest_seq(), self._journal.entries.newest_finished(), frozenset(unsettled)
        )

    def record_user_watching(self) -> bool:
        """Record every few seconds that a user is watching, so that agents wait for replies.

        Returns whether it was recorded now.
        """
        if not self._is_heartbeat_due():
            return False
        self._attended = time.monotonic()
        self._journal.answers.watch()
        return True

    def is_journal_changed(self) -> bool:
        """Whether another process has written to the journal since this was last called; very cheap."""
        stamp = self._log_stamp()
        before, self._version = self._version, self._journal.data_version()
        # A write within the same clock tick would leave the file's time as it is.
        self._stamp = stamp if stamp and time.time_ns() - stamp[0] > CLOCK_TICK_NS else None
        return self._version != before

    def is_quiet(self) -> bool:
        """Whether neither `record_user_watching` nor `is_journal_changed` has anything to do; costs one `stat`."""
        return self._stamp is not None and not self._is_heartbeat_due() and self._stamp == self._log_stamp()

    def _is_heartbeat_due(self) -> bool:
        return time.monotonic() - self._attended >= ATTEND_SECONDS

    def _log_stamp(self) -> tuple[int, int] | None:
        """Time and size of SQLite's write-ahead log, which every write of any process changes."""
        try:
            found = os.stat(f"{self._journal.path}-wal")
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def news_since(self, cursor: FeedCursor) -> FeedNews:
        """Return what changed since a cursor, and all running and pending calls; reads nothing else."""
        running = {each.id: each for each in self._journal.running.listed()}
        waiting = self._journal.calls.waiting_calls()
        answered = self._journal.answers.answered() if waiting else set()
        awaited = self._journal.answers.calls_with_waiting_process() if waiting else set()
        feed_cursor = FeedCursor(
            self._journal.calls.newest_seq(),
            self._journal.entries.newest_finished(),
            frozenset(running).union(each.call.id for each in waiting),
        )
        new_calls: list[LoggedCall] = []
        if feed_cursor.seq > cursor.seq:
            new_calls = self._journal.calls.page(after=cursor.seq, limit=MAX_NEW_CALLS + 1)
        again = (cursor.unsettled | feed_cursor.unsettled) - {logged.id for logged in new_calls}
        if feed_cursor.entry > cursor.entry:
            again |= self._journal.entries.calls_undone_or_redone(cursor.entry)
        known = self._journal.calls.listed(again) if again else []
        calls = {logged.id: logged for logged in (*new_calls[:MAX_NEW_CALLS], *known)}
        # A call may stay in the table of running calls for a moment after it has ended.
        settled = {logged.id for logged in calls.values() if logged.status != "pending"}
        alive = [
            each
            for each in running.values()
            if each.id not in settled or each.started > _end_time_or_zero(calls, each)
        ]
        ids = {each.id for each in alive}
        return FeedNews(
            feed_cursor,
            tuple(self._shown_call(logged) for call_id, logged in calls.items() if call_id not in ids),
            tuple(_shown_running_call(each) for each in alive),
            tuple(
                PendingApproval(
                    each.approval,
                    each.call.tool,
                    each.call.args,
                    each.call.session,
                    each.call.agent,
                    each.at,
                    each.call.id in awaited,
                )
                for each in waiting
                if each.call.id not in answered
            ),
            is_cut=len(new_calls) > MAX_NEW_CALLS,
        )

    def call_details(self, call_id: str) -> CallDetails | None:
        """Return the details of one call, even while it runs; None if it is unknown."""
        running = next((each for each in self._journal.running.listed() if each.id == call_id), None)
        logged = self._journal.calls.find(call_id)
        if running is not None and (
            logged is None or logged.status == "pending" or running.started > logged.ended
        ):
            output, cut = self._end_of_live_output(running)
            return CallDetails(_shown_running_call(running), running.args, output, "", None, cut)
        if logged is None:
            return None
        result = self._recorded_result(call_id)
        waiting = self._journal.calls.suspended(call_id) if logged.status == "pending" else None
        changed = self._journal.entries.counted(call_id, most=NAMED_PATHS)
        diff = ""
        if changed.count:
            diff = net_diff_text(
                self._journal, self._journal.entries.first_touches(call_id, MAX_DIFFED_PATHS)
            )
        answer = result.text if result else ""
        shown = _text_of_details(result.details) if result and diff else ""
        return CallDetails(
            self._shown_call(logged),
            logged.args,
            # The full diff is returned separately, so remove it from the text.
            (answer.replace(shown, "") if shown else answer).rstrip("\n"),
            diff,
            waiting.approval if waiting else None,
            f"The first {MAX_DIFFED_PATHS} of {changed.count:,} changed paths."
            if changed.count > MAX_DIFFED_PATHS
            else "",
        )

    def answer_pending_call(self, call_id: str, reply: Reply) -> AnswerOutcome:
        """Reply to a pending call, unless it has a reply already; return the one that counts.

        If the agent's process is waiting for a reply, it continues the call; otherwise the call is run here.
        """
        pending, claim = claim_reply(self._journal, call_id, reply)
        if pending is None:
            logged = self._journal.calls.find(call_id)
            return AnswerOutcome("another", Reply(logged is not None and logged.status != "denied"))
        if claim is None:
            raise HandtoolsError("The call has changed since it was shown. Review it again.")
        reply = replace(reply, fingerprint=pending.approval.fingerprint)
        if claim.kind == "taken" or claim.reply != reply:
            return AnswerOutcome("another", claim.reply)
        if claim.kind == "awaited":
            return AnswerOutcome("agent", reply)
        result = self._open_toolbox().resume(call_id, reply)
        return AnswerOutcome("here", reply, result.text)

    def request_cancel(self, call_id: str) -> bool:
        """Ask the process that runs a call to cancel it; False if the call is no longer running."""
        asked: bool = self._journal.running.request_cancel(call_id, PERSON_AGENT_NAME)
        return asked

    def undo_or_redo_call(
        self, action: Literal["undo", "redo"], call_id: str, *, dry_run: bool, merge: bool = False
    ) -> RevertOutcome:
        """Undo or redo the changes of a call; with `dry_run`, only describe that and record nothing."""
        toolbox, change = self._open_toolbox(), change_name(self._journal, call_id)
        if dry_run:
            return anyio.run(partial(_preview_revert, toolbox.toolbox, action, change, merge=merge))
        logged = self._journal.calls.find(call_id)
        # The user requested the undo, so it needs no further approval.
        result = toolbox.call(
            Call(
                tool="undo",
                args={"action": action, "scope": "call", "name": change, "merge": merge},
                session=logged.session if logged else "",
                agent=PERSON_AGENT_NAME,
            ),
            reply=Reply(allow=True),
        )
        details = result.details
        if not result.ok or details is None:
            return RevertOutcome(ok=False, text=result.text)
        kept = tuple(conflict.path for conflict in details.conflicts)
        return RevertOutcome(bool(details.restored), result.text, tuple(details.restored), kept)

    def close(self) -> None:
        """Record that the user stopped watching, and close the journal."""
        try:
            if self._attended:
                self._journal.answers.stop_watching()
        finally:
            if self._toolbox is not None:
                self._toolbox.close()
            self._journal.close()

    def _open_toolbox(self) -> "BlockingToolbox":
        if self._toolbox is None:
            from handtools.configuration import load_configuration
            from handtools.toolbox import EVERYTHING, BlockingToolbox, Toolbox, local_workspace, plugins

            found = load_configuration(self.root)
            workspace = local_workspace(self.root, state=self.state, settings=found.settings)
            toolbox = Toolbox([*EVERYTHING, *plugins()], workspace=workspace, policy=found.policy)
            # The toolbox resumes calls whose replies were claimed through our journal, so both need the same id.
            toolbox.workspace.journal.answers.process = self._journal.answers.process
            self._toolbox = BlockingToolbox(toolbox)
        return self._toolbox

    def _shown_call(self, logged: LoggedCall) -> ShownCall:
        changed = self._journal.entries.counted(logged.id, most=NAMED_PATHS)
        recalled = self._journal.calls.recall(logged.id) or {}
        code = f" {logged.code}" if logged.code not in {"", logged.status} else ""
        return ShownCall(
            seq=logged.seq,
            id=logged.id,
            session=logged.session,
            turn=logged.turn,
            agent=logged.agent,
            tool=logged.tool,
            subject=call_subject(logged.args),
            started=logged.started,
            seconds=max(logged.ended - logged.started, 0.0),
            state=CALL_STATES.get(logged.status, "failed"),
            status=logged.status + code,
            touched_paths=changed.first,
            changed_count=changed.count,
            undone=changed.undone,
            tokens=(recalled.get("usage") or {}).get("tokens", 0),
        )

    def _recorded_result(self, call_id: str) -> "Result[Any] | None":
        from handtools.core.result import result_from_json

        recalled = self._journal.calls.recall(call_id)
        return result_from_json(recalled) if recalled else None

    def _end_of_live_output(self, running: RunningCall) -> tuple[str, str]:
        """Return the end of a running command's output, and a sentence about what was left out before it."""
        text, size = running.output, len(running.output.encode("utf-8", "replace"))
        if running.kept:
            try:
                stored = self._outputs.size(running.kept)
                if (
                    stored >= running.output_bytes
                ):  # otherwise the file is a ring buffer, and the end of the output is in the journal
                    start = max(stored - SHOWN_OUTPUT_BYTES, 0)
                    data = self._outputs.part(running.kept, start, SHOWN_OUTPUT_BYTES)
                    text, size = plain_output(decode_output(data, starts=not start, ends=False)), len(data)
            except (KeyError, ToolError):  # the command has just ended
                pass
        left = running.output_bytes - size
        return text, f"The last {size:,} of {running.output_bytes:,} bytes." if left > 0 else ""


async def _preview_revert(
    toolbox: "Toolbox", action: Literal["undo", "redo"], change: str, *, merge: bool
) -> RevertOutcome:
    """Describe what an undo or redo would do."""
    from handtools.runtime.approval.gate import ApprovalGate
    from handtools.runtime.guards.files import GuardedFiles
    from handtools.runtime.undo import GuardedHistory

    call = Call(tool="undo", args={}, agent=PERSON_AGENT_NAME)
    gate = ApprovalGate(call, toolbox.policy, None, toolbox.workspace.journal, lambda _: None)
    history = GuardedHistory(toolbox.workspace, GuardedFiles(call, toolbox.workspace, gate, lambda _: None))
    revert = history.undo if action == "undo" else history.redo
    try:
        planned = await revert("call", change, merge=merge, dry_run=True)
    except ToolError as refused:
        return RevertOutcome(ok=False, text=str(refused))
    files = [ChangedFile(PLANNED_VERBS[each.action], each.path) for each in planned.touched]
    rows = [f"{verb} {path}" for verb, path in files if not enclosing_git_folder(path)]
    git = changed_files_text([each for each in files if enclosing_git_folder(each.path)])
    rows += [f"restore {git}"] if git else []
    rows += [f"keep {conflict.path}: {conflict.reason}" for conflict in planned.conflicts]
    text = "\n".join(["It would", *(f"  {row}" for row in rows)]) if rows else "It would change nothing."
    kept = tuple(conflict.path for conflict in planned.conflicts)
    return RevertOutcome(bool(planned.restored), text, planned.restored, kept)


def call_subject(args: Mapping[str, Any]) -> str:
    """Return the subject of a call on one line: its path or command, or the first string argument."""
    texts = {name: value for name, value in args.items() if isinstance(value, str) and value}
    for name in ("path", "command", "file_path", "pattern", "name"):
        if name in texts:
            return visible_line(texts[name], SUBJECT_CHARS)
    return visible_line(next(iter(texts.values()), ""), SUBJECT_CHARS)


def _end_time_or_zero(calls: Mapping[str, LoggedCall], running: RunningCall) -> float:
    logged = calls.get(running.id)
    return logged.ended if logged else 0.0


def _shown_running_call(running: RunningCall) -> ShownCall:
    return ShownCall(
        seq=0,
        id=running.id,
        session=running.session,
        turn=running.turn,
        agent=running.agent,
        tool=running.tool,
        subject=call_subject(running.args),
        started=running.started,
        seconds=max(time.time() - running.started, 0.0),
        state="running",
        status="cancelling" if running.cancelled_by else "running",
        output_bytes=running.output_bytes,
    )


def _text_of_details(details: object) -> str:
    found: Iterable[Any] | None = details.get("diff") if isinstance(details, dict) else None
    return found if isinstance(found, str) else ""
