"""Guarded commands: what a tool holds instead of the machine's commands."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.changes import ChangeSet
from handtools.core.command import Command, Exit, Job, Output, Page, Ran, Shown, Visit
from handtools.core.effects import Run
from handtools.core.errors import WrongKind
from handtools.core.events import Event, Progressed, Visited
from handtools.runtime.guard import OUTPUT, GuardedFiles
from handtools.runtime.policy import Policy
from handtools.runtime.workspace import Workspace

UNDO_NOTE = "What it changed was not captured and can't be undone."


@dataclass(slots=True)
class GuardedCommands:
    """One per call: every command is judged before it runs, and what it changed lands like any change."""

    call: Call
    workspace: Workspace
    files: GuardedFiles
    announce: Callable[[Event], None]

    async def run(self, command: Command) -> Exit:
        """Ask, run, land what it changed."""
        command = await self._admitted(command)
        ran = await self.workspace.commands.run(
            command,
            call=self.call,
            show=self._show,
            private=hidden(self.files.gate.policy),
            read_only=guarded(self.files.gate.policy),
        )
        try:
            return await self._landed(ran)
        finally:
            await to_thread.run_sync(ran.discard)

    async def start(self, command: Command, description: str) -> Job:
        """Ask, and run in the background."""
        command = await self._admitted(command)
        policy = self.files.gate.policy
        job = await self.workspace.commands.start(
            command,
            call=self.call,
            description=description,
            private=hidden(policy),
            read_only=guarded(policy),
        )
        return _named(job)

    async def jobs(self) -> list[Job]:
        """The session's jobs, newest first."""
        return [_named(job) for job in await self.workspace.commands.jobs(self.call.session)]

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """One job, after waiting at most so long for its end."""
        return _named(await self.workspace.commands.job(job_id, self.call.session, timeout=timeout))

    async def page(self, job_id: str, start: int, size: int) -> Page:
        """A part of what a job printed."""
        return await self.workspace.commands.page(job_id, self.call.session, start, size)

    async def send(self, job_id: str, data: bytes) -> None:
        """Write to a job. It was allowed to run, so it is allowed to be told things; its boundary is the same."""
        await self.workspace.commands.send(job_id, self.call.session, data)

    async def kill(self, job_id: str) -> Job:
        """End a job and everything it started."""
        return _named(await self.workspace.commands.kill(job_id, self.call.session))

    async def _admitted(self, command: Command) -> Command:
        if command.cwd:
            command = replace(command, cwd=await to_thread.run_sync(self._folder, command.cwd))
        confined = self.workspace.commands.confined and command.network == "off"
        await self.files.gate.admit(Run(command, (command.script,), confined))
        return command

    def _folder(self, path: str) -> str:
        located = self.workspace.files.locate(path)
        facts = self.workspace.files.facts(located)
        if facts is None or facts.kind != "folder":
            raise WrongKind(f"`{path}` is not a folder.", hint="Give a folder of the workspace as `cwd`.")
        return located or "."

    async def _landed(self, ran: Ran) -> Exit:
        end = replace(ran.exit, output=_kept(ran.exit.output))
        if ran.delta is None:
            return replace(end, notes=(*end.notes, UNDO_NOTE))
        if not ran.delta:
            return end
        changes = await self.files.land(ChangeSet(ran.delta, note="by a command"))
        return replace(end, changes=changes)

    def _show(self, shown: Shown | Visit) -> None:
        if isinstance(shown, Visit):
            self.announce(Visited(self.call.id, shown))
        else:
            self.announce(Progressed(self.call.id, shown.tail, shown.bytes, shown.clipped))


def hidden(policy: Policy) -> tuple[str, ...]:
    """Globs of what no tool may read."""
    denied = [rule for rule in policy.rules if rule.verdict == "deny" and "read" in rule.effects]
    return (*(glob for rule in denied for glob in rule.paths), *policy.excluded)


def guarded(policy: Policy) -> tuple[str, ...]:
    """Globs of what may not be changed without a question."""
    asked = [rule for rule in policy.rules if rule.verdict != "allow" and "change" in rule.effects]
    return tuple(glob for rule in asked for glob in rule.paths)


def _named(job: Job) -> Job:
    end = replace(job.exit, output=_kept(job.exit.output)) if job.exit else None
    return replace(job, output=_kept(job.output), exit=end)


def _kept(output: Output) -> Output:
    return replace(output, kept=f"{OUTPUT}{output.kept}") if output.kept else output
