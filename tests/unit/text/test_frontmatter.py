"""Frontmatter: what YAML reads, we read alike; what YAML refuses, we read as it was meant and say so."""

import string
import time
from functools import partial

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.frontmatter import parse_frontmatter, split_at_outer_commas

SIGNS = string.ascii_letters + string.digits + "äß漢😀" + "'\"\\:#-[]{}&*!|>%@`,.?~=<$ \n"
PRINTABLE = st.text(SIGNS, max_size=120)
KEYS = st.text(string.ascii_lowercase + "-", min_size=1, max_size=12).filter(
    lambda key: key.strip("-") == key
)
WORDS = st.text(string.ascii_letters + " .,()/", min_size=1, max_size=200)
VALUES = st.one_of(
    PRINTABLE,
    WORDS,
    st.lists(PRINTABLE, min_size=1, max_size=4),
    st.dictionaries(
        KEYS, st.one_of(PRINTABLE, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=3
    ),
)


def head(text):
    return parse_frontmatter(f"---\n{text}\n---\nbody\n")


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.sampled_from([None, "'", '"', "|", ">"]))
def test_what_a_yaml_writer_wrote_comes_back(fields, style):
    written = yaml.safe_dump(fields, allow_unicode=True, default_style=style, default_flow_style=False)
    # A writer ends a text that ends in line breaks with a mark that would end the head as well.
    read = head(written.removesuffix("...\n").removesuffix("\n"))
    assert read.fields == fields
    assert read.body == "body"
    assert not read.problems


@given(st.dictionaries(KEYS, PRINTABLE, min_size=1, max_size=4), st.lists(PRINTABLE, max_size=4))
def test_what_a_yaml_writer_wrote_in_one_line_comes_back(inner, items):
    one_line = partial(
        yaml.safe_dump, default_flow_style=True, width=10_000, default_style='"', allow_unicode=True
    )
    read = head(f"outer: {one_line(inner)}list: {one_line(items)}")
    assert read.fields == {"outer": inner, "list": items}
    assert not read.problems


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text):
    for whole in (text, f"---\n{text}", f"---\n{text}\n---\n", f"---\nkey: {text}\n---\n"):
        read = parse_frontmatter(whole)
        assert isinstance(read.fields, dict)


@given(
    st.lists(
        st.sampled_from(["a: b", "  c: d", "- e", "f:", "  - g", '"h', "'i", "| j", "k: [l", "m: {n: o}"])
    )
)
def test_rows_in_any_order_are_read_and_no_row_is_read_twice(rows):
    read = head("\n".join(rows))
    assert len(read.fields) <= len(rows)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("name: a\ndescription: b", {"name": "a", "description": "b"}),
        ("a: >-\n  one\n  two\n\n  three", {"a": "one two\nthree"}),
        ("a: |\n  one\n    two\n", {"a": "one\n  two\n"}),
        ("a: one # not this\nb: '#this'", {"a": "one", "b": "#this"}),
        ("a: one\n  two", {"a": "one two"}),
        ("a: [x, 'y, z', \"w\"]", {"a": ["x", "y, z", "w"]}),
        ("a: [x, # one\n  'y # z', w] # two", {"a": ["x", "y # z", "w"]}),
        ("a: {b: c, # one\n  d: 'e'}", {"a": {"b": "c", "d": "e"}}),
        ("a: |+\n  x\n\nb: c", {"a": "x\n\n", "b": "c"}),
        ("a:\n- x\n- y", {"a": ["x", "y"]}),
        ("a:\n  - x\n  - y\nb: c", {"a": ["x", "y"], "b": "c"}),
        (
            "metadata:\n  version: '1.0'\n  tags: [a, b]",
            {"metadata": {"version": "1.0", "tags": ["a", "b"]}},
        ),
        ('a: "tab\\tquote\\" \\u00e9"', {"a": 'tab\tquote" é'}),
        ('a: "\\ud83e\\udd80 and half of it: \\ud83e"', {"a": "🦀 and half of it: \ufffd"}),
        ("a: it's", {"a": "it's"}),
        ("a:\nb: c", {"a": "", "b": "c"}),
        ("# comment\na: b", {"a": "b"}),
    ],
)
def test_what_people_write_is_read(text, fields):
    read = head(text)
    assert read.fields == fields
    assert not read.problems


