"""Targets: a file and a part of it, in one string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.paths import PathSpec, parse_path_spec


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.py", PathSpec("a.py")),
        ("a.py:10", PathSpec("a.py", "", 10)),
        ("a.py:10-40", PathSpec("a.py", "", 10, 40)),
        ("a.py:10-", PathSpec("a.py", "", 10)),
        ("a.py:L10-L40", PathSpec("a.py", "", 10, 40)),
        ("a.py:10:5", PathSpec("a.py", "", 10)),
        ("a.py:-20", PathSpec("a.py", "", -20)),
        ("a.py::Class.method", PathSpec("a.py", "Class.method")),
        ("a.cpp::List::push", PathSpec("a.cpp", "List::push")),
        ("::x", PathSpec("::x")),
        ("a.py::", PathSpec("a.py::")),
        ("output:abc.txt", PathSpec("output:abc.txt")),
        (":10", PathSpec(":10")),
        ("a.py:99999999999", PathSpec("a.py:99999999999")),
    ],
)
def test_a_part_is_read_as_compilers_and_test_runners_write_it(text, wanted):
    assert parse_path_spec(text) == wanted


@given(st.text())
def test_any_text_is_a_target_whose_path_begins_it(text):
    assert text.startswith(parse_path_spec(text).path)


@given(st.text(alphabet=st.characters(exclude_characters=":"), min_size=1))
def test_without_a_colon_the_text_is_the_path(text):
    assert parse_path_spec(text) == PathSpec(text)
    assert parse_path_spec(text).is_whole_file
