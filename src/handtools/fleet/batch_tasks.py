"""Tasks of a batch, read from JSON lines, and its folder: results, journals, what was begun. ADR 250."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handtools.core.errors import UsageError
from handtools.host.files.file_locks import try_lock, unlock

MOST_ID_CHARS = 80
RESULTS_NAME = "results.jsonl"
SETTINGS_NAME = "batch.json"
TASKS_NAME = "tasks"
JOURNAL_NAME = "journal"
WORKSPACES_NAME = "workspaces.txt"

IMAGE_PREFIX = "image:"
"""Begins the name of a template that is a container image, which may be a folder or an archive."""


class BatchTask(BaseModel):
    """One task of a batch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=MOST_ID_CHARS)
    prompt: str = ""
    template: str = ""
    """What its workspace is made of, in place of the batch's template."""
    files: dict[str, str] = {}
    """Texts by path that are written into the workspace before the agent begins."""
    setup: str = ""
    """A command that runs in the workspace before the agent begins."""
    score: str = ""
    """The command that scores it, in place of the batch's."""
    score_files: dict[str, str] = {}
    """Texts by path that are written over what the agent left, before it is scored: tests it must not change."""
    timeout: float | None = Field(None, gt=0)
    """Seconds that the agent gets, in place of the batch's."""
    metadata: dict[str, Any] = {}
    """What the agent is to know beside the prompt, in the author's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How a task ended: a line of the results."""

    id: str
    score: float | None
    """None when something failed before it could be scored."""
    seconds: float
    """How long the last attempt took, with its workspace and its score."""
    calls: int = 0
    tokens: int = 0
    """Tokens of what the tools answered; what a model used, only its agent knows."""
    changed: list[str] = field(default_factory=list)
    changed_count: int = 0
    journal: str = ""
    """The folder of its journal, in the folder of the batch."""
    error: str = ""
    attempts: int = 1
    restarted: bool = False
    """Whether an earlier run had begun it and not ended it; it began anew in a fresh workspace."""
    agent: Mapping[str, Any] = field(default_factory=dict)
    """What an agent that is a function returned."""


def read_tasks(file: Path) -> list[BatchTask]:
    """Read tasks from JSON lines; raises `UsageError` that names the line for anything that is no task.

    A template that is a path is found beside the file.
    """
    tasks: dict[str, BatchTask] = {}
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{file} can't be read: {problem}.") from problem
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = BatchTask.model_validate_json(line)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            told = f"{where}: {first['msg']}" if where else first["msg"]
            raise UsageError(f"{file}:{number} is no task: {told}.") from problem
        if task.id in tasks:
            raise UsageError(f"{file}:{number}: the id {task.id!r} is there twice.")
        if task.template:
            prefix = IMAGE_PREFIX if task.template.startswith(IMAGE_PREFIX) else ""
            place = os.path.join(file.parent, task.template.removeprefix(prefix))
            task = task.model_copy(update={"template": prefix + place})
        tasks[task.id] = task
    if not tasks:
        raise UsageError(f"{file} has no tasks.")
    return list(tasks.values())


class BatchFolder:
    """The folder of a batch, for one run at a time; use it as a context manager.

    A result is written when its task has ended, and a task that is begun has a folder: so whoever comes later can
    tell what is done, what is half-done and what was never begun.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.path = folder
        self._settings = dict(settings)
        self._lock: int | None = None
        self.results: dict[str, TaskResult] = {}

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = try_lock(self.path / "lock")
        if self._lock is None:
            raise UsageError(f"Another run is working in {self.path}.")
        try:
            self._check_settings()
            self.results = self._read_results()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            unlock(self._lock)
            self._lock = None

    def is_begun(self, task: str) -> bool:
        """Whether a run has begun a task."""
        return self.task_folder(task).exists()

    def task_folder(self, task: str) -> Path:
        """The folder of a task: what its agent printed, and its journal."""
        # An id may be `HumanEval/7`, and must not be `..`.
        return (
            self.path / TASKS_NAME / quote(task, safe=" ").replace(".", "%2E", 1 if task[0] == "." else 0)
        )

    def begin(self, task: str) -> Path:
        """Make the folder of a task, in place of what an earlier attempt left."""
        folder = self.task_folder(task)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(0o700, parents=True)
        return folder

    def note_workspace(self, task: str, workspace: str) -> None:
        """Note a workspace that was made for a task, so that a later run can remove it."""
        with (self.task_folder(task) / WORKSPACES_NAME).open("a") as file:
            file.write(f"{workspace}\n")

    def noted_workspaces(self, task: str) -> list[str]:
        """The workspaces that were made for a task."""
        try:
            return (self.task_folder(task) / WORKSPACES_NAME).read_text().split()
        except FileNotFoundError:
            return []

    def add(self, result: TaskResult) -> None:
        """Write a result down; from then on its task is not run again."""
        with (self.path / RESULTS_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.results[result.id] = result

    def _check_settings(self) -> None:
        """Refuse a folder with the results of another batch: they would be told as this one's."""
        place = self.path / SETTINGS_NAME
        if not place.exists():
            place.write_text(json.dumps(self._settings, indent=2) + "\n", "utf-8")
            return
        known = json.loads(place.read_text("utf-8"))
        other = [name for name, value in self._settings.items() if known.get(name) != value]
        if other:
            raise UsageError(
                f"{self.path} has results of another batch, whose {' and '.join(other)} "
                f"{'was' if len(other) == 1 else 'were'} different."
            )

    def _read_results(self) -> dict[str, TaskResult]:
        place = self.path / RESULTS_NAME
        if not place.exists():
            return {}
        data = place.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            os.truncate(place, len(whole))  # a run was ended while it wrote: that task begins anew
        return {each.id: each for each in _parsed_results(place, whole.splitlines())}


def _parsed_results(place: Path, lines: Iterable[bytes]) -> Iterable[TaskResult]:
    for number, line in enumerate(lines, 1):
        try:
            yield TaskResult(**json.loads(line))
        except (ValueError, TypeError) as problem:
            raise UsageError(f"{place}:{number} is no result: {problem}.") from problem
