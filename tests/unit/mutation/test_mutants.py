"""Mutants are small, wrong and Python; what no user sees is left alone."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.mutation.__main__ import LISTED
from tests.mutation.areas import AREAS
from tests.mutation.mutants import mutants_of, mutated
from tests.mutation.trial import Suites

SOURCE = '''
"""A module."""
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Limit:
    most: int = field(default=3, repr=False)

    def holds(self, count: int) -> bool:
        """Whether it holds."""
        if count < self.most and not self.off:
            return True
        raise ValueError("too many")
'''
LIMIT = "def fits(count):\n    return count <= 3\n"
WEAK_TEST = "from limit import fits\n\ndef test_it():\n    assert fits(1)\n    assert not fits(9)\n"


def changes(source: str) -> list[tuple[str, str, str]]:
    return [(each.function, each.before, each.after) for each in mutants_of("m", source)]


def test_each_kind_of_mistake_is_made_once_and_named():
    assert changes(SOURCE) == [
        ("Limit.holds", "count < self.most and (not self.off)", "count < self.most or not self.off"),
        ("Limit.holds", "count < self.most", "count <= self.most"),
        ("Limit.holds", "not self.off", "self.off"),
        ("Limit.holds", "True", "False"),
        ("Limit.holds", "raise ValueError('too many')", "pass"),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_mutant_differs_in_its_one_place(number):
    mutant = mutants_of("m", SOURCE)[number]
    right, wrong = (
        ast.unparse(ast.parse(SOURCE)).splitlines(),
        ast.unparse(mutated(SOURCE, mutant)).splitlines(),
    )
    assert len([1 for one, other in zip(right, wrong, strict=True) if one != other]) == 1


@pytest.fixture
def project(tmp_path):
    """A module and its test, as a copy of `src` and a root; gives a function that writes the module."""
    source = tmp_path / "src"
    source.mkdir()
    (tmp_path / "test_limit.py").write_text(WEAK_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def write(text: str) -> tuple[Suites, str]:
        (source / "limit.py").write_text(text)
        return Suites(tmp_path, source, ("test_limit.py",)), str(source / "limit.py")

    return write


@pytest.mark.linux("fork")
@pytest.mark.parametrize("line", ["", "MOST = 3\n"], ids=["swapped", "imported anew"])
def test_a_mistake_that_a_test_sees_is_told_from_one_that_none_sees(project, line):
    module = line + (LIMIT.replace("3", "MOST") if line else LIMIT)
    collected, file = project(module)
    verdicts = {}
    with collected as suites:
        for mutant in mutants_of("limit", module):
            tests = suites.tests_of(file, mutant.function)
            verdicts[mutant.after] = suites.verdict(file, mutated(module, mutant), tests, 120)
    shown = "MOST" if line else "3"
    assert verdicts == {"return None": "killed", f"count < {shown}": "survived", "4": "survived"}


@pytest.mark.linux("fork")
def test_a_mistake_on_import_is_seen(project):
    collected, file = project("MOST = 3\n" + LIMIT.replace("3", "MOST"))
    with collected as suites:
        wrong = ast.parse("MOST = 10\n" + LIMIT.replace("3", "MOST"))
        assert suites.verdict(file, wrong, suites.tests_of(file, "module"), 120) == "killed"


@pytest.mark.linux("fork")
def test_a_mistake_that_never_ends_is_ended(project):
    collected, file = project(LIMIT)
    with collected as suites:
        wrong = ast.parse("import threading\ndef fits(count):\n    threading.Event().wait()\n")
        assert suites.verdict(file, wrong, [], 5) == "timed out"


@pytest.mark.linux("fork")
def test_a_mistake_that_takes_all_of_the_processor_is_ended(project):
    collected, file = project(LIMIT)
    with collected as suites:
        wrong = ast.parse("def fits(count):\n    while True: pass\n")
        assert suites.verdict(file, wrong, [], 3600) == "timed out"


@pytest.mark.linux("fork")
def test_tests_are_known_by_the_functions_that_they_enter(project):
    collected, file = project(LIMIT)
    with collected as suites:
        assert suites.entered == {(file, "fits"): ["test_limit.py::test_it"]}


@pytest.mark.linux("fork")
def test_suites_that_fail_without_a_mutant_say_nothing(project):
    collected, _ = project("def fits(count):\n    return True\n")
    with pytest.raises(SystemExit, match=r"test_limit\.py::test_it: fails without a mutant"), collected:
        pass


def test_every_area_has_modules_and_suites_that_are_there(pytestconfig):
    for area in AREAS.values():
        for module in area.modules:
            path = pytestconfig.rootpath.joinpath("src/handtools", *module.split("."))
            assert path.with_suffix(".py").exists() or (path / "__init__.py").exists()
        assert all((pytestconfig.rootpath / suite.partition("::")[0]).exists() for suite in area.suites)


def test_a_survivor_that_is_listed_is_a_mutant_that_is_made():
    modules = [module for area in AREAS.values() for module in area.modules]
    sources = [Path(find_spec(f"handtools.{module}").origin).read_text("utf-8") for module in modules]
    made = {str(mutant) for each in zip(modules, sources, strict=True) for mutant in mutants_of(*each)}
    assert sorted(LISTED.keys() - made) == []
