"""The driver of a chaos run: works in many workspaces, then compares each with what was answered.

A process of its own, so that it can be killed. It notes each answer in a file; started again it goes on with the
first call that has none, under the same id.
"""

import asyncio
import hashlib
import json
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handtools.core.call import Call
from handtools.core.errors import HandtoolsError, ToolError
from handtools.core.result import Result
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.ray_fleet import Fleet

PROGRESS_NAME, TALLY_NAME = "progress.jsonl", "tally.json"
SLOTS = 40
BEGINNING = {
    "a.txt": "a\n",
    "log.txt": "",
    "table.txt": "".join(f"slot {number}: empty\n" for number in range(SLOTS)),
}
"""The files of the template, beside its repository."""
AT_ONCE = 64
PAUSE_SECONDS = 0.2
NO_OUTCOME = {"busy", "storage"}
"""Faults after which the same call is sent again."""
Kind = Literal["append", "write", "edit", "commit", "move", "read"]
LISTING = (
    "git fsck --full 2>&1 | grep -v '^dangling' ; echo ---; git log --format=%s; echo ---; "
    "git ls-tree -r --format='%(objectname) %(path)' HEAD; echo ---; "
    "find . -path ./.git -prune -o -type f -print | sort | while read -r f; do "
    'echo "$(git hash-object --no-filters "$f") ${f#./}"; done; '
    "echo ---; cat log.txt; echo ---; cat table.txt; echo ---"
)
"""Everything that is in a workspace, in parts."""


@dataclass
class Tally:
    """What was found."""

    answered: int = 0
    unknown: int = 0
    applied_of_unknown: int = 0
    sent_again: int = 0
    """Calls that were refused as busy, or could not be stored, and were sent once more."""
    unreachable: int = 0
    """Calls whose host was away for longer than a client waits, and that were sent once more."""
    kills: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.repeated or self.wrong)

    def __str__(self) -> str:
        return (
            f"{self.answered} calls answered, {self.unknown} of unknown outcome ({self.applied_of_unknown} of "
            f"them took effect), {self.sent_again} sent again, {self.unreachable} waited too long; "
            f"kills {self.kills}; store {self.faults}; {self.seconds:.0f} s: "
            f"{len(self.lost)} lost, {len(self.repeated)} repeated, {len(self.wrong)} wrong"
        )


class Step(NamedTuple):
    """One call of a workspace."""

    number: int
    kind: Kind
    about: int = 0
    """The step whose file is moved."""

    @property
    def word(self) -> str:
        return f"n{self.number}"

    def call(self, workspace: str) -> Call:
        """The call, which has the same id whenever it is sent."""
        word = self.word
        tool, args = {
            "append": ("bash", {"command": f"echo {word} >> log.txt"}),
            "write": ("write", {"path": f"{word}.txt", "content": f"{word}\n"}),
            "edit": (
                "edit",
                {
                    "path": "table.txt",
                    "old_string": f"slot {self.number}: empty\n",
                    "new_string": f"slot {self.number}: {word}\n",
                },
            ),
            "commit": ("bash", {"command": f"git add -A && git commit -q --allow-empty -m {word}"}),
            "move": ("bash", {"command": f"mkdir -p moved && mv n{self.about}.txt moved/"}),
            "read": ("read", {"path": "a.txt"}),
        }[self.kind]
        return Call(tool=tool, args=args, id=f"{workspace}.{self.number}")

    def was_applied(self, found: "FoundTree") -> bool:
        """Whether a workspace shows the step's effect."""
        return {
            "append": self.word in found.log,
            "write": not {f"{self.word}.txt", f"moved/{self.word}.txt"}.isdisjoint(found.files),
            "edit": f"slot {self.number}: {self.word}" in found.table,
            "commit": self.word in found.commits,
            "move": f"moved/n{self.about}.txt" in found.files,
            "read": False,
        }[self.kind]


