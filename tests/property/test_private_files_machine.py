"""No private file is read by a command, whatever people do to the workspace while commands run.

The tree and its watches are real. A command is a model: it sees all that is not masked for it, and what it read is
passed on unless its alarm says that it was exposed.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule

from handtools.host.sandbox import policy_paths
from handtools.host.sandbox.policy_paths import PolicyPathFinder
from handtools.text.search.glob import PathGlobs

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: watches need Linux")

PRIVATE = (
    PathGlobs((".env", "*.pem", ".ssh"), (".env.example", "**/node_modules/**")),
    PathGlobs(("conf/secret",)),
)
FOLDERS = ("", "a", "conf", "a/conf", ".ssh", "a/.ssh", "node_modules", "a/deep/er")
FILES = (".env", "key.pem", "secret", "plain", ".env.example")
folders = st.sampled_from(FOLDERS)
paths = st.builds(lambda folder, name: f"{folder}/{name}".lstrip("/"), folders, st.sampled_from(FILES))


class Command:
    """A command that runs: what is masked for it, and its alarm."""

    def __init__(self, machine: "PrivateFiles") -> None:
        self.machine = machine
        self.started = len(machine.moved)
        covered = machine.finder.covered(str(machine.root), PRIVATE, (), machine.is_open, writes_apart=True)
        self.masks = set(covered.hidden)
        self.alarm = covered.alarm
        self.alarm.set_hidden(covered.hidden)

    def sees(self, path: Path) -> bool:
        """Whether neither a path nor a folder above it is masked; a folder that moves takes its masks along."""
        masks = [each for each in (path, *path.parents) if str(each) in self.masks]
        moved = self.machine.moved[self.started :]
        return all(any(mask.is_relative_to(folder) for folder in moved) for mask in masks)


class PrivateFiles(RuleBasedStateMachine):
    """A person who makes, writes, moves and removes files, beside commands that read them."""

    commands = Bundle("commands")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.finder = PolicyPathFinder()
        self.harmless: set[str] = set()
        """Contents that calls of the agent wrote."""
        self.count = 0
        self.moved: list[Path] = []
        """Folders that were removed, and where folders were moved from and to."""
        self.explanation, policy_paths.EXPLANATION_SECONDS = policy_paths.EXPLANATION_SECONDS, 0.0

    def teardown(self) -> None:
        policy_paths.EXPLANATION_SECONDS = self.explanation
        shutil.rmtree(self.root)

    def is_open(self, path: str) -> bool:
        place = self.root / path
        return place.is_file() and place.read_text() in self.harmless

    def is_private(self, path: str) -> bool:
        return any(globs.covers(path) for globs in PRIVATE)

    def _new_content(self) -> str:
        self.count += 1
        return f"content {self.count}"

    def _made(self, path: str) -> Path | None:
        """A place for a file, with the folders above it; None if something is in the way."""
        place = self.root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        return None if place.is_dir() else place

    @initialize(some=st.lists(paths, max_size=4))
    def begin(self, some: list[str]) -> None:
        for path in some:
            if place := self._made(path):
                place.write_text(self._new_content())

    @rule(path=paths, by_call=st.booleans())
    def write(self, path: str, by_call: bool) -> None:
        if place := self._made(path):
            content = self._new_content()
            if by_call:
                self.harmless.add(content)
            place.write_text(content)

    @rule(path=paths)
    def save_by_rename(self, path: str) -> None:
        if place := self._made(path):
            beside = place.with_name("4913")
            beside.write_text(self._new_content())
            beside.replace(place)

    @rule(path=paths, command=commands)
    def make_and_remove(self, path: str, command: Command) -> None:
        place = self._made(path)
        if place and not place.exists():
            # A folder is watched from a moment after it was made: a file that is gone by then is not noticed.
            command.alarm.exposed_paths()
            place.write_text(self._new_content())
            self._read(command, path, then=place.unlink)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        if (self.root / path).is_file():
            (self.root / path).unlink()

    @rule(folder=folders)
    def remove_folder(self, folder: str) -> None:
        if folder:
            shutil.rmtree(self.root / folder, ignore_errors=True)
            self.moved.append(self.root / folder)

    @rule(source=paths | folders, goal=paths | folders)
    def move(self, source: str, goal: str) -> None:
        start, end = self.root / source, self.root / goal
        if not source or not goal or not start.exists() or end.exists() or not end.parent.is_dir():
            return
        if end.is_relative_to(start):
            return
        is_folder = start.is_dir()
        start.rename(end)
        if is_folder:
            self.moved += [start, end]

    @rule(target=commands)
    def start(self) -> Command:
        return Command(self)

    @rule(command=consumes(commands))
    def end(self, command: Command) -> None:
        command.alarm.close()

    @rule(command=commands, path=paths)
    def read(self, command: Command, path: str) -> None:
        self._read(command, path)

    def _read(self, command: Command, path: str, then=lambda: None) -> None:
        place = self.root / path
        content = place.read_text() if place.is_file() and command.sees(place) else ""
        then()
        passed_on = not command.alarm.exposed_paths()
        secret = bool(content) and content not in self.harmless and self.is_private(path)
        assert not (secret and passed_on), f"{path} was read: {content}"


TestPrivateFiles = PrivateFiles.TestCase
TestPrivateFiles.settings = settings(stateful_step_count=40)
