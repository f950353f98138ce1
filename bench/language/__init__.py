"""Diagnostics after a change, with real servers: is any stale, a false clean or a phantom; and what do they cost.

Each server sees edits that break a line and mend it in turn, each time with another name, through `edit`, `patch`
and `bash` (`sed -i`), one by one and in bursts. The baseline is the same server with the smallest client that
knows its best signal, on a copy of the project, in the same run.
"""

import argparse
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from bench.figures import Figure, bound, gathered
from bench.language.bare import BareClient
from bench.language.projects import GOOD, PROJECTS, SEARCH_PATH, Project
from handtools.host.language.local_language import LocalLanguage
from handtools.host.language.servers import LANGUAGE_SERVERS
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

EDITS, QUICK_EDITS = 200, 14
QUICK = ("ruff", "ty", "pyrefly", "pyright", "typescript", "gopls", "clangd")
"""In CI; the classic TypeScript server takes ten seconds to start."""
UNKNOWN_SHARE = 0.02
WAIT_RATIO = 1.3
FAST_WAIT_RATIOS = {"ruff": bound(1.87), "ty": bound(1.54)}
"""Servers that answer in a few milliseconds, of which our hop to their thread is a large part: 2026-11-15."""
WARM_SECONDS = 60.0
NOTHING_MS = 1.0
_NAME = re.compile(r"wrong_\d+")
_BURST = 4


