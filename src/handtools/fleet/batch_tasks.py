"""The tasks of a batch, read from JSON lines, and the folder with their results, journals and logs."""

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

MAX_ID_CHARS = 80
RESULTS_NAME = "results.jsonl"
SETTINGS_NAME = "batch.json"
TASKS_NAME = "tasks"
JOURNAL_NAME = "journal"
WORKSPACES_NAME = "workspaces.txt"

IMAGE_PREFIX = "image:"
"""Prefix of a template source that is a container image, stored as a folder or an archive."""


class BatchTask(BaseModel):
    """One task of a batch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    prompt: str = ""
    template: str = ""
    """Template for this task's workspace, instead of the batch's template."""
    files: dict[str, str] = {}
    """Text files by path, written into the workspace before the agent starts."""
    setup: str = ""
    """A command that runs in the workspace before the agent starts."""
    score: str = ""
    """Score command, instead of the batch's."""
    score_files: dict[str, str] = {}
    """Text files by path, such as tests, that replace the agent's versions before scoring."""
    timeout: float | None = Field(None, gt=0)
    """Time limit for the agent in seconds, instead of the batch's."""
    metadata: dict[str, Any] = {}
    """Additional data for the agent; any JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task: one line of the results file."""

    id: str
    score: float | None
    """None if something failed before scoring, or there is no score command."""
    seconds: float
    """Duration of the last attempt, including workspace creation and scoring."""
    calls: int = 0
    tokens: int = 0
    """Tokens in the tools' results. The model's usage is known only to the agent."""
    changed: list[str] = field(default_factory=list)
    changed_count: int = 0
    journal: str = ""
    """The folder of the task's journal, relative to the batch's folder; empty if it was not saved."""
    error: str = ""
    attempts: int = 1
    restarted: bool = False
    """Whether an earlier run was interrupted in this task, so that it was restarted in a new workspace."""
    agent: Mapping[str, Any] = field(default_factory=dict)
    """The value that the agent returned, if it is a function."""


def read_tasks(file: Path) -> list[BatchTask]:
    """Read tasks from JSON lines. Raises `UsageError` with the line number for an invalid task.

    Template paths are relative to the file.
    """
    tasks: dict[str, BatchTask] = {}
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"Can't read {file}: {problem}.") from problem
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = BatchTask.model_validate_json(line)
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            told = f"{where}: {first['msg']}" if where else first["msg"]
            raise UsageError(f"{file}:{number} is not a valid task: {told}.") from problem
        if task.id in tasks:
            raise UsageError(f"{file}:{number}: duplicate id {task.id!r}.")
        if task.template:
            prefix = IMAGE_PREFIX if task.template.startswith(IMAGE_PREFIX) else ""
            place = os.path.join(file.parent, task.template.removeprefix(prefix))
            task = task.model_copy(update={"template": prefix + place})
        tasks[task.id] = task
    if not tasks:
        raise UsageError(f"{file} has no tasks.")
    return list(tasks.values())


class BatchFolder:
    """The folder of a batch, for one run at a time. Use it as a context manager.

    A result is written when its task ends, and a started task has a folder. So a later run can tell which
    tasks are finished, which were interrupted and which never started.
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
            raise UsageError(f"Another run is using {self.path}.")
        try:
            self._store_or_compare_settings()
            self.results = self._read_results()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            unlock(self._lock)
            self._lock = None

    def is_task_begun(self, task: str) -> bool:
        """Whether any run has started a task."""
        return self.task_folder(task).exists()

    def task_folder(self, task: str) -> Path:
        """The folder of a task, with its agent's output and its journal."""
        # Quote the id: it can be `HumanEval/7` or `..`.
        return (
            self.path / TASKS_NAME / quote(task, safe=" ").replace(".", "%2E", 1 if task[0] == "." else 0)
        )

    def create_task_folder(self, task: str) -> Path:
        """Create the folder of a task. An existing one, from an earlier attempt, is deleted first."""
        folder = self.task_folder(task)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(0o700, parents=True)
        return folder

    def record_workspace(self, task: str, workspace: str) -> None:
        """Record a workspace that was created for a task, so that a later run can delete it."""
        with (self.task_folder(task) / WORKSPACES_NAME).open("a") as file:
            file.write(f"{workspace}\n")

    def recorded_workspaces(self, task: str) -> list[str]:
        """The workspaces that were created for a task."""
        try:
            return (self.task_folder(task) / WORKSPACES_NAME).read_text().split()
        except FileNotFoundError:
            return []

    def append_result(self, result: TaskResult) -> None:
        """Append a result durably (with fsync). From then on, its task is not run again."""
        with (self.path / RESULTS_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.results[result.id] = result

    def _store_or_compare_settings(self) -> None:
        """Refuse a folder with results of another batch: they would be reported as results of this one."""
        place = self.path / SETTINGS_NAME
        if not place.exists():
            place.write_text(json.dumps(self._settings, indent=2) + "\n", "utf-8")
            return
        known = json.loads(place.read_text("utf-8"))
        other = [name for name, value in self._settings.items() if known.get(name) != value]
        if other:
            raise UsageError(
                f"{self.path} has results of another batch, whose {' and '.join(other)} "
                f"{'was' if len(other) == 1 else 'were'} different. Use another folder."
            )

    def _read_results(self) -> dict[str, TaskResult]:
        place = self.path / RESULTS_NAME
        if not place.exists():
            return {}
        data = place.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            os.truncate(place, len(whole))  # a run was killed while writing a result: that task starts over
        return {each.id: each for each in _parse_result_lines(place, whole.splitlines())}


def _parse_result_lines(place: Path, lines: Iterable[bytes]) -> Iterable[TaskResult]:
    for number, line in enumerate(lines, 1):
        try:
            yield TaskResult(**json.loads(line))
        except (ValueError, TypeError) as problem:
            raise UsageError(f"{place}:{number} is not a valid result: {problem}.") from problem