def steps(seed: int, calls: int) -> list[Step]:
    """The calls of a workspace: the same ones for the same seed."""
    dice = random.Random(seed)
    made: list[Step] = []
    written: list[int] = []
    for number in range(calls):
        kinds: list[Kind] = ["append", "write", "edit", "commit", "move", "read"]
        (kind,) = dice.choices(kinds, (3, 6, 5, 2, 1, 3))
        if kind == "move" and not written:
            kind = "write"
        about = written.pop(dice.randrange(len(written))) if kind == "move" else 0
        if kind == "write":
            written.append(number)
        made.append(Step(number, kind, about))
    return made


def blob_id(content: str) -> str:
    """How git names a file's content."""
    data = content.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class FoundTree:
    """What is in a workspace."""

    damage: str
    commits: list[str]
    """The newest first."""
    committed: dict[str, str]
    files: dict[str, str]
    """Paths with the ids of their content."""
    log: list[str]
    table: list[str]

    @classmethod
    def of(cls, listing: str) -> "FoundTree":
        damage, commits, committed, files, log, table = (
            part.strip("\n").splitlines() for part in listing.split("---\n")[:6]
        )
        return cls("\n".join(damage), commits, _by_path(committed), _by_path(files), log, table)


def _by_path(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(" ") for line in lines)
    return {path: digest for digest, _, path in pairs}


class WorkspaceModel:
    """What must be in a workspace after some steps."""

    def __init__(self) -> None:
        self.files = dict(BEGINNING)
        self.commits = ["begin"]
        self.committed = dict(BEGINNING)

    def apply(self, step: Step) -> None:
        """Do what a step does."""
        word = step.word
        match step.kind:
            case "append":
                self.files["log.txt"] += f"{word}\n"
            case "write":
                self.files[f"{word}.txt"] = f"{word}\n"
            case "edit":
                old = f"slot {step.number}: empty\n"
                self.files["table.txt"] = self.files["table.txt"].replace(
                    old, f"slot {step.number}: {word}\n"
                )
            case "commit":
                self.commits.insert(0, word)
                self.committed = dict(self.files)
            case "move" if (name := f"n{step.about}.txt") in self.files:
                self.files[f"moved/{name}"] = self.files.pop(name)
            case _:
                pass


class Progress:
    """The answers so far, in a file that outlives the driver."""

    def __init__(self, path: Path) -> None:
        self.answers: dict[tuple[str, int], str] = {}
        if path.exists():
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # a killed driver may leave half a line
                    name, number, answer = json.loads(line)
                    self.answers[name, number] = answer
        # Half a line is cut off: the next one begins where it began.
        path.write_text("".join(json.dumps([*key, answer]) + "\n" for key, answer in self.answers.items()))
        self._file = path.open("a")

    def note(self, name: str, number: int, answer: str) -> None:
        """Keep an answer."""
        self.answers[name, number] = answer
        self._file.write(json.dumps([name, number, answer]) + "\n")
        self._file.flush()


UNKNOWN = "unknown"


def short_answer(result: Result[Any]) -> str:
    """What is compared of a result."""
    if result.fault is not None and result.fault.code == "unknown_outcome":
        return UNKNOWN
    if result.status != "ok":
        return f"{result.status}: {result.text}"
    return f"ok {hashlib.sha256(result.text.encode()).hexdigest()[:16]}"


