"""The suites of an area over a copy of `src`, in a process that has pytest already: its start takes longest."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import defaultdict
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

import anyio
import hypothesis
import pydantic
import pytest

Verdict = Literal["killed", "timed out", "survived"]
PRELOADED = (anyio, hypothesis, pydantic)
REWRITE = "ignore::pytest.PytestAssertRewriteWarning"
OPTIONS = [
    "-q",
    "-x",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--hypothesis-seed=0",
    "-W",
    REWRITE,
]


class Entered:
    """A plugin that notes which tests enter which functions of the copy."""

    def __init__(self, source: Path) -> None:
        self.source = str(source)
        self.test = ""
        self.tests: dict[tuple[str, str], set[str]] = defaultdict(set)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.test = item.nodeid
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code: CodeType = frame.f_code
        if event == "call" and code.co_filename.startswith(self.source):
            self.tests[code.co_filename, code.co_qualname.replace("<locals>.", "")].add(self.test)


class Selected:
    """A plugin that runs these tests only."""

    def __init__(self, tests: set[str]) -> None:
        self.tests = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]


def entered_functions(root: Path, source: Path, suites: tuple[str, ...]) -> dict[tuple[str, str], set[str]]:
    """Run all that must pass, and give the tests that enter each function: by its file and name."""
    plugin = Entered(source)
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = _started(_run, root, source, list(suites), plugin, theirs)
    theirs.close()
    try:
        return dict(ours.recv())
    except EOFError:
        raise SystemExit(f"{', '.join(suites)}: fail without a mutant, so they would say nothing") from None
    finally:
        _end(child)


def try_suites(root: Path, source: Path, suites: tuple[str, ...], tests: set[str], limit: float) -> Verdict:
    """Whether the tests (all of the suites where none are named) fail, within so many seconds."""
    places = sorted({test.partition("::")[0] for test in tests}) or list(suites)
    child = _started(_run, root, source, places, Selected(tests) if tests else None, None)
    try:
        child.join(limit)
        if child.is_alive():
            return "timed out"
        return "killed" if child.exitcode else "survived"
    finally:
        _end(child)


def _started(*given: Any) -> Any:
    child = multiprocessing.get_context("fork").Process(target=given[0], args=given[1:])
    child.start()
    return child


def _end(child: Any) -> None:
    """No mutant that never ends outlives its trial, nor one that was broken off."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join()


def _run(root: Path, source: Path, places: list[str], plugin: object, answer: Connection | None) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    os.chdir(root)
    # Programs that the tests start take the copy, too. What Hypothesis found for one mutant is not for the next.
    os.environ |= {"PYTHONPATH": str(source), "HYPOTHESIS_PROFILE": "dev", "CI": ""}
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(source.parent / str(os.getpid()))
    sys.path.insert(0, str(source))
    code = pytest.main([*OPTIONS, *places], plugins=[plugin] if plugin else [])
    if answer is not None and code == 0 and isinstance(plugin, Entered):
        answer.send(plugin.tests)
    # A mutant may leave a thread behind that never ends.
    os._exit(int(code))
