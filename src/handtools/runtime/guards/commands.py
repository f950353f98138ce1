"""Guarded commands: checked by the policy before they run; their file changes are checked, applied, recorded."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio import CancelScope, to_thread

from handtools.core.call import Call
from handtools.core.changes import Change, ChangeSet
from handtools.core.commands import (
    Command,
    CommandExit,
    CommandOutput,
    FinishedCommand,
    Job,
    OutputPage,
    OutputProgress,
)
from handtools.core.effects import CommandRun, Publication, ReadEffect
from handtools.core.errors import Denied, HostError, Stale, ToolError, WrongKind
from handtools.core.events import Event, Progressed, Visited
from handtools.core.files import FileFacts
from handtools.core.web import Visit
from handtools.runtime.approval.gate import ApprovalPending
from handtools.runtime.approval.named_files import read_named_files
from handtools.runtime.guards.files import OUTPUT_SCHEME, GuardedFiles, retry_while_links_change
from handtools.runtime.journal.change_entries import Transaction
from handtools.runtime.policy.change_rules import RuledChanges, apply_rules_to_changes
from handtools.runtime.workspace import Workspace
from handtools.text.search.glob import PathGlobs, glob_of_path
from handtools.text.terminal_emulator import decode_output, plain_output
from handtools.text.truncation import clip_text

NO_UNDO_NOTE = "Its changes were not captured and can't be undone."
COMMAND_CHANGE_NOTE = "by a command"
HELD_OUTPUT_LINES, HELD_OUTPUT_BYTES = 400, 15_000
"""Most lines and bytes of output shown for a command whose changes are pending approval."""
MAX_TIMES_ASKED = 5
"""Most approval requests for one command if the files it names keep changing before the user answers."""
HELD_CHANGES_QUESTION = "Its changes are not applied until the user has approved them."


PreparedRun = tuple[CommandRun, tuple[PathGlobs, ...]]
"""A command ready to be checked, and the paths that it can't change without an overlay."""