class TimedLanguage(LocalLanguage):
    """Notes how long each review took."""

    waits: list[float]

    async def review(self, *given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return await super().review(*given, **named)
        finally:
            self.waits.append(time.perf_counter() - began)


@dataclass(slots=True)
class Tally:
    """What came of the edits."""

    kinds: Counter[str] = field(default_factory=Counter)
    pairs: list[tuple[float, float]] = field(default_factory=list)
    edits: int = 0

    def judge(self, said: str, value: str) -> None:
        """Compare what the model was told with what is so."""
        self.edits += 1
        named = set(_NAME.findall(said.partition("The change was applied.")[2]))
        if "errors unknown" in said:
            self.kinds["unknown"] += 1
        elif value == GOOD:
            self.kinds["stale"] += bool(named)
            self.kinds["phantom"] += not named and "No errors" not in said
        else:
            self.kinds["false clean"] += not named
            self.kinds["stale"] += bool(named - {value})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--edits", type=int, help=f"for each server ({EDITS}; {QUICK_EDITS} with --quick)")
    parser.add_argument("--server", action="append", help="only this one; may be repeated")


def run(options: argparse.Namespace) -> Iterable[Figure]:
    wanted = options.server or (QUICK if options.quick else [each.server for each in PROJECTS])
    if missing := [name for name in wanted if not _installed(name)]:
        raise SystemExit(
            f"No {', '.join(missing)} here: `.ci/language-servers` installs it; --server NAME takes another."
        )
    edits = options.edits or (QUICK_EDITS if options.quick else EDITS)
    projects = [each for each in PROJECTS if each.server in wanted]
    # At CI's size noise decides a ratio of milliseconds: it is shown, and the counts close the gate.
    goals = {} if options.quick else dict.fromkeys(wanted, WAIT_RATIO) | FAST_WAIT_RATIOS
    return gathered(lambda: _figures(projects, edits, goals))


def _installed(name: str) -> bool:
    server = next((each for each in LANGUAGE_SERVERS if each.name == name), None)
    return server is not None and shutil.which(server.command[0], path=SEARCH_PATH) is not None


async def _figures(
    projects: list[Project], edits: int, waits: Mapping[str, float]
) -> AsyncIterator[Figure]:
    async for figure in _without_server():
        yield figure
    total = Counter[str]()
    count = 0
    for project in projects:
        with tempfile.TemporaryDirectory() as folder:
            tally = await _tallied(project, Path(folder), edits)
        total += tally.kinds
        count += tally.edits
        ratio = statistics.median(ours / bare for ours, bare in tally.pairs)
        baseline = statistics.median(bare for _, bare in tally.pairs) * 1000
        for kind in ("stale", "false clean", "phantom"):
            yield Figure(
                name=f"{project.server}: {kind}", value=tally.kinds[kind], unit=f"of {tally.edits}", goal=0
            )
        unknown = Figure(
            name=f"{project.server}: unknown",
            value=tally.kinds["unknown"],
            unit=f"of {tally.edits}",
            goal=max(UNKNOWN_SHARE * tally.edits, 1),
        )
        yield unknown
        yield Figure(
            name=f"{project.server}: wait for a verdict",
            value=round(baseline * ratio, 2),
            unit="ms",
            baseline=round(baseline, 2),
            goal=waits.get(project.server),
        )
    yield Figure(name="edits judged", value=count, unit="edits")


async def _tallied(project: Project, folder: Path, edits: int) -> Tally:
    root, copy = project.write(folder / "ours"), project.write(folder / "bare")
    language = TimedLanguage(
        root,
        cache=folder / "cache",
        runner=lambda: choose_runner().runner,
        servers=[each for each in LANGUAGE_SERVERS if each.name == project.server],
        search_path=SEARCH_PATH,
    )
    language.waits = []
    workspace = local_workspace(root, state=folder / "state", language=language)
    tally = Tally()
    bare = BareClient(project.server, copy, project.path, project.body(GOOD))
    try:
        async with Toolbox(
            CODING, workspace=workspace, policy=Policy(defaults=DEFAULTS | {"run": "allow"})
        ) as box:
            await _warmed(box, project, bare)
            await _one_by_one(box, project, bare, language, tally, edits * 3 // 4)
            await _in_bursts(box, project, tally, edits - edits * 3 // 4)
    finally:
        bare.close()
    return tally


async def _warmed(box: Toolbox, project: Project, bare: BareClient) -> None:
    """Until both servers have loaded: what a cold server costs is a figure of its own."""
    deadline = time.monotonic() + WARM_SECONDS
    while time.monotonic() < deadline:
        said = await _edit(box, project, GOOD, "wrong_0")
        await _edit(box, project, "wrong_0", GOOD)
        if "wrong_0" in said.partition("The change was applied.")[2]:
            break
    for value in ("wrong_0", GOOD):
        bare.check(project.body(value))


async def _one_by_one(
    box: Toolbox, project: Project, bare: BareClient, language: TimedLanguage, tally: Tally, edits: int
) -> None:
    now = GOOD
    for number in range(1, edits + 1):
        # Broken after broken, too: then the old name must be gone.
        then = f"wrong_{number}" if now == GOOD or number % 10 == 0 else GOOD
        way = ("edit", "edit", "patch", "bash")[number % 4]
        # In turn: whoever comes second finds the machine warmer.
        if number % 2:
            seconds, messages = bare.check(project.body(then))
        language.waits.clear()
        said = await _changed(box, project, way, now, then)
        tally.judge(said, then)
        if not number % 2:
            seconds, messages = bare.check(project.body(then))
        assert (then == GOOD) == (not any(then in message for message in messages)), messages
        tally.pairs.append((sum(language.waits), seconds))
        now = then
    if now != GOOD:
        await _edit(box, project, now, GOOD)


async def _in_bursts(box: Toolbox, project: Project, tally: Tally, edits: int) -> None:
    """Several calls at once: they take turns at the file, and each must hear of its own state."""
    value = GOOD
    for burst in range(-(-edits // _BURST)):
        values = [
            f"wrong_{1000 + burst * _BURST + step}" if step % 2 == 0 else GOOD for step in range(_BURST)
        ]
        said: dict[int, str] = {}

        async def step(index: int, old: str, new: str, said: dict[int, str] = said) -> None:
            said[index] = await _edit(box, project, old, new)

        async with anyio.create_task_group() as group:
            for index, (old, new) in enumerate(zip([value, *values], values, strict=False)):
                group.start_soon(step, index, old, new)
                await anyio.lowlevel.checkpoint()
        for index, new in enumerate(values):
            tally.judge(said[index], new)
        value = values[-1]


async def _changed(box: Toolbox, project: Project, way: str, old: str, new: str) -> str:
    if way == "edit":
        return await _edit(box, project, old, new)
    before, after = (project.line.replace("{value}", value).splitlines()[1] for value in (old, new))
    if way == "patch":
        body = f"@@\n-{before}\n+{after}\n"
        text = f"*** Begin Patch\n*** Update File: {project.path}\n{body}*** End Patch\n"
        result = await box.call("patch", {"patch": text})
    else:
        result = await box.call(
            "bash", {"command": f"sed -i 's/return {old}/return {new}/' {project.path}"}
        )
    assert result.ok, result.text
    return result.text


async def _edit(box: Toolbox, project: Project, old: str, new: str) -> str:
    args = {"path": project.path, "old_string": f"return {old}", "new_string": f"return {new}"}
    result = await box.call("edit", args)
    assert result.ok, result.text
    return result.text


async def _without_server() -> AsyncIterator[Figure]:
    """What an edit pays for servers that are not there."""
    from handtools.core.changes import Change, ChangeSet

    with tempfile.TemporaryDirectory() as folder:
        language = LocalLanguage(
            folder, cache=Path(folder, "cache"), runner=lambda: choose_runner().runner, search_path=folder
        )
        change = ChangeSet.of(Change.of("a.py", before=b"a", after=b"b"))
        took = []
        for _ in range(500):
            began = time.perf_counter()
            if any(language.speaks(each.path) for each in change):
                raise AssertionError("there is no server in an empty folder")
            took.append((time.perf_counter() - began) * 1000)
    yield Figure(name="no server: first edit", value=round(took[0], 3), unit="ms", goal=NOTHING_MS)
    yield Figure(
        name="no server: edit, 99th of 100", value=round(sorted(took)[494], 4), unit="ms", goal=NOTHING_MS
    )
