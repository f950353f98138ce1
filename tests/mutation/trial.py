"""The suites of an area over a copy of `src`: collected once, then forked for each mutant."""

import ast
import contextlib
import gc
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from inspect import CO_OPTIMIZED
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal, Self

import anyio
import hypothesis
import pydantic
import pytest

Verdict = Literal["killed", "timed out", "survived"]
PRELOADED = (anyio, pydantic)
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
]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
MAX_MEMORY_BYTES = 4 << 30
SEEING = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
"""A draw that fails is enough: nobody reads the smallest one."""


class Suites:
    """Tests of an area in a process that has collected them; `with Suites(root, source, suites) as collected`."""

    def __init__(self, root: Path, source: Path, suites: tuple[str, ...]) -> None:
        self.root, self.source, self.suites = root, source, suites
        self.entered: dict[tuple[str, str], list[str]] = {}
        """The tests that enter a function, by its file and name: quick ones first."""
        self.seconds: dict[str, float] = {}
        """What each test takes of the processor; with a mutant it may take a few times as much."""

    def __enter__(self) -> Self:
        """Runs all once: they must pass."""
        self._ours, theirs = multiprocessing.Pipe()
        self._child = _started(_collect, self.root, self.source, self.suites, theirs)
        theirs.close()
        try:
            self.entered, self.seconds, failed = self._ours.recv()
        except EOFError:
            _end(self._child)
            raise SystemExit(f"{', '.join(self.suites)}: can't be collected") from None
        except BaseException:
            self.__exit__()
            raise
        if failed:
            self.__exit__()
            raise SystemExit(f"{', '.join(failed)}: fails without a mutant, so it would say nothing")
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._child.terminate()
        self._child.join(10)
        _end(self._child)

    def tests_of(self, file: str, function: str) -> list[str]:
        """Those that can see it; for what runs on import, all that enter the file; where none does here, all."""
        of_file = [test for (path, _), tests in self.entered.items() if path == file for test in tests]
        return self.entered.get((file, function)) or list(dict.fromkeys(of_file))

    def verdict(self, file: str, wrong: ast.Module, tests: list[str], limit: float) -> Verdict:
        """Whether the tests (all where none are named) fail over a wrong version of a file, within the limit."""
        path = Path(file)
        right = path.read_text("utf-8")
        # Programs that the tests start read the file.
        path.write_text(ast.unparse(wrong), "utf-8")
        try:
            selected = {test: self.seconds[test] for test in tests or self.seconds}
            self._ours.send((file, right, wrong, selected, limit))
            return self._ours.recv() or self._imported_anew(selected, limit)
        finally:
            path.write_text(right, "utf-8")

    def _imported_anew(self, selected: dict[str, float], limit: float) -> Verdict:
        places = tuple(dict.fromkeys(test.partition("::")[0] for test in selected))
        return _watched(_started(_pytest, self.root, self.source, places, Selected(selected)), limit)


