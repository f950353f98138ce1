"""Guarded commands: judged by policy before they run; their file changes are judged, applied and recorded.

ADR 61.
"""

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

NO_UNDO_NOTE = "What it changed was not captured and can't be undone."
COMMAND_CHANGE_NOTE = "by a command"
HELD_OUTPUT_LINES, HELD_OUTPUT_BYTES = 400, 15_000
"""Most output that is shown of a command whose changes wait for an approval."""
MAX_TIMES_ASKED = 5
"""How often a command is asked about whose files change while somebody answers."""
HELD_CHANGES_QUESTION = "Its changes are held until a person has seen them."


@dataclass(slots=True)
class GuardedCommands:
    """The commands port for one call: judges each command by policy, runs it, applies its file changes."""

    call: Call
    workspace: Workspace
    files: GuardedFiles
    announce: Callable[[Event], None]

    async def run(self, command: Command) -> CommandExit:
        """Judge and run a command, then apply its changes; after an approval of the changes it is not run
        again.
        """
        ran = await to_thread.run_sync(held_command, self.workspace, self.call)
        if ran is None:
            command = await self._admitted(command)
            ran = await self.workspace.commands.run(
                command,
                call=self._as_kept,
                show=self._show,
                private=self.files.gate.policy.hidden_globs,
                read_only=await to_thread.run_sync(self._read_only),
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
        await to_thread.run_sync(ran.discard)
        return replace(end, output=_output_with_path(end.output))

    async def start(self, command: Command, description: str) -> Job:
        """Judge a command and start it in the background."""
        command = await self._admitted(command)
        policy = self.files.gate.policy
        job = await self.workspace.commands.start(
            command,
            call=self._as_kept,
            description=description,
            private=policy.hidden_globs,
            read_only=await to_thread.run_sync(self._read_only),
            is_open=self.files.is_open,
            show=self._show,
            settle=partial(self._settled, review=command.review),
        )
        return _job_with_output_path(job)

    async def jobs(self) -> list[Job]:
        """List the session's background jobs, newest first."""
        return [
            _job_with_output_path(job) for job in await self.workspace.commands.jobs(self.call.session_key)
        ]

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """Return a job after waiting at most `timeout` seconds; asks for approval of its changes if needed."""
        found = await self.workspace.commands.job(job_id, self.call.session_key, timeout=timeout)
        if found.waiting is not None:
            found = replace(found, exit=await self._asked(found, found.waiting), waiting=None)
        return _job_with_output_path(found)

    async def page(self, job_id: str, start: int, size: int) -> OutputPage:
        """Return up to `size` bytes of a job's output from offset `start`."""
        return await self.workspace.commands.page(job_id, self.call.session_key, start, size)

    async def send(self, job_id: str, data: bytes) -> None:
        """Write to a job's input, without another approval, as the running job was approved."""
        await self.workspace.commands.send(job_id, self.call.session_key, data)

    async def kill(self, job_id: str) -> Job:
        """Kill a job with all its processes and return it."""
        return _job_with_output_path(await self.workspace.commands.kill(job_id, self.call.session_key))

    async def publish(self, job_id: str, port: int) -> Job:
        """Judge where the person is to reach a port of a job, then publish it there."""
        key, host = self.call.session_key, self.workspace.commands
        where = await host.publishable(job_id, key, port)
        job = await host.job(job_id, key, timeout=0.0)
        if where not in job.published:
            await self.files.gate.admit(Publication(job=job_id, script=job.script, where=where))
            job = await host.publish(job_id, key, where)
        return _job_with_output_path(job)

    async def unpublish(self, job_id: str, port: int | None) -> Job:
        """Close a published port of a job, or all of them; nobody needs to be asked for that."""
        job = await self.workspace.commands.unpublish(job_id, self.call.session_key, port)
        return _job_with_output_path(job)

    def _read_only(self) -> tuple[PathGlobs, ...]:
        """The paths that a command which writes in place must not change, as a change of them would ask."""
        named = tuple(glob_of_path(each.path) for each in self.files.named_by_git(()))
        return (*self.files.gate.policy.read_only_globs, *([PathGlobs(named)] if named else []))

    @property
    def _as_kept(self) -> Call:
        """The call with the owner's session key as its session, for the machine's port."""
        return replace(self.call, session=self.call.session_key)

    def _settled(self, ran: FinishedCommand, *, review: bool) -> CommandExit | None:
        """Apply a finished job's changes in its thread; return None if a person must be asked first."""
        gate = self.files.gate
        attended = gate.approver is not None or gate.policy.unattended == "ask"
        try:
            if attended and ran.coverage == "overlay" and self._asks(ran.delta or (), review=review):
                return None
            end = anyio.run(partial(self._as_job(self.call).landed, ran, review=review))
        except Denied as denied:
            end = _exit_without_changes(ran, denied)
        except (ToolError, HostError):
            return None  # who looks at the job is told
        ran.discard()
        return end

    async def _asked(self, job: Job, ran: FinishedCommand) -> CommandExit:
        """Apply the changes of a finished job after asking; a refusal becomes a note in the exit."""
        landing = self._as_job(replace(self.call, id=job.call_id))
        try:
            end = await landing.landed(ran, review=job.review)
        except Denied as denied:
            end = _exit_without_changes(ran, denied)
        await to_thread.run_sync(ran.discard)
        self.workspace.commands.record_job_result(job.id, self.call.session_key, end)
        return end

    def _as_job(self, call: Call) -> "GuardedCommands":
        """Return a copy that records changes for the call that started the job."""
        files = replace(self.files, call=call, held=frozenset(), landed=[], sights={})
        return replace(self, call=call, files=files)

    def _asks(self, delta: tuple[Change, ...], *, review: bool) -> bool:
        """Whether a person must approve changes before they are applied."""
        ruled = self._ruled(delta)
        if not ruled.changes:
            return False
        changes = ChangeSet(ruled.changes, COMMAND_CHANGE_NOTE, ruled.exempt)
        verdict = self.files.gate.policy.decide(changes, self.call.tool).verdict
        return review or bool(ruled.question) or verdict == "ask"

    async def _admitted(self, command: Command) -> Command:
        # What the session is like now is what is judged, shown and run, whatever becomes of the session meanwhile.
        inherited = await to_thread.run_sync(
            self.workspace.commands.inherited_shell_state, self.call.session_key
        )
        folder = command.cwd and await to_thread.run_sync(self._folder, command.cwd)
        env = {**command.env, **self.call.env}
        # The caller's word goes before what a script of the session exported.
        exports = {name: value for name, value in inherited.exports.items() if name not in env}
        inherited = replace(inherited, exports=exports)
        command = replace(command, cwd=folder or inherited.cwd, inherited=inherited, env=env)
        listed = self.files.gate.policy.hosts
        if listed and command.network != "on":
            hosts = tuple(dict.fromkeys((*listed, *command.hosts)))
            command = replace(command, network="listed", hosts=hosts)
        kept_in = command.network != "on" and not command.live
        confined = self.workspace.commands.confined and kept_in
        run = CommandRun(command, confined=confined)
        if not self.files.gate.allows(run):
            await self._ask(run)
        return command

    async def _ask(self, run: CommandRun) -> None:
        """Return if a person or a grant allows a command with the files that it names as they are now.

        Whoever answers takes time: a yes is void if a file has changed meanwhile, and it is asked again.
        """
        seen = await to_thread.run_sync(self._with_named_files, run)
        for _ in range(MAX_TIMES_ASKED):
            await self.files.gate.admit(seen)
            now = await to_thread.run_sync(self._with_named_files, run)
            if now == seen:
                return
            seen = now
        raise Stale(
            "The files that the command names change all the time, so no approval of it stays valid.",
            hint="Stop what changes them, then run it again.",
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

    def _folder(self, path: str) -> str:
        def look() -> tuple[str, FileFacts | None]:
            located = self.workspace.files.locate(path)
            return located, self.workspace.files.facts(located)

        located, facts = retry_while_links_change(look)
        if facts is None or facts.kind != "folder":
            raise WrongKind(f"`{path}` is not a folder.", hint="Give a folder of the workspace as `cwd`.")
        return located

    async def landed(self, ran: FinishedCommand, *, review: bool) -> CommandExit:
        """Judge and apply the file changes of a finished command; return its exit with the changes."""
        end = ran.exit
        if ran.delta is None:
            return replace(end, notes=(*end.notes, NO_UNDO_NOTE))
        if not ran.delta:
            return end
        if ran.coverage == "scan":
            done = ChangeSet(ran.delta, note=COMMAND_CHANGE_NOTE)
            seen = Transaction(done, coverage="scan", omitted=ran.omitted, happened=True)
            return replace(end, changes=await self.files.record_landed_changes(seen))
        ruled = await to_thread.run_sync(self._ruled, ran.delta)
        end = replace(end, notes=(*end.notes, *ruled.notes))
        if not ruled.changes:
            return end
        question = ruled.question or (HELD_CHANGES_QUESTION if review else "")
        changes = ChangeSet(ruled.changes, COMMAND_CHANGE_NOTE, ruled.exempt)
        transaction = Transaction(changes, coverage=ran.coverage, omitted=ran.omitted)
        return replace(end, changes=await self.files.land(transaction, question=question))

    def _ruled(self, delta: tuple[Change, ...]) -> RuledChanges:
        policy = self.files.gate.policy
        return apply_rules_to_changes(
            delta,
            forbidding=lambda path, link: policy.forbidding(path, self.call.tool, link=link),
            view=self.files.view,
            open_private=self.files.is_open,
        )

    def _show(self, shown: OutputProgress | Visit) -> None:
        if isinstance(shown, Visit):
            self.announce(Visited(self.call.id, shown))
        else:
            path = f"{OUTPUT_SCHEME}{shown.kept}" if shown.kept else ""
            self.announce(Progressed(self.call.id, shown.tail, shown.bytes, shown.clipped, path))


def held_command_text(end: CommandExit) -> str:
    """Return what a model is told of a command that ended and whose changes wait: output, exit code, notes."""
    whole = plain_output(decode_output(end.output.head, ends=not end.output.tail)).rstrip("\n")
    shown = clip_text(whole, max_lines=HELD_OUTPUT_LINES, max_bytes=HELD_OUTPUT_BYTES, keep="both")
    cut = shown.clipped or end.output.tail
    kept = f"(The whole output is `{OUTPUT_SCHEME}{end.output.kept}`.)" if cut and end.output.kept else ""
    status = f"exit code {end.code}" if end.code is not None else f"signal {end.signal}"
    ended = f"It ran and ended with {status}; what it changed has not landed yet."
    return "\n".join(filter(None, (shown.text, kept, ended, *(f"({note})" for note in end.notes))))


def _exit_without_changes(ran: FinishedCommand, denied: Denied) -> CommandExit:
    return replace(ran.exit, notes=(*ran.exit.notes, f"Nothing of what it changed was kept: {denied}"))


def held_command(workspace: Workspace, call: Call) -> FinishedCommand | None:
    """Return the finished command whose changes a call asked approval for, or None."""
    ran = workspace.journal.pending_commands.find(call.id)
    return ran and replace(ran, discard=lambda: drop_held_command(workspace, call.id))


def drop_held_command(workspace: Workspace, call_id: str) -> None:
    """Delete the stored command of a call and its captured changes; applied changes stay."""
    for item in workspace.journal.pending_commands.drop(call_id):
        if workspace.files.vault is not None:
            workspace.files.vault.delete_item_leftovers(item)


def _job_with_output_path(job: Job) -> Job:
    end = replace(job.exit, output=_output_with_path(job.exit.output)) if job.exit else None
    return replace(job, output=_output_with_path(job.output), exit=end)


def _output_with_path(output: CommandOutput) -> CommandOutput:
    return replace(output, kept=f"{OUTPUT_SCHEME}{output.kept}") if output.kept else output
