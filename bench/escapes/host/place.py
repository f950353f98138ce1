"""The place of a host-side attack: a workspace, what lies around it, and our tools at work in it.

An attack first prepares the workspace, as an archive or a clone would bring it (`put`, `link`, `shell`, `race`),
then makes ordinary calls (`bash`, `call`). From the first call on, nothing may happen that `judge` looks for. All
that the tools say is written to the transcript.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.escapes.host.judge import Scan, scan
from handtools import Call, Policy, Reply, Result, Toolbox
from handtools.core.approval import Approval
from handtools.core.callbacks import Attachment, Callbacks
from handtools.core.events import ApprovalAsked, Event
from handtools.mcp.elicitation_and_sampling import approval_question
from handtools.toolbox import everything

PREPARED_SECONDS = 30.0
_HIDING = ("more lines", "lines more", "hidden", "not shown", "left out")
"""Words by which a question says that it does not show all."""
_SWAP = """
import ctypes, sys
libc, (here, one, other) = ctypes.CDLL(None), map(str.encode, sys.argv[1:])
while True:
    libc.renameat2(-100, here + b"/" + one, -100, here + b"/" + other, 2)
"""


@dataclass(slots=True)
class Place:
    """One workspace and its surroundings; made by the bench, used by the attack in a process of its own."""

    base: Path
    port: int
    """On loopback; whoever connects was not confined."""
    secrets: dict[str, str]
    begun: bool = False
    before: Scan = field(default_factory=Scan)
    _box: Toolbox | None = None
    _approver: Callable[[Approval], Any] | None = None
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.base / "work"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def mark(self) -> Path:
        """A file that only code outside every sandbox can make."""
        return self.outside / "mark"

    @property
    def transcript(self) -> Path:
        return self.base / "transcript"

    def furnish(self) -> None:
        """Make the folders, the private files and what is protected."""
        for folder in (self.workspace, self.outside, self.home, self.state):
            folder.mkdir(exist_ok=True)
        self.put(".env", f"KEY={self.secrets['DOTENV']}\n")
        self.put("deploy.pem", f"---\nname: deploy\ndescription: {self.secrets['PEM']}\n---\n")
        self.put(".ssh/config", f"Host {self.secrets['SSH']}\n")
        self.put("notes.txt", "one\ntwo\n")
        self.put("src/main.py", "print('main')\n")
        (self.outside / "secret.txt").write_text(f"{self.secrets['OUTSIDE']}\n")
        (self.home / ".bashrc").write_text(f"# {self.secrets['HOME']}\n")

    def environment(self) -> dict[str, str]:
        """What our process is started with: a home and a state of its own, and a secret that stays in it."""
        kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
        # A shim of a version manager looks for its programs in the person's home, which is another one here.
        folders = [each for each in os.environ["PATH"].split(os.pathsep) if not each.endswith("/shims")]
        return kept | {
            "PATH": os.pathsep.join(folders),
            "HOME": str(self.home),
            "HANDTOOLS_STATE": str(self.state),
            "HANDTOOLS_LANGUAGE": "off",
            "SERVICE_TOKEN": self.secrets["ENVIRON"],
        }

    # What an attacker prepares.

    def put(self, path: str, content: str | bytes, *, mode: int = 0o644) -> Path:
        """A file that the workspace brings along."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)
        return file

    def program(self, path: str, *, before: str = "") -> Path:
        """A program that leaves the mark when it runs outside a sandbox."""
        return self.put(path, f"#!/bin/sh\n{before}\n{self.payload}\nexit 0\n", mode=0o755)

    @property
    def payload(self) -> str:
        """Shell that leaves the mark; it does nothing inside a sandbox."""
        return f"echo $0 >> {self.mark}"

    def link(self, path: str, target: str | Path) -> None:
        """A symbolic link that the workspace brings along."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def shell(self, script: str) -> str:
        """Anything else that an archive or a clone can hold, made by a script in the workspace."""
        env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=self.workspace,
            env=env | {"OUT": str(self.outside), "PAYLOAD": self.payload},
            capture_output=True,
            timeout=PREPARED_SECONDS,
            check=True,
        )
        return done.stdout.decode().strip()

    def person(self, script: str, *, seconds: float = 20.0, **env: str) -> str:
        """What the person types in a terminal of their own, in the workspace; gives what they see."""
        self.begin()
        own = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"} | env
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.workspace,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as process:
            try:
                seen, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                seen, _ = process.communicate()
        return seen.decode("utf-8", "replace")

    def race(self, one: str, other: str) -> None:
        """Have another process exchange two names of the workspace, again and again, until the attack ends."""
        argv = [sys.executable, "-c", _SWAP, str(self.workspace), one, other]
        self.allow(one, other)
        self.keep(subprocess.Popen(argv))

    def allow(self, *paths: str) -> None:
        """Paths of the workspace whose change is no success: a person agrees to it, or the attacker makes it."""
        for path in paths:
            self.tell("allowed", path)

    def keep(self, process: "subprocess.Popen[bytes]") -> None:
        """A process that ends with the attack, however that ends."""
        self._processes.append(process)
        self.tell("process", process.pid)

    # What our tools are asked.

    async def call(self, tool: str | Call, /, **args: Any) -> Result[Any]:
        """One call, as a model makes it."""
        started = time.monotonic()
        result = await self.box.call(tool, args) if isinstance(tool, str) else await self.box.call(tool)
        name = tool if isinstance(tool, str) else tool.tool
        self.heard(name, result, seconds=time.monotonic() - started)
        return result

    async def bash(self, command: str, **args: Any) -> Result[Any]:
        """One confined command."""
        return await self.call("bash", command=command, **args)

    async def job(self, command: str, session: str = "default", **args: Any) -> Result[Any]:
        """A background job of a session, after its first line."""
        call = Call(tool="bash", args={"command": command, "background": True, **args}, session=session)
        started = await self.call(call)
        for _ in range(200):
            look = {"action": "output", "job": started.details.job}
            seen = await self.call(Call(tool="jobs", args=look, session=session))
            if "bytes of output" in seen.text and " 0 bytes" not in seen.text:
                break
        return started

    def cli(self, *words: str, **env: str) -> str:
        """Our command line, as a person types it; gives what it printed."""
        self.begin()
        done = subprocess.run(
            [sys.executable, "-m", "handtools", *words],
            cwd=self.outside,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PREPARED_SECONDS,
            check=False,
        )
        printed = (done.stdout + done.stderr).decode("utf-8", "replace")
        self.tell("said", ["cli", *words, printed])
        return printed

    async def each(self, tool: str, name: str, values: Sequence[Any], **args: Any) -> None:
        """The same call for several values of one argument."""
        for value in values:
            await self.call(tool, **{name: value}, **args)

    @property
    def box(self) -> Toolbox:
        """The toolbox, opened at the first call with what is the default."""
        return self._box or self.open()

    def open(
        self, *, runner: str = "", policy: Policy | None = None, person: "Person | None" = None
    ) -> Toolbox:
        """Open a toolbox, as the next process of ours would."""
        self.close()
        self.begin()
        options: dict[str, Any] = {"policy": policy, "approver": person}
        self._box = everything(
            self.workspace,
            runner=runner,
            callbacks=Callbacks(deliver=self._deliver),
            listeners=[self._listen],
            **options,
        )
        return self._box

    def close(self) -> None:
        """End this process's use of the workspace."""
        if self._box is not None:
            box, self._box = self._box, None
            box.workspace.commands.close()
            box.workspace.language.close()
            box.workspace.journal.close()

    def begin(self) -> None:
        """The preparation is over: what is there now is what an attacker could bring."""
        if not self.begun:
            self.begun = True
            self.before = scan(self.workspace, (self.outside, self.home))
            self.tell("before", self.before.as_json())

    async def agree(self, result: Result[Any], person: "Person") -> Result[Any] | None:
        """Put a pending question to a person, and go on with the call as they say."""
        if result.request is None:
            return None
        reply = await person(result.request)
        resumed = await self.box.resume(result.request.call_id, reply)
        self.heard("resume", resumed)
        return resumed

    async def until(self, happened: Callable[[], bool], seconds: float) -> bool:
        """Wait for something, for a bounded time."""
        deadline = time.monotonic() + seconds
        while not happened() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return happened()

    def leave(self) -> None:
        """End what the attack started."""
        for process in self._processes:
            process.kill()
            process.wait()
        self.close()

    def changes_elsewhere(self) -> list[str]:
        """What else is not as it was before the attack."""
        return []

    # The transcript.

    def tell(self, kind: str, value: object) -> None:
        """Write a line to the transcript."""
        with self.transcript.open("a") as file:
            file.write(json.dumps([kind, value]) + "\n")

    def heard(self, name: str, result: Result[Any], *, seconds: float = 0.0) -> None:
        """Write down all of a result."""
        said = [repr(result.content), repr(result.details), repr(result.changes), repr(result.fault)]
        self.tell("said", [name, result.status, *said])
        if result.fault is not None and result.fault.code == "internal":
            self.tell("bug", f"{name}: {result.fault.message}")
        if seconds:
            self.tell("took", [name, seconds])

    async def _deliver(self, attachment: Attachment) -> str:
        self.tell("said", ["delivered", attachment.name, repr(attachment.data)])
        return "delivered"

    def _listen(self, event: Event) -> None:
        if not isinstance(event, ApprovalAsked):
            self.tell("said", ["event", repr(event)])


@dataclass(slots=True)
class Person:
    """Somebody who says yes, unless the question shows what alarms them, or says that it hides something."""

    alarming: tuple[str, ...]
    seen: list[str] = field(default_factory=list)
    agreed: int = 0

    async def __call__(self, approval: Approval) -> Reply:
        shown = approval_question(approval)
        self.seen.append(shown)
        hides = any(word in shown.lower() for word in _HIDING)
        allow = not hides and not any(word in shown for word in self.alarming)
        self.agreed += allow
        return Reply(allow=allow)


def new_place(base: Path, port: int) -> Place:
    """A place with secrets of its own, each one recognisable."""
    place = Place(base, port, new_secrets())
    place.furnish()
    return place


def new_secrets(*more: str) -> dict[str, str]:
    """Secrets by what they are about."""
    names = ("DOTENV", "PEM", "SSH", "OUTSIDE", "HOME", "ENVIRON", "OTHER", "VICTIM", *more)
    return {name: f"CANARY-{name}-{secrets.token_hex(8)}" for name in names}


@contextlib.contextmanager
def changed_environment(**values: str) -> Any:
    """Variables of our own process, as a user's shell may have set them."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