class Selected:
    """A plugin that runs these tests only, in this order, each with a bound on what it takes of the processor."""

    def __init__(self, tests: dict[str, float]) -> None:
        self.tests = tests
        self.order = list(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = (each for each in items if each.nodeid in self.tests)
        items[:] = sorted(chosen, key=lambda each: self.order.index(each.nodeid))
        # What never ends may also fill all memory.
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        # The signal ends the process, so that the next mutant can have its turn.
        signal.setitimer(signal.ITIMER_PROF, 3 + 5 * self.tests[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


class Collected:
    """A plugin that does not run what was collected, but answers with what it does for each mutant."""

    def __init__(self, source: Path, asked: Connection) -> None:
        self.source, self.asked = str(source), asked
        self.in_trial = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Any:
        if self.in_trial:
            return None
        self.in_trial = True
        ours, theirs = multiprocessing.Pipe(duplex=False)
        first = _started(self._note_entered, session, theirs)
        theirs.close()
        with contextlib.suppress(EOFError):
            try:
                self.asked.send(ours.recv())
            finally:
                _end(first)
            while True:
                file, right, wrong, tests, limit = self.asked.recv()
                codes = compile(right, file, "exec"), compile(wrong, file, "exec")
                swapped = _functions_to_swap(file, *codes)
                trial = swapped and _started(self._try, session, swapped, tests)
                self.asked.send(_watched(trial, limit) if trial else None)
        return True

    def _note_entered(self, session: pytest.Session, answer: Connection) -> None:
        plugin = Entered(self.source)
        session.config.pluginmanager.register(plugin)
        _passes(session)
        answer.send((plugin.quick_first(), plugin.seconds, plugin.failed))

    def _try(
        self,
        session: pytest.Session,
        swapped: list[tuple[FunctionType, CodeType]],
        tests: dict[str, float],
    ) -> None:
        for function, code in swapped:
            function.__code__ = code
        plugin = Selected(tests)
        session.config.pluginmanager.register(plugin)
        plugin.pytest_collection_modifyitems(session.items)
        os._exit(0 if _passes(session) else 1)


class Entered:
    """A plugin that notes which tests enter which functions of the copy, and how long each takes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.codes: dict[str, dict[int, CodeType]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        codes = self.codes[item.nodeid] = {}

        def note(frame: FrameType, _event: str, _: object) -> None:
            """Given to `settrace` it sees calls; as it gives nothing back, no lines."""
            codes[id(frame.f_code)] = frame.f_code

        began = time.process_time()
        threading.settrace(note)
        sys.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.process_time() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def quick_first(self) -> dict[tuple[str, str], list[str]]:
        tests: dict[tuple[str, str], list[str]] = defaultdict(list)
        for test in sorted(self.codes, key=self.seconds.__getitem__):
            codes = [code for code in self.codes[test].values() if code.co_filename.startswith(self.source)]
            for function in {
                (code.co_filename, code.co_qualname.replace("<locals>.", "")) for code in codes
            }:
                tests[function].append(test)
        return dict(tests)


def _functions_to_swap(file: str, right: CodeType, wrong: CodeType) -> list[tuple[FunctionType, CodeType]]:
    """Functions that live and the code that they would have; none where an import would come out differently."""
    pairs = _pairs(right, wrong)
    living = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    living = [each for each in living if each.__code__.co_filename == file]
    if any(not one.co_flags & CO_OPTIMIZED and _own(one) != _own(other) for one, other in pairs):
        return []
    codes = {one: other for one, other in pairs if one != other and one.co_freevars == other.co_freevars}
    return [(each, codes[each.__code__]) for each in living if each.__code__ in codes]


def _pairs(right: CodeType, wrong: CodeType) -> list[tuple[CodeType, CodeType]]:
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (right, wrong)]
    same = [both for both in zip(*inner, strict=False) if both[0].co_qualname == both[1].co_qualname]
    return [(right, wrong), *(pair for both in same for pair in _pairs(*both))]


def _own(code: CodeType) -> CodeType:
    """What it does itself, without the functions that it makes."""
    return code.replace(co_consts=tuple(each for each in code.co_consts if not isinstance(each, CodeType)))


def _passes(session: pytest.Session) -> bool:
    try:
        session.config.hook.pytest_runtestloop(session=session)
    except (pytest.Session.Failed, pytest.Session.Interrupted):
        return False
    return not session.testsfailed


def _collect(root: Path, source: Path, suites: tuple[str, ...], asked: Connection) -> None:
    # Ended from outside, it ends its trial first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _pytest(root, source, suites, Collected(source, asked))


def _pytest(root: Path, source: Path, places: tuple[str, ...], plugin: object) -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    os.chdir(root)
    hypothesis.settings.register_profile(
        "mutation", deadline=None, max_examples=25, phases=SEEING, database=None
    )
    # Programs that the tests start take the copy, too.
    os.environ |= {"PYTHONPATH": str(source), "HYPOTHESIS_PROFILE": "mutation", "CI": ""}
    # Compiled files are known by time and size, which two mutants may share: none is written.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.path.insert(0, str(source))
    code = pytest.main([*OPTIONS, f"--basetemp={source.parent / 'tests'}", *places], plugins=[plugin])
    # A mutant may leave a thread behind that never ends.
    os._exit(int(code))


def _started(*given: Any) -> Any:
    child = multiprocessing.get_context("fork").Process(target=_alone, args=given)
    child.start()
    return child


def _alone(work: Any, *given: Any) -> None:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(*given)


def _watched(trial: Any, limit: float) -> Verdict:
    try:
        trial.join(limit)
        if trial.is_alive() or trial.exitcode == -signal.SIGPROF:
            return "timed out"
        return "killed" if trial.exitcode else "survived"
    finally:
        _end(trial)


def _end(child: Any) -> None:
    """No mutant that never ends outlives its trial, nor one that was broken off."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join()
