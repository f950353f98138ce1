"""Targets: a file and a part of it, in one string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.targets import Target, target


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.py", Target("a.py")),
        ("a.py:10", Target("a.py", "", 10)),
        ("a.py:10-40", Target("a.py", "", 10, 40)),
        ("a.py:10-", Target("a.py", "", 10)),
        ("a.py:L10-L40", Target("a.py", "", 10, 40)),
        ("a.py:10:5", Target("a.py", "", 10)),
        ("a.py:-20", Target("a.py", "", -20)),
        ("a.py::Class.method", Target("a.py", "Class.method")),
        ("a.cpp::List::push", Target("a.cpp", "List::push")),
        ("::x", Target("::x")),
        ("a.py::", Target("a.py::")),
        ("output:abc.txt", Target("output:abc.txt")),
        (":10", Target(":10")),
        ("a.py:99999999999", Target("a.py:99999999999")),
    ],
)
def test_a_part_is_read_as_compilers_and_test_runners_write_it(text, wanted):
    assert target(text) == wanted


@given(st.text())
def test_any_text_is_a_target_whose_path_begins_it(text):
    assert text.startswith(target(text).path)


@given(st.text(alphabet=st.characters(exclude_characters=":"), min_size=1))
def test_without_a_colon_the_text_is_the_path(text):
    assert target(text) == Target(text)
    assert target(text).whole