@dataclass(slots=True)
class GuardedCommands:
    """The commands port for one call: checks each command, runs it, and applies its file changes."""

    call: Call
    workspace: Workspace
    files: GuardedFiles
    announce: Callable[[Event], None]

    async def run(self, command: Command) -> CommandExit:
        """Check and run a command, then apply its changes. Approving the changes later does not rerun it."""
        ran = await to_thread.run_sync(self._held_or_prepared, command)
        if not isinstance(ran, FinishedCommand):
            command, read_only_globs = await self._admitted(*ran)
            ran = await self.workspace.commands.run(
                command,
                call=self._as_kept,
                show=self._announce_progress_or_visit,
                private_globs=self.files.gate.policy.hidden_globs,
                read_only_globs=read_only_globs,
                is_open=self.files.is_open,
            )
        try:
            end = await self.landed(ran, review=command.review)
        except ApprovalPending as pending:
            await to_thread.run_sync(self.workspace.journal.pending_commands.keep, self.call.id, ran)
            pending.so_far = held_command_text(ran.exit)
            raise
        except BaseException:
            with CancelScope(shield=True):
                await to_thread.run_sync(ran.discard)
            raise
        if ran.delta:
            await to_thread.run_sync(ran.discard)
        return replace(end, output=_output_with_path(end.output))

    async def start(self, command: Command, description: str) -> Job:
        """Check a command and start it in the background."""
        command, read_only_globs = await self._admitted(*await to_thread.run_sync(self._prepared, command))
        policy = self.files.gate.policy
        job = await self.workspace.commands.start(
            command,
            call=self._as_kept,
            description=description,
            private_globs=policy.hidden_globs,
            read_only_globs=read_only_globs,
            is_open=self.files.is_open,
            show=self._announce_progress_or_visit,
            settle=partial(self._apply_job_changes, review=command.review),
        )
        return _job_with_output_path(job)

    async def jobs(self) -> list[Job]:
        """List the session's background jobs, newest first."""
        return [
            _job_with_output_path(job) for job in await self.workspace.commands.jobs(self.call.session_key)
        ]

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """Wait at most `timeout` seconds for a job and return it; requests approval of its changes if needed."""
        found = await self.workspace.commands.job(job_id, self.call.session_key, timeout=timeout)
        if found.waiting is not None:
            found = replace(
                found, exit=await self._apply_after_approval(found, found.waiting), waiting=None
            )
        return _job_with_output_path(found)

    async def page(self, job_id: str, start: int, size: int) -> OutputPage:
        """Return up to `size` bytes of a job's output from offset `start`."""
        return await self.workspace.commands.page(job_id, self.call.session_key, start, size)

    async def send(self, job_id: str, data: bytes) -> None:
        """Write to a job's input; needs no approval, because the running job was approved."""
        await self.workspace.commands.send(job_id, self.call.session_key, data)

    async def kill(self, job_id: str) -> Job:
        """Kill a job with all its processes and return it."""
        return _job_with_output_path(await self.workspace.commands.kill(job_id, self.call.session_key))

    async def publish(self, job_id: str, port: int) -> Job:
        """Publish a job's port to the user, after checking the address with the policy."""
        key, host = self.call.session_key, self.workspace.commands
        where = await host.publishable(job_id, key, port)
        job = await host.job(job_id, key, timeout=0.0)
        if where not in job.published:
            await self.files.gate.admit(Publication(job=job_id, script=job.script, where=where))
            job = await host.publish(job_id, key, where)
        return _job_with_output_path(job)

    async def unpublish(self, job_id: str, port: int | None) -> Job:
        """Close a published port of a job, or all of them; needs no approval."""
        job = await self.workspace.commands.unpublish(job_id, self.call.session_key, port)
        return _job_with_output_path(job)

    def _read_only_globs(self) -> tuple[PathGlobs, ...]:
        """The paths that a command without an overlay can't change, because that needs approval."""
        named = tuple(glob_of_path(each.path) for each in self.files.named_by_git(()))
        return (*self.files.gate.policy.read_only_globs, *([PathGlobs(named)] if named else []))

    @property
    def _as_kept(self) -> Call:
        """The call with its session key, which includes the owner, as its session; for the host port."""
        return replace(self.call, session=self.call.session_key)

    def _apply_job_changes(self, finished: FinishedCommand, *, review: bool) -> CommandExit | None:
        """Apply a finished job's changes in the job's thread; None if it fails or they need approval first."""
        gate = self.files.gate
        attended = gate.approver is not None or gate.policy.unattended == "ask"
        try:
            if (
                attended
                and finished.coverage == "overlay"
                and self._is_approval_needed(finished.delta or (), review=review)
            ):
                return None
            end = anyio.run(partial(self._as_job(self.call).landed, finished, review=review))
        except Denied as denied:
            end = _exit_without_changes(finished, denied)
        except (ToolError, HostError):
            return None  # the error is reported when the job is queried
        finished.discard()
        return end

    async def _apply_after_approval(self, job: Job, finished: FinishedCommand) -> CommandExit:
        """Get approval for a finished job's changes and apply them; a denial becomes a note in the exit."""
        landing = self._as_job(replace(self.call, id=job.call_id))
        try:
            end = await landing.landed(finished, review=job.review)
        except Denied as denied:
            end = _exit_without_changes(finished, denied)
        await to_thread.run_sync(finished.discard)
        self.workspace.commands.record_job_result(job.id, self.call.session_key, end)
        return end

    def _as_job(self, call: Call) -> "GuardedCommands":
        """Return a copy that records changes under `call`, the one that started the job."""
        files = replace(
            self.files, call=call, held=frozenset(), recorded_changes=[], read_nodes={}, known_nodes={}
        )
        return replace(self, call=call, files=files)

    def _is_approval_needed(self, delta: tuple[Change, ...], *, review: bool) -> bool:
        """Whether the user must approve changes before they are applied."""
        ruled = self._ruled_changes(delta)
        if not ruled.changes:
            return False
        changes = ChangeSet(ruled.changes, COMMAND_CHANGE_NOTE, ruled.exempt)
        verdict = self.files.gate.policy.decide(changes, self.call.tool).verdict
        return review or bool(ruled.question) or verdict == "ask"

    def _held_or_prepared(self, command: Command) -> FinishedCommand | PreparedRun:
        return held_command(self.workspace, self.call) or self._prepared(command)

    def _prepared(self, command: Command) -> PreparedRun:
        """Complete a command with the session's shell state and the policy's hosts."""
        # Use this snapshot of the shell state to check, show and run the command, even if the session changes.
        inherited = self.workspace.commands.inherited_shell_state(self.call.session_key)
        folder = command.cwd and self._located_folder(command.cwd)
        env = {**command.env, **self.call.env}
        # The caller's variables override those exported by the session's scripts.
        exports = {name: value for name, value in inherited.exports.items() if name not in env}
        inherited = replace(inherited, exports=exports)
        command = replace(command, cwd=folder or inherited.cwd, inherited=inherited, env=env)
        listed = self.files.gate.policy.hosts
        if listed and command.network != "on":
            hosts = tuple(dict.fromkeys((*listed, *command.hosts)))
            command = replace(command, network="listed", hosts=hosts)
        kept_in = command.network != "on" and not command.live
        return CommandRun(
            command, confined=self.workspace.commands.confined and kept_in
        ), self._read_only_globs()

    async def _admitted(
        self, run: CommandRun, read_only_globs: tuple[PathGlobs, ...]
    ) -> tuple[Command, tuple[PathGlobs, ...]]:
        """Return a prepared command, with the paths it can't change, if it is allowed or approved."""
        if not self.files.gate.allows(run):
            await self._admit_with_named_files(run)
            # The user may have taken a long time to answer.
            read_only_globs = await to_thread.run_sync(self._read_only_globs)
        return run.command, read_only_globs

    async def _admit_with_named_files(self, run: CommandRun) -> None:
        """Return only if a command, with the current content of the files it names, is allowed or approved.

        If a file changed before the user answered, the approval is void and is requested again.
        """
        seen = await to_thread.run_sync(self._with_named_files, run)
        for _ in range(MAX_TIMES_ASKED):
            await self.files.gate.admit(seen)
            now = await to_thread.run_sync(self._with_named_files, run)
            if now == seen:
                return
            seen = now
        raise Stale(
            "The files that the command names keep changing, so no approval stays valid.",
            hint="Stop the process that changes them, then run it again.",
        )

    def _with_named_files(self, run: CommandRun) -> CommandRun:
        def is_private(path: str) -> bool:
            read = ReadEffect((path,))
            return self.files.gate.policy.decide(read, self.call.tool).verdict != "allow"

        return replace(
            run,
            files=read_named_files(self.workspace.files, run, is_private),
            home_files=self.workspace.commands.settings_left_in_home(self.call.session_key),
        )

    def _located_folder(self, path: str) -> str:
        def look() -> tuple[str, FileFacts | None]:
            located = self.workspace.files.locate(path)
            return located, self.workspace.files.facts(located)

        located, facts = retry_while_links_change(look)
        if facts is None or facts.kind != "folder":
            raise WrongKind(f"`{path}` is not a folder.", hint="Set `cwd` to a folder in the workspace.")
        return located

    async def landed(self, finished: FinishedCommand, *, review: bool) -> CommandExit:
        """Check and apply the file changes of a finished command; return its exit with the changes."""
        end = finished.exit
        if finished.delta is None:
            return replace(end, notes=(*end.notes, NO_UNDO_NOTE))
        if not finished.delta:
            return end
        if finished.coverage == "scan":
            applied_changes = ChangeSet(finished.delta, note=COMMAND_CHANGE_NOTE)
            seen_transaction = Transaction(
                applied_changes, coverage="scan", omitted=finished.omitted, happened=True
            )
            return replace(end, changes=await self.files.record_landed_changes(seen_transaction))
        ruled = await to_thread.run_sync(self._ruled_changes, finished.delta)
        end = replace(end, notes=(*end.notes, *ruled.notes))
        if not ruled.changes:
            return end
        question = ruled.question or (HELD_CHANGES_QUESTION if review else "")
        changes = ChangeSet(ruled.changes, COMMAND_CHANGE_NOTE, ruled.exempt)
        transaction = Transaction(changes, coverage=finished.coverage, omitted=finished.omitted)
        try:
            return replace(end, changes=await self.files.land(transaction, question=question))
        except Stale as stale:
            return replace(end, discarded=stale.message)

    def _ruled_changes(self, delta: tuple[Change, ...]) -> RuledChanges:
        policy = self.files.gate.policy
        return apply_rules_to_changes(
            delta,
            forbidding=lambda path, link: policy.forbidding(path, self.call.tool, link=link),
            view=self.files.view,
            open_private=self.files.is_open,
        )

    def _announce_progress_or_visit(self, shown: OutputProgress | Visit) -> None:
        if isinstance(shown, Visit):
            self.announce(Visited(self.call.id, shown))
        else:
            path = f"{OUTPUT_SCHEME}{shown.kept}" if shown.kept else ""
            self.announce(Progressed(self.call.id, shown.tail, shown.bytes, shown.clipped, path))


