"""One story told in a process of its own: prepared, carried out, judged from outside, taken back, compared."""

import asyncio
import json
import os
import re
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.children import drained, run_child
from bench.workday.needs import registry_hosts
from bench.workday.performers import OwnTools, Performer
from bench.workday.place import Place, differences, new_base, remove, snapshot
from bench.workday.story import Step, Story
from handtools.text.token_estimate import estimate_tokens

UNTIL_SECONDS = 20.0
_PAUSE_SECONDS = 0.1
_FILES_LINE = re.compile(r"^Files: .*$", re.MULTILINE)
Maker = Callable[[Place, Story], Performer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a story."""

    name: str
    why: str = ""
    """Why it did not pass; empty when it did."""
    done: bool = False
    """Whether what a developer wanted is there, whatever else is."""
    undo: str = ""
    """What undo left otherwise than it was; empty when all is as before, or nothing was to be undone."""
    undone: bool = False
    """Whether that was looked at."""
    questions: tuple[str, ...] = ()
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    """Of all answers that a model would have read."""
    bash_tokens: int = 0
    files_tokens: int = 0
    """Of these, the lines about changed files."""

    @property
    def passed(self) -> bool:
        return not self.why


@dataclass(slots=True)
class AnswerTokens:
    """Counts what a model would have read."""

    calls: int = 0
    tokens: int = 0
    bash_tokens: int = 0
    files_tokens: int = 0

    def add(self, tool: str, text: str) -> None:
        """Count one answer."""
        count = estimate_tokens(text)
        self.calls += 1
        self.tokens += count
        if tool == "bash":
            self.bash_tokens += count
            self.files_tokens += sum(map(estimate_tokens, _FILES_LINE.findall(text)))


class StepFailed(Exception):
    """A step did not come to what the story says."""


def try_story(story: Story, make: Maker = OwnTools, *, idle: bool = False, undo: bool = True) -> Outcome:
    """Run one story from its beginning to its end; `idle` leaves its steps out."""
    base = new_base()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        run_child(lambda: _child(writer, Place(base), story, make, idle=idle, undo=undo))
    os.close(writer)
    handle = os.pidfd_open(pid)
    try:
        in_time = bool(select.select([handle], [], [], story.seconds)[0])
        if not in_time:
            os.killpg(pid, signal.SIGKILL)
        told = drained(reader) if in_time else b""
        os.waitpid(pid, 0)
    finally:
        os.close(handle)
        remove(base)
    if told:
        found = json.loads(told)
        return Outcome(**found | {"questions": tuple(found["questions"])})
    return Outcome(
        name=story.name, why="its process failed" if in_time else f"more than {story.seconds:g} s"
    )


def _child(writer: int, place: Place, story: Story, make: Maker, *, idle: bool, undo: bool) -> None:
    os.setsid()
    os.set_inheritable(writer, False)
    started = time.monotonic()
    place.furnish(story)
    os.environ.clear()
    os.environ.update(place.environment)
    os.chdir(place.work)
    # What tools print for a person is not for the bench's own output.
    with (place.base / "errors").open("wb") as errors:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
    if said := place.run(story.prepare):
        outcome = Outcome(name=story.name, why=f"it could not be prepared: {said}")
    elif idle:
        outcome = Outcome(name=story.name, why=_checked(place, story))
    else:
        outcome = asyncio.run(_told(place, story, make, undo=undo))
    outcome = replace(
        outcome,
        why=_without_folders(place, outcome.why),
        undo=_without_folders(place, outcome.undo),
        seconds=round(time.monotonic() - started, 2),
    )
    os.write(writer, json.dumps(asdict(outcome)).encode())


async def _told(place: Place, story: Story, make: Maker, *, undo: bool) -> Outcome:
    before = snapshot(place.work)
    performer = make(place, story)
    why, left, done, undone = "", "", False, False
    answers = AnswerTokens()
    try:
        try:
            await _carry_out(place, story, performer, answers)
        except StepFailed as failure:
            why = str(failure)
        done = not why and not (why := _checked(place, story))
        # Also where it failed: a judge may take away what should not be there.
        never = place.run(story.never)
        why = why or (f"what must not be: {never}" if never else "")
        await performer.end_jobs()
        # Where nothing was changed, an undo would show nothing.
        undone = undo and story.undone and before != snapshot(place.work)
        if undone:
            said = await performer.undo()
            left = _left(place, before, story, said)
    finally:
        await performer.close()
    return Outcome(
        name=story.name,
        why=why,
        done=done,
        undo=left,
        undone=undone,
        questions=tuple(performer.questions),
        **asdict(answers),
    )


def _checked(place: Place, story: Story) -> str:
    if said := place.run(story.check):
        last = place.answers.read_text("utf-8", "replace").rpartition("--- ")[2]
        return f"outside, {said}" + (f" (the last answer: {_short(last)})" if last else "")
    return ""


def _left(place: Place, before: Any, story: Story, said: str) -> str:
    found = differences(before, snapshot(place.work), story.not_undone)
    if not found:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{'; '.join(found[:3])}{more} (undo: {' '.join(said.split())[:160]})"


async def _carry_out(place: Place, story: Story, performer: Performer, answers: AnswerTokens) -> None:
    jobs: dict[str, str] = {}
    for number, step in enumerate(story.steps, 1):
        if step.reopen:
            await performer.reopen()
        elif step.outside:
            await _outside(place, step, number)
        else:
            await _call(place, step, number, performer, jobs, answers)


async def _outside(place: Place, step: Step, number: int) -> None:
    """The person does something; with `until` again and again until it works."""
    deadline = time.monotonic() + UNTIL_SECONDS
    while said := await asyncio.to_thread(place.run, step.outside):
        if not step.until or time.monotonic() > deadline:
            raise StepFailed(f"step {number}, the person: {said}")
        await asyncio.sleep(_PAUSE_SECONDS)


async def _call(
    place: Place,
    step: Step,
    number: int,
    performer: Performer,
    jobs: dict[str, str],
    answers: AnswerTokens,
) -> None:
    args = _filled(place, step.args)
    if args.get("job") in jobs:
        args["job"] = jobs[args["job"]]
    deadline = time.monotonic() + UNTIL_SECONDS
    while True:
        said = await performer.perform(step.tool, args)
        with place.answers.open("a") as file:
            file.write(f"--- {step.tool}\n{said.text}\n")
        answers.add(step.tool, said.text)
        if not step.until or re.search(step.until, said.text):
            break
        if time.monotonic() > deadline:
            raise StepFailed(
                f"step {number}, {step.tool} never said {step.until!r}, but {_short(said.text)}"
            )
        await asyncio.sleep(_PAUSE_SECONDS)
    if step.job and said.job:
        jobs[step.job] = said.job
    if step.says and not re.search(step.says, said.text):
        raise StepFailed(f"step {number}, {step.tool} did not say {step.says!r}, but {_short(said.text)}")
    if step.never_says and re.search(step.never_says, said.text):
        raise StepFailed(f"step {number}, {step.tool} said {step.never_says!r}: {_short(said.text)}")


def _filled(place: Place, args: Mapping[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, value in args.items():
        if name == "hosts":
            filled[name] = [host for each in value for host in (registry_hosts(each) or (each,))]
        else:
            filled[name] = place.filled(value) if isinstance(value, str) else value
    return filled


def _without_folders(place: Place, text: str) -> str:
    """A reason that reads the same in every run."""
    return text.replace(str(place.work), "PROJECT").replace(str(place.base), "BASE")


def _short(text: str) -> str:
    return repr(" ".join(text.split())[:200])
