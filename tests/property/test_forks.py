"""A machine of writes, removals, moves and forks over layered workspaces, held against plain dictionaries."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from handtools.fleet.templates import digest_of_folder
from handtools.fleet.workspaces import WorkspaceStore
from handtools.host.sandbox.overlay.overlay_mount import overlay_mount_problem

START: dict[str, bytes | None] = {"a": b"1", "d": None, "d/b": b"2", "d/e": None, "d/e/c": b"3"}
"""Files with their bytes, folders with None."""
PATHS = st.sampled_from(["a", "d", "d/b", "d/e", "d/e/c", "n", "n/x"])
Model = dict[str, bytes | None]


class Forks(RuleBasedStateMachine):
    """Each workspace is what was done in it and in none of the others, and the template is what it was."""

    kind: Literal["overlay", "copy"] = "overlay"
    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        if self.kind == "overlay" and (problem := overlay_mount_problem(self.folder)):
            pytest.skip(f"machine: {problem}")
        self.store = WorkspaceStore(Path(self.folder, "fleet"), kind=self.kind)
        source = Path(self.folder, "source")
        source.mkdir()
        for path, data in START.items():
            _make(source, path, data)
        self.template = self.store.templates.add_folder(source)
        self.models: dict[str, Model] = {}
        self.begun: dict[str, Model] = {}

    @initialize(target=names)
    def first(self) -> str:
        return self._known(self.store.create(self.template.digest).id, START)

    @rule(target=names)
    def another(self) -> str:
        return self._known(self.store.create(self.template.digest).id, START)

    @rule(target=names, name=names)
    def fork(self, name: str) -> str:
        return self._known(self.store.fork(name)[0].id, self.models[name])

    @rule(name=names, path=PATHS, data=st.binary(max_size=3))
    def write(self, name: str, path: str, data: bytes) -> None:
        model = self.models[name]
        above = os.path.dirname(path)
        if (above and model.get(above, b"") is not None) or model.get(path, b"") is None:
            return
        _make(self.store.files_folder(name), path, data)
        model[path] = data

    @rule(name=names, path=PATHS)
    def make_folder(self, name: str, path: str) -> None:
        model = self.models[name]
        above = os.path.dirname(path)
        if path not in model and (not above or model.get(above, b"") is None):
            _make(self.store.files_folder(name), path, None)
            model[path] = None

    @rule(name=names, path=PATHS)
    def remove(self, name: str, path: str) -> None:
        place, model = self.store.files_folder(name) / path, self.models[name]
        if path in model:
            shutil.rmtree(place) if model[path] is None else place.unlink()
            for each in _below(model, path):
                del model[each]

    @rule(name=names, path=PATHS, to=st.sampled_from(["moved", "d/moved"]))
    def move(self, name: str, path: str, to: str) -> None:
        model = self.models[name]
        above = os.path.dirname(to)
        if path not in model or to in model or f"{to}/".startswith(f"{path}/"):
            return
        if above and model.get(above, b"") is not None:
            return
        shutil.move(self.store.files_folder(name) / path, self.store.files_folder(name) / to)
        for each in _below(model, path):
            model[to + each[len(path) :]] = model.pop(each)

    @rule(name=names)
    def close_and_open(self, name: str) -> None:
        self.store.close(name)
        self.store.open(name)

    @rule(name=names)
    def differences_are_what_was_done(self, name: str) -> None:
        model, begun = self.models[name], self.begun[name]
        changed = {p for p in {*model, *begun} if model.get(p, b"-") != begun.get(p, b"-")}
        assert {each.path for each in self.store.diff(name)} == changed

    @rule()
    def collect(self) -> None:
        self.store.collect_garbage(templates_unused_seconds=0)

    @invariant()
    def all_are_as_they_should_be(self) -> None:
        for name, model in self.models.items():
            assert _read(self.store.files_folder(name)) == model

    def teardown(self) -> None:
        assert digest_of_folder(self.template.tree) == self.template.digest
        self.store.close_all()
        shutil.rmtree(self.folder)

    def _known(self, name: str, model: Model) -> str:
        self.models[name], self.begun[name] = dict(model), dict(model)
        return name


class CopiedForks(Forks):
    """The same where overlays can't be mounted."""

    kind = "copy"


def _make(root: Path, path: str, data: bytes | None) -> None:
    if data is None:
        (root / path).mkdir()
    else:
        (root / path).write_bytes(data)


def _below(model: Model, path: str) -> list[str]:
    return [each for each in model if each == path or each.startswith(f"{path}/")]


def _read(root: Path) -> Model:
    return {
        str(each.relative_to(root)): None if each.is_dir() else each.read_bytes()
        for each in root.rglob("*")
    }


TestForks = Forks.TestCase
TestCopiedForks = CopiedForks.TestCase
TestForks.settings = TestCopiedForks.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None
)