def held_command_text(command_exit: CommandExit) -> str:
    """Return the text for the model about a command with pending changes: output, exit code, notes."""
    whole = plain_output(decode_output(command_exit.output.head, ends=not command_exit.output.tail)).rstrip(
        "\n"
    )
    shown = clip_text(whole, max_lines=HELD_OUTPUT_LINES, max_bytes=HELD_OUTPUT_BYTES, keep="both")
    cut = shown.clipped or command_exit.output.tail
    kept = (
        f"(Full output: `{OUTPUT_SCHEME}{command_exit.output.kept}`.)"
        if cut and command_exit.output.kept
        else ""
    )
    status = (
        f"exit code {command_exit.code}"
        if command_exit.code is not None
        else f"signal {command_exit.signal}"
    )
    ended = f"The command ended with {status}; its changes are not applied yet."
    return "\n".join(filter(None, (shown.text, kept, ended, *(f"({note})" for note in command_exit.notes))))


def _exit_without_changes(finished: FinishedCommand, denied: Denied) -> CommandExit:
    return replace(
        finished.exit, notes=(*finished.exit.notes, f"None of its changes were applied: {denied}")
    )


def held_command(workspace: Workspace, call: Call) -> FinishedCommand | None:
    """Return the finished command whose changes are pending approval for a call, or None."""
    ran = workspace.journal.pending_commands.find(call.id)
    return ran and replace(ran, discard=lambda: drop_held_command(workspace, call.id))


def drop_held_command(workspace: Workspace, call_id: str) -> None:
    """Delete the stored command of a call and its captured changes; applied changes remain."""
    for item in workspace.journal.pending_commands.drop(call_id):
        if workspace.files.backups is not None:
            workspace.files.backups.delete_item_leftovers(item)


def _job_with_output_path(job: Job) -> Job:
    end = replace(job.exit, output=_output_with_path(job.exit.output)) if job.exit else None
    return replace(job, output=_output_with_path(job.output), exit=end)


def _output_with_path(output: CommandOutput) -> CommandOutput:
    return replace(output, kept=f"{OUTPUT_SCHEME}{output.kept}") if output.kept else output