@pytest.mark.parametrize(
    ("text", "fields", "problem"),
    [
        ("description: Use when: always", {"description": "Use when: always"}, "Line 2 has a colon"),
        ("paths: *.py", {"paths": "*.py"}, "begins with `*`"),
        ("a: [WIP] do it", {"a": "[WIP] do it"}, "begins with `[`"),
        ("a: [src/**/*.{ts,tsx}]", {"a": ["src/**/*.{ts,tsx}"]}, "braces"),
        ('a: "open\nb: c', {"a": "open", "b": "c"}, "quote"),
        ("a: 'it's'", {"a": "it's"}, "quote"),
        ("a: b\na: c", {"a": "c"}, "repeats the key `a`"),
        ("just words\na: b", {"a": "b"}, "not a `key: value`"),
        ("a:\n\t- b", {"a": ["b"]}, "tabs"),
        ("a:\n  b:\n    c: d\ne: f", {"a": {"b": ""}, "e": "f"}, "nested too deeply"),
        ('a: "\\q"', {"a": "\\q"}, "not a YAML escape"),
        ("a: @b", {"a": "@b"}, "begins with `@`"),
    ],
)
def test_what_yaml_refuses_is_read_as_meant_and_named(text, fields, problem):
    read = head(text)
    assert read.fields == fields
    assert problem in " ".join(read.problems)


def test_a_file_without_a_head_is_all_body():
    read = parse_frontmatter("# Title\n\ntext\n")
    assert (read.fields, read.body) == ({}, "# Title\n\ntext\n")
    assert read.problems == ("There is no frontmatter between `---` lines.",)


def test_a_head_without_an_end_is_named_and_nothing_is_lost():
    read = parse_frontmatter("---\nname: a\n\ntext\n")
    assert read.fields == {}
    assert "text" in read.body
    assert "no closing" in read.problems[0]


def test_a_byte_order_mark_and_blank_lines_before_the_head_do_no_harm():
    read = parse_frontmatter("\ufeff\n---\nname: a\n---\ntext")
    assert read.fields == {"name": "a"}
    assert "first line" in read.problems[0]


def test_a_head_that_is_no_head_any_more_is_not_read():
    read = parse_frontmatter("---\n" + "a: b\n" * 20_000 + "---\n")
    assert read.fields == {}
    assert "64,000" in read.problems[0]


def test_commas_in_braces_do_not_split():
    assert list(split_at_outer_commas("*.{ts,tsx}, 'a, b',c")) == ["*.{ts,tsx}", " 'a, b'", "c"]


@pytest.mark.parametrize(
    "head_text",
    [
        "a: [" + "x, #\n " * 9_000 + "]",
        'a: "' + "\\\n " * 20_000,
        "a: '" + "''" * 30_000,
        "a:\n" + " - b\n" * 12_000,
        "a: " + "[{" * 30_000,
        "\n".join(f"k{number}: 'x" for number in range(5_000)),
        "a: >\n" + "  x\n\n" * 12_000,
        "a: " + '"\\' * 30_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_head_takes_long(head_text):
    started = time.process_time()
    assert isinstance(head(head_text).fields, dict)
    assert time.process_time() - started < 8


def test_no_row_of_spaces_takes_long():
    started = time.process_time()
    found = parse_frontmatter(f"---\na{' ' * 60_000}b\nname   : x\n---\n")
    assert time.process_time() - started < 4
    assert found.fields == {"name": "x"}
