"""Stories: one folder each, with what a developer would be doing and how one sees from outside that it was done.

`docs/how-to/workday.md` has the keys of `story.toml`. decision 12.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
STORY_FILE = "story.toml"
Kind = Literal["stories", "safety"]
"""What must be possible, and what must not be in the same settings."""
_STEP_KEYS = {"bash", "tool", "outside", "reopen", "says", "never_says", "until", "job"}
_STORY_KEYS = {
    "does", "family", "needs", "prepare", "step", "check", "never", "answers", "environment", "hosts",
    "not_undone", "undo", "quick", "seconds",
}  # fmt: skip


class BadStory(Exception):
    """A story's file says something that the bench does not understand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a tool, or something that a person does meanwhile."""

    tool: str = ""
    """The tool that is called; empty for what a person does."""
    args: Mapping[str, Any]
    outside: str = ""
    """A script that the person runs."""
    reopen: bool = False
    """Whether our process ends here and another goes on with the session."""
    says: str = ""
    """A regular expression that the answer must match."""
    never_says: str = ""
    until: str = ""
    """The call is made again until its answer matches this; the story fails when that takes too long."""
    job: str = ""
    """The name under which later steps know the background job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the person says to a question whose title or preview matches `about`."""

    about: str
    allow: bool
    remember: Literal["once", "session", "project"] = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is in a story's folder."""

    name: str
    kind: Kind
    folder: Path
    does: str
    family: str
    needs: tuple[str, ...]
    prepare: str
    steps: tuple[Step, ...]
    check: str
    never: str
    answers: tuple[Answer, ...]
    environment: Mapping[str, str]
    hosts: tuple[str, ...]
    undone: bool
    """Whether what it did is taken back and compared; not where there is nothing that undo covers."""
    not_undone: tuple[str, ...]
    """Globs of what undo says that it does not cover, or what the person changed themselves."""
    quick: bool
    seconds: float

    @property
    def commands_only(self) -> bool:
        """Whether a sandbox for commands can be asked to do the same."""
        return all(step.tool in {"", "bash", "edit", "write"} for step in self.steps)


def all_stories(kind: Kind) -> list[Story]:
    """Every story of a kind, by name."""
    return [load_story(file.parent, kind) for file in sorted((HERE / kind).glob(f"*/{STORY_FILE}"))]


def load_story(folder: Path, kind: Kind = "stories") -> Story:
    """Read a story's folder; raises `BadStory` with what is wrong about it."""
    try:
        written = tomllib.loads((folder / STORY_FILE).read_text("utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise BadStory(f"{folder.name}: {problem}") from problem
    if unknown := set(written) - _STORY_KEYS:
        raise BadStory(f"{folder.name}: no such key: {', '.join(sorted(unknown))}")
    needed = ("does", "family", "check") if kind == "stories" else ("does", "family", "never")
    if missing := [key for key in needed if not written.get(key)]:
        raise BadStory(f"{folder.name}: it lacks {', '.join(missing)}")
    judges = written.get("check", "") + "\n" + written.get("never", "")
    if any(line.startswith("! ") for line in judges.splitlines()):
        raise BadStory(f"{folder.name}: bash goes on after `! x`; write `if x; then false; fi`")
    try:
        answers = tuple(Answer(**each) for each in written.get("answers", ()))
    except TypeError as problem:
        raise BadStory(f"{folder.name}: an answer has `about`, `allow` and `remember`: {problem}") from None
    return Story(
        name=folder.name,
        kind=kind,
        folder=folder,
        does=written["does"],
        family=written["family"],
        needs=tuple(written.get("needs", ())),
        prepare=written.get("prepare", ""),
        steps=tuple(_step(folder.name, each) for each in written.get("step", ())),
        check=written.get("check", ""),
        never=written.get("never", ""),
        answers=answers,
        environment=written.get("environment", {}),
        hosts=tuple(written.get("hosts", ())),
        undone=written.get("undo", kind == "stories"),
        not_undone=tuple(written.get("not_undone", ())),
        quick=written.get("quick", False),
        seconds=float(written.get("seconds", 120)),
    )


def _step(name: str, written: dict[str, Any]) -> Step:
    ways = [key for key in ("bash", "tool", "outside", "reopen") if key in written]
    if len(ways) != 1:
        raise BadStory(f"{name}: a step has one of bash, tool, outside and reopen; this one: {written}")
    args = {key: value for key, value in written.items() if key not in _STEP_KEYS}
    if "bash" in written:
        args["command"] = written["bash"]
    if written.get("tool") == "jobs" and "job" in written:
        args["job"] = written["job"]
    return Step(
        tool="bash" if "bash" in written else written.get("tool", ""),
        args=args,
        outside=written.get("outside", ""),
        reopen=written.get("reopen", False),
        says=written.get("says", ""),
        never_says=written.get("never_says", ""),
        until=written.get("until", ""),
        job=written.get("job", ""),
    )
