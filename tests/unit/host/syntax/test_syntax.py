"""Syntax: what the parsers know, in any language and on any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handtools.core.errors import InvalidInput
from handtools.core.syntax import TextPosition, qualified_name, symbol_chains, symbols_named
from handtools.host.syntax import ast_grep_syntax
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.host.syntax.languages import PARSED_LANGUAGES, grammar_of_language, language_of
from handtools.host.syntax.syntax_tree_queries import parse_tree
from tests.labelled.labels import every

SOURCES = {source.path: source.data for source in every()}


@pytest.mark.parametrize(
    ("path", "data", "language"),
    [
        ("a.py", b"", "python"),
        ("deep/A.PY", b"", "python"),
        ("a.d.ts", b"", "typescript"),
        ("Rakefile", b"", "ruby"),
        ("a.h", b"int f(void);\n", "c"),
        ("a.h", b"namespace a {\nclass B;\n}\n", "cpp"),
        ("run", b"#!/usr/bin/env python3\n", "python"),
        ("run", b"#!/usr/bin/env -S node --flag\n", "javascript"),
        ("run", b"#!/bin/sh -e\n", "bash"),
        ("run", b"#!/opt/python3.12/bin/python3.12\n", "python"),
        ("run", b"#!/usr/bin/perl\n", None),
        ("py", b"", None),
        (".py", b"", None),
        ("a.toml", b"", None),
        ("a.sql", b"", None),
    ],
)
def test_the_language_is_told_by_name_then_by_the_first_line(path, data, language):
    assert language_of(path, data) == language


@pytest.mark.parametrize("language", sorted(PARSED_LANGUAGES))
def test_every_rule_of_every_language_names_nodes_that_the_grammar_has(language):
    grammar = grammar_of_language(language)
    root = parse_tree("", grammar)
    root.find_all(grammar.outline_nodes_rule)
    root.find_all(grammar.role_nodes_rule)


async def test_a_language_that_is_not_known_is_none_and_nothing_panics():
    syntax = TreeSyntax()
    assert await syntax.outline("a.sql", b"select 1") is None
    assert await syntax.classify("a.sql", b"select 1", [TextPosition(1, 0)]) is None
    assert await syntax.structural("a.sql", b"select 1", "$A") is None
    assert await syntax.outlines({"a.sql": b"select 1"}) == {"a.sql": None}


async def test_a_file_too_large_to_parse_is_none():
    assert await TreeSyntax().outline("a.py", b"#" * (ast_grep_syntax.MAX_PARSED_BYTES + 1)) is None


@pytest.mark.parametrize("ending", [b"\r\n", b"\r", b"\n"])
async def test_lines_are_counted_as_we_count_them(ending):
    data = ending.join([b"", b"", b"def f():", b"    pass", b"", b"x = 1"])
    outline = await TreeSyntax().outline("a.py", data)
    assert [(one.name, one.start_line, one.end_line) for one in outline.symbols] == [
        ("f", 3, 4),
        ("x", 6, 6),
    ]


async def test_columns_are_characters_not_bytes():
    [match] = await TreeSyntax().structural("a.py", "é = '🙂'; call(1)\n".encode(), "call($X)")
    assert match == (TextPosition(1, 9), TextPosition(1, 16))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Store.load", ["Store.load"]),
        ("Store::load", ["Store.load"]),
        ("load", ["Store.load"]),
        ("Store.load.Local.go", ["Store.load.Local.go"]),
        ("Local.go", ["Store.load.Local.go"]),
        ("missing", []),
    ],
)
async def test_a_symbol_is_found_by_its_full_name_or_the_end_of_it(name, found):
    outline = await TreeSyntax().outline("python.py", SOURCES["python.py"])
    assert [qualified_name(way) for way in symbols_named(outline.symbols, name)] == found


SPOTS = [
    ("a.py", "import os  # note\n\nclass Store:\n    def load(self):\n        return os.open('x')\n", [
        ((1, 7), {"import"}), ((1, 13), {"comment"}), ((3, 6), {"definition"}), ((4, 8), {"definition"}),
        ((5, 18), {"call"}), ((5, 15), set()), ((5, 24), {"string"}), ((4, 13), set()),
    ]),
    ("a.ts", "import { a } from './b';\nconst run = () => {\n  // note\n  return a.load(new Store(`x`));\n};\n", [
        ((1, 9), {"import"}), ((2, 6), {"definition"}), ((3, 6), {"comment"}), ((4, 11), {"call"}),
        ((4, 9), set()), ((4, 20), {"call"}), ((4, 26), {"string"}),
    ]),
    ("a.go", 'package a\n\nimport "fmt"\n\nfunc (s *Store) Load() {\n\tfmt.Println("x") // note\n}\n', [
        ((3, 8), {"import", "string"}), ((5, 16), {"definition"}), ((6, 5), {"call"}), ((6, 14), {"string"}),
        ((6, 20), {"comment"}),
    ]),
    ("a.rs", 'use a::b;\nfn run() {\n    // note\n    b::load("x");\n    println!("y");\n}\n', [
        ((1, 4), {"import"}), ((2, 3), {"definition"}), ((3, 8), {"comment"}), ((4, 7), {"call"}),
        ((4, 13), {"string"}), ((5, 4), {"call"}),
    ]),
    ("A.java", 'import java.util.List;\nclass A {\n  // note\n  void run() { list.add("x"); new B(); }\n}\n', [
        ((1, 7), {"import"}), ((2, 6), {"definition"}), ((3, 5), {"comment"}), ((4, 7), {"definition"}),
        ((4, 20), {"call"}), ((4, 15), set()), ((4, 25), {"string"}), ((4, 34), {"call"}),
    ]),
    ("a.c", '#include <x.h>\nint run(void) {\n  /* note */\n  return load("x");\n}\n', [
        ((1, 10), {"import"}), ((2, 4), {"definition"}), ((3, 5), {"comment"}), ((4, 9), {"call"}),
        ((4, 15), {"string"}),
    ]),
    ("a.rb", 'def run\n  # note\n  store.load("x")\nend\n', [
        ((1, 4), {"definition"}), ((2, 4), {"comment"}), ((3, 8), {"call"}), ((3, 14), {"string"}),
    ]),
    ("a.sh", 'run() {\n  # note\n  load "x"\n}\n', [
        ((1, 0), {"definition"}), ((2, 4), {"comment"}), ((3, 2), {"call"}), ((3, 8), {"string"}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "wanted"), SPOTS, ids=[path for path, *_ in SPOTS])
async def test_text_is_known_for_what_it_is(path, text, wanted):
    spots = [TextPosition(*place) for place, _ in wanted]
    found = await TreeSyntax().classify(path, text.encode(), spots)
    assert found == {TextPosition(*place): roles for place, roles in wanted}


@pytest.mark.parametrize("pattern", ["", "$$$", "a b c"])
async def test_a_pattern_that_means_nothing_is_refused_in_one_sentence(pattern):
    with pytest.raises(InvalidInput) as refused:
        await TreeSyntax().structural("a.py", b"x = 1\n", pattern)
    assert refused.value.message.startswith(("The pattern ", "Invalid pattern: "))
    assert refused.value.message.endswith(".")
    assert "\n" not in refused.value.message


async def test_an_outline_is_remembered_by_content_within_bounds():
    syntax = TreeSyntax(kept_bytes=ast_grep_syntax.OUTLINE_SYMBOL_BYTES * 4)
    first = await syntax.outline("a.py", b"a = 1\n")
    assert await syntax.outline("other.py", b"a = 1\n") is first
    await syntax.outline("b.py", b"a = 1\nb = 2\nc = 3\nd = 4\n")
    assert await syntax.outline("a.py", b"a = 1\n") is not first
    assert await syntax.outline("a.js", b"a = 1\n") is not first


@pytest.mark.parametrize("path", ["a.json", "a.py", "a.js", "a.yaml", "a.html"])
async def test_nesting_without_end_is_survived(path):
    for data in (b"[" * 20_000, b"(" * 20_000, b"{'a':" * 5_000, b"<div>" * 5_000):
        await TreeSyntax().outline(path, data)


@settings(max_examples=150)
@given(st.data())
async def test_damage_of_any_kind_still_gives_symbols_in_order_within_the_text(data):
    path = data.draw(st.sampled_from(sorted(SOURCES)))
    source = SOURCES[path]
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, min(start + 200, len(source))))
    broken = source[:start] + data.draw(st.binary(max_size=20)) + source[end:]
    outline = await TreeSyntax().outline(path, broken)
    assert outline is not None
    for way in symbol_chains(outline.symbols):
        one = way[-1]
        assert (
            1 <= one.start_line <= one.line <= one.end_line <= broken.count(b"\n") + broken.count(b"\r") + 1
        )
        assert one.body_line is None or one.line < one.body_line <= one.end_line
        if len(way) > 1:
            assert way[-2].start_line <= one.start_line


@pytest.mark.parametrize("path", ["a.sh", "a.md", "a.py"])
async def test_characters_beyond_the_tables_of_a_grammar_are_survived(path):
    for code in range(0x10000, 0x110000, 0x3FF1):
        await TreeSyntax().outline(path, f"x {{{chr(code)}3 (\n# {chr(code)}{{ [\n".encode())