class WorkspaceRun:
    """The calls of one workspace, and the comparison at the end."""

    def __init__(self, box: FleetToolbox, planned: list[Step], progress: Progress, tally: Tally) -> None:
        self.box, self.name = box, box.workspace_name
        self._steps, self._progress, self._tally = planned, progress, tally

    async def work(self, template: str, turns: asyncio.Semaphore) -> None:
        """Make the workspace, and send each call that has no answer yet."""
        if (self.name, 0) not in self._progress.answers:
            async with turns:
                await answered(self._tally, lambda: self.box.client.create(template, name=self.name))
        for step in self._steps:
            if (self.name, step.number) not in self._progress.answers:
                async with turns:
                    result = await self._answer(step.call(self.name))
                self._progress.note(self.name, step.number, short_answer(result))

    async def check(self, turns: asyncio.Semaphore) -> None:
        """Ask for every answer again, and compare the files with what they must be."""
        async with turns:
            answers = self._progress.answers
            calls = [step.call(self.name) for step in self._steps if step.kind != "read"]
            again = await answered(self._tally, lambda: self.box.call_in_order(calls))
            for call, result in zip(calls, again, strict=True):
                first = answers[self.name, int(call.id.rpartition(".")[2])]
                if short_answer(result) != first:
                    self._tally.lost.append(
                        f"{call.id}: {short_answer(result)}, not {first}: {result.text}"
                    )
            listing = await self._answer(Call(tool="bash", args={"command": LISTING}))
        self._compare(FoundTree.of(listing.text))

    def _compare(self, found: FoundTree) -> None:
        model, tally = WorkspaceModel(), self._tally
        for step in self._steps:
            answer = self._progress.answers[self.name, step.number]
            tally.answered += answer != UNKNOWN
            tally.unknown += answer == UNKNOWN
            if answer != UNKNOWN and not answer.startswith("ok") and step.kind != "move":
                tally.wrong.append(f"{self.name} {step}: {answer}")
            if answer != UNKNOWN:
                model.apply(step)
            elif step.was_applied(found):
                tally.applied_of_unknown += 1
                model.apply(step)
        for words in (found.log, found.commits):
            tally.repeated += [f"{self.name}: {word}" for word in set(words) if words.count(word) > 1]
        if found.damage:
            tally.wrong.append(f"{self.name}: {found.damage}")
        if model.commits != found.commits:
            tally.lost.append(f"{self.name}: commits {found.commits}, not {model.commits}")
        for what, is_there, expected in (
            ("files", found.files, model.files),
            ("committed", found.committed, model.committed),
        ):
            wanted = {path: blob_id(content) for path, content in expected.items()}
            tally.lost += [f"{self.name}: {what} {path}" for path in wanted if path not in is_there]
            tally.wrong += [
                f"{self.name}: {what} {path}" for path in is_there if wanted.get(path) != is_there[path]
            ]

    async def _answer(self, call: Call) -> Result[Any]:
        """The result of a call; what was refused, or could not be stored, is sent again."""
        while True:
            result: Result[Any] = await answered(self._tally, lambda: self.box.call(call))
            if result.fault is None or result.fault.code not in NO_OUTCOME:
                return result
            self._tally.sent_again += 1
            await _pause()


async def _pause() -> None:
    """Let the others have the store for a moment."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(PAUSE_SECONDS, over.set_result, None)
    await over


async def answered(tally: Tally, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What a host answers, however often it has to be asked."""
    while True:
        try:
            return await ask()
        except ToolError as refused:
            if refused.code not in NO_OUTCOME:
                raise
            tally.sent_again += 1
        except HandtoolsError as problem:
            print(problem, file=sys.stderr, flush=True)
            tally.unreachable += 1
        await _pause()


async def drive(folder: Path, *, fleet_name: str, workspaces: int, calls: int, seed: int) -> Tally:
    """Work in the workspaces of a fleet on the cluster that this process is connected to."""
    fleet, tally, turns = Fleet.connect(fleet_name), Tally(), asyncio.Semaphore(AT_ONCE)
    template = await answered(tally, lambda: fleet.add_template("folder", str(folder / "source")))
    progress, hosts = Progress(folder / PROGRESS_NAME), sorted(fleet.hosts)
    runs = [
        WorkspaceRun(
            fleet.toolbox(f"{hosts[number % len(hosts)]}-w{number}"),
            steps(seed * 10_000 + number, calls),
            progress,
            tally,
        )
        for number in range(workspaces)
    ]
    await asyncio.gather(*(run.work(template, turns) for run in runs))
    await asyncio.gather(*(run.check(turns) for run in runs))
    await fleet.aclose()
    return tally


def main() -> None:
    import ray

    folder = Path(sys.argv[1])
    options = json.loads((folder / "options.json").read_text())
    ray.init(options.pop("address"), logging_level="ERROR", log_to_driver=False)
    tally = asyncio.run(drive(folder, **options))
    (folder / TALLY_NAME).write_text(json.dumps(asdict(tally)))


if __name__ == "__main__":
    main()
