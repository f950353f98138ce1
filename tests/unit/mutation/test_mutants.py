"""Mutants are small, wrong and Python; what no user sees is left alone."""

import ast

import pytest

from tests.mutation.areas import AREAS
from tests.mutation.mutants import mutants_of, mutated
from tests.mutation.trial import entered_functions, try_suites

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
        ("Limit.holds", "return True", "return None"),
        ("Limit.holds", "True", "False"),
        ("Limit.holds", "raise ValueError('too many')", "pass"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_mutant_differs_in_its_one_place(number):
    mutant = mutants_of("m", SOURCE)[number]
    right, wrong = ast.unparse(ast.parse(SOURCE)).splitlines(), mutated(SOURCE, mutant).splitlines()
    assert len([1 for one, other in zip(right, wrong, strict=True) if one != other]) == 1


@pytest.fixture
def project(tmp_path):
    """A module and its test, as a copy of `src` and a root; gives a function that tries a source."""
    source = tmp_path / "src"
    source.mkdir()
    (tmp_path / "test_limit.py").write_text(WEAK_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def write(text: str) -> tuple:
        (source / "limit.py").write_text(text)
        return tmp_path, source, ("test_limit.py",)

    return write


@pytest.mark.linux("fork")
def test_a_mistake_that_a_test_sees_is_told_from_one_that_none_sees(project):
    verdicts = {}
    for mutant in mutants_of("limit", LIMIT):
        root, source, suites = project(mutated(LIMIT, mutant))
        verdicts[mutant.after] = try_suites(root, source, suites, set(), 120)
    assert verdicts == {"return None": "killed", "count < 3": "survived", "4": "survived"}


@pytest.mark.linux("fork")
def test_a_mistake_that_never_ends_is_ended(project):
    root, source, suites = project("def fits(count):\n    while True: pass\n")
    assert try_suites(root, source, suites, set(), 5) == "timed out"


@pytest.mark.linux("fork")
def test_tests_are_known_by_the_functions_that_they_enter(project):
    root, source, suites = project(LIMIT)
    assert entered_functions(root, source, suites) == {
        (str(source / "limit.py"), "fits"): {"test_limit.py::test_it"}
    }


@pytest.mark.linux("fork")
def test_suites_that_fail_without_a_mutant_say_nothing(project):
    with pytest.raises(SystemExit, match="fail without a mutant"):
        entered_functions(*project("def fits(count):\n    return True\n"))


def test_every_area_has_modules_and_suites_that_are_there(pytestconfig):
    for area in AREAS.values():
        for module in area.modules:
            path = pytestconfig.rootpath.joinpath("src/handtools", *module.split("."))
            assert path.with_suffix(".py").exists() or (path / "__init__.py").exists()
        assert all((pytestconfig.rootpath / suite.partition("::")[0]).exists() for suite in area.suites)
