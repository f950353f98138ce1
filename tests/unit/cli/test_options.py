"""Arguments as they are typed."""

import io
import json

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from handtools.cli.options import parse_tool_arguments

keys = st.text(min_size=1).filter(lambda key: "=" not in key and not key.endswith(":"))
values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)


@given(st.dictionaries(keys, values))
def test_json_comes_through_as_it_is(args):
    assert parse_tool_arguments([json.dumps(args)]) == args


@given(st.dictionaries(keys, st.text()))
def test_pairs_are_text_whatever_the_value_looks_like(args):
    assert parse_tool_arguments([f"{key}={value}" for key, value in args.items()]) == args


@given(st.dictionaries(keys, values))
def test_pairs_with_a_colon_are_json(args):
    assert parse_tool_arguments([f"{key}:={json.dumps(value)}" for key, value in args.items()]) == args


def test_a_pair_wins_over_the_json():
    assert parse_tool_arguments(['{"a": 1, "b": 2}', "b=three"]) == {"a": 1, "b": "three"}


@pytest.mark.parametrize("word", ["{", "[]", "1", "x", "=x"])
def test_what_can_not_be_arguments_is_refused(word):
    with pytest.raises(typer.BadParameter):
        parse_tool_arguments([word])


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_input_that_is_no_json_object_is_refused(text, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(typer.BadParameter):
        parse_tool_arguments(["-"])
