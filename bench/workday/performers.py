"""Performers: who carries out the calls of a story. Our tools, a sandbox for commands, or nothing but bash."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.workday.needs import registry_hosts
from bench.workday.peers import prefix
from bench.workday.place import Place
from bench.workday.story import Story
from handtools import Approval, Call, Policy, Reply, Toolbox
from handtools.toolbox import everything

SESSION = "workday"
_PEER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Said:
    """What came back from one call."""

    text: str
    job: str = ""


class Performer(Protocol):
    """Carries out calls, counts questions, and takes back what was done if it can."""

    questions: list[str]

    async def perform(self, tool: str, args: Mapping[str, Any]) -> Said:
        """Make one call."""
        ...

    async def reopen(self) -> None:
        """Go on as another process of the same session would."""
        ...

    async def end_jobs(self) -> None:
        """End what still runs in the background."""
        ...

    async def undo(self) -> str:
        """Take back the whole session; gives what was said."""
        ...

    async def close(self) -> None:
        """Leave nothing running."""
        ...


class OwnTools:
    """Our tools, with a person who answers as the story says and refuses what it does not mention."""

    def __init__(self, place: Place, story: Story) -> None:
        self.questions: list[str] = []
        self._place, self._story = place, story
        self._box = self._open()

    def _open(self) -> Toolbox:
        hosts = tuple(host for each in self._story.hosts for host in (registry_hosts(each) or (each,)))
        return everything(self._place.work, policy=Policy(hosts=hosts), approver=self._answer)

    async def _answer(self, approval: Approval) -> Reply:
        self.questions.append(approval.title)
        for answer in self._story.answers:
            if re.search(
                answer.about, f"{approval.title}\n{approval.rule}\n{approval.preview}", re.IGNORECASE
            ):
                return Reply(allow=answer.allow, remember=answer.remember)
        return Reply(allow=False, message="Not now.")

    async def perform(self, tool: str, args: Mapping[str, Any]) -> Said:
        result = await self._box.call(Call(tool=tool, args=args, session=SESSION))
        return Said(result.text, getattr(result.details, "job", ""))

    async def reopen(self) -> None:
        await self._box.aclose()
        self._box = self._open()

    async def end_jobs(self) -> None:
        listed = await self._box.call(Call(tool="jobs", args={"action": "list"}, session=SESSION))
        for job in getattr(listed.details, "jobs", []):
            await self.perform("jobs", {"action": "kill", "job": job})

    async def undo(self) -> str:
        return (await self.perform("undo", {"scope": "session", "name": SESSION})).text

    async def close(self) -> None:
        await self._box.aclose()


@dataclass(slots=True)
class CommandRunner:
    """A sandbox that runs one command after another: no tools, no questions, no undo."""

    place: Place
    prefix: tuple[str, ...] = ()
    """What stands before `bash -c SCRIPT`; nothing is no sandbox."""
    questions: list[str] = field(default_factory=list)
    _background: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    async def perform(self, tool: str, args: Mapping[str, Any]) -> Said:
        if tool == "bash":
            return await asyncio.to_thread(self._run, args)
        # Clients of these sandboxes write files outside of them.
        path = self.place.work / args["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if tool == "write":
            path.write_text(args["content"])
        else:
            path.write_text(path.read_text().replace(args["old_string"], args["new_string"], 1))
        return Said("written")

    def _run(self, args: Mapping[str, Any]) -> Said:
        log = self.place.base / f"output{len(self._background)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self.prefix, "bash", "-c", args["command"]],
                cwd=self.place.work / args.get("cwd", "."),
                env=self.place.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        if args.get("background"):
            self._background.append(process)
            return Said("started", f"job{len(self._background)}")
        try:
            process.wait(args.get("timeout", _PEER_SECONDS))
        except subprocess.TimeoutExpired:
            _end(process)
        # As our own answers end, so that a story can say what it expects of both.
        return Said(f"{log.read_text('utf-8', 'replace')}\nExit code {process.returncode}")

    async def reopen(self) -> None:
        """There is nothing that a session would keep."""

    async def end_jobs(self) -> None:
        for process in self._background:
            _end(process)

    async def undo(self) -> str:
        return "it has no undo"

    async def close(self) -> None:
        await self.end_jobs()


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def peer_performer(name: str, programs: Path) -> Callable[[Place, Story], Performer]:
    """What makes a peer; `programs` is the folder that npm installed it into."""

    def make(place: Place, story: Story) -> Performer:
        del story
        return CommandRunner(place, prefix(name, place, programs))

    return make
