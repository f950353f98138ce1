"""The second generator: the same seed gives the same cases, and what it calls right can be reached."""

from collections import Counter

import pytest

from bench.editbench import model_errors
from bench.editbench.cases import Case


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(model_errors.generate(3, reduced=True))


def test_every_family_has_cases_and_no_two_have_one_id(cases):
    families = Counter(case.family for case in cases)
    assert len(families) == len(model_errors.EDIT_FAMILIES) + len(model_errors.PATCH_FAMILIES)
    assert min(families.values()) >= 6
    assert len({case.id for case in cases}) == len(cases)


def test_what_is_done_stays_and_what_is_applied_is_another_text(cases):
    for case in cases:
        match case.kind:
            case "done":
                assert case.accept == (case.content,), case.id
            case "apply":
                assert case.accept, case.id
                assert case.content not in case.accept, case.id
            case "refuse":
                assert not case.accept, case.id


def test_exact_copies_are_what_any_editor_would_make_of_them(cases):
    for case in cases:
        if case.family in ("copied_exactly", "cut_inside_a_word", "new_line_as_elsewhere"):
            text = case.content.decode()
            assert text.count(case.old) == 1
            assert case.accept == (text.replace(case.old, case.new).encode(),)
