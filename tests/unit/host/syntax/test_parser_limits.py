"""A file that ends a parser or takes it minutes costs a worker its life; what people write is parsed."""

import json
import os
import resource

import pytest
from anyio import create_task_group
from anyio.lowlevel import checkpoint

from handtools.core.syntax import TextPosition, symbol_chains
from handtools.host.confined_workers import WorkerLimits
from handtools.host.syntax import ast_grep_syntax
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.host.syntax.languages import language_of
from handtools.host.syntax.syntax_tree_queries import (
    MAX_OUTLINE_DEPTH,
    MAX_OUTLINE_SYMBOLS,
    exceeds_parser_limits,
)

ENDLESS = {
    "a.html": "<div>" * 60_000, "b.html": "<p>\n" * 20_000, "a.vue": "<é-a>" * 20_000,
    "a.md": "> " * 4_000, "b.md": ">" * 300, "c.md": "- " * 300, "d.md": "1. " * 300,
    "e.md": "\n".join("  " * level + "- a" for level in range(400)),
    "a.yaml": "- " * 300, "b.yaml": "? " * 300, "c.yaml": "\n".join(" " * level + "a:" for level in range(400)),
    "d.yaml": "a:\n" + "".join(" " * level + "-\n" + " " * (level + 1) + "a:\n" for level in range(200)),
    "a.kt": '"${' * 600, "a.css": "a:not(" * 20_000,
    "a.sh": "<<A\n" * 30_000, "a.scala": "case " * 30_000, "a.lua": "[[" * 30_000,
}  # fmt: skip


@pytest.mark.parametrize("path", ENDLESS)
async def test_a_text_that_ends_a_parser_is_not_given_to_it(path):
    data, syntax = ENDLESS[path].encode(), TreeSyntax()
    assert await syntax.outline(path, data) is None
    assert await syntax.classify(path, data, [TextPosition(1, 0)]) is None
    assert await syntax.structural(path, data, "$A") is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.html", "<ul>" + "<li><a href='x'>y</a></li>\n" * 3_000 + "</ul>"),
        ("a.md", "# One\n" + "-" * 500 + "\n\n|" + "---|" * 200 + "\n\n> > - 1. deep\n" + "*" * 300),
        ("a.yaml", "a:\n  - b: " + "-" * 500 + "\n" + "# " + "-" * 400),
        ("a.kt", 'val a = "${b} ${c}"\n' * 100),
        ("a.sh", "cat <<A\nx\nA\n" * 500),
        ("a.scala", "x match {\n" + "  case 1 => 2\n" * 2_000 + "}"),
    ],
)
async def test_what_people_write_is_parsed(path, text):
    assert await TreeSyntax().outline(path, text.encode()) is not None


def test_languages_without_such_a_parser_have_no_limit():
    assert not exceeds_parser_limits(json.dumps([[]] * 100_000), "json")
    assert not exceeds_parser_limits("(" * 100_000, "python")


in_workers = pytest.mark.skipif(not hasattr(os, "fork"), reason="machine: files are parsed in our process")
BOMBS = {
    "a.md": b"# x\n" * 200_000,
    "a.ts": b"->" * 10_000,
    "b.ts": b"a<b," * 10_000,
    "a.js": b"def a:\n" * 10_000,
}
"""Each takes its parser seconds at the least; the second minutes, the third a gigabyte."""


@pytest.fixture
def impatient(monkeypatch):
    """Workers that give up soon."""
    limits = WorkerLimits(seconds=0.5, memory_bytes=1 << 30, output_bytes=16 << 20)
    monkeypatch.setattr(ast_grep_syntax, "PARSE_LIMITS", limits)


@in_workers
@pytest.mark.parametrize("path", BOMBS)
async def test_a_file_that_keeps_its_parser_busy_stops_nobody_else(path, impatient):
    syntax, done, turns = TreeSyntax(), False, 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def parse():
        nonlocal done
        assert await syntax.outline(path, BOMBS[path]) is None
        done = True

    async with create_task_group() as group:
        group.start_soon(parse)
        while not done:
            await checkpoint()
            turns += 1
    assert turns > 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    assert await syntax.outline("b.py", b"def f(): ...\n") is not None


@in_workers
async def test_among_many_files_a_hard_one_costs_the_others_nothing(impatient):
    files = {f"{number}.py": f"def f{number}(): ...\n".encode() for number in range(20)}
    found = await TreeSyntax().outlines({**files, "a.ts": BOMBS["a.ts"], "z.py": b"z = 1\n"})
    assert [name for name, outline in found.items() if outline is None] == ["a.ts"]
    assert [symbol.name for symbol in found["z.py"].symbols] == ["z"]
    assert [symbol.name for symbol in found["7.py"].symbols] == ["f7"]


async def test_an_outline_holds_so_many_symbols_and_says_how_many_more_there_are():
    keys = MAX_OUTLINE_SYMBOLS + 500
    outline = await TreeSyntax().outline(
        "a.json", json.dumps(dict.fromkeys(map(str, range(keys)), 0), indent=0).encode()
    )
    assert (len(outline.symbols), outline.left_out) == (MAX_OUTLINE_SYMBOLS, 500)


async def test_an_outline_is_so_deep_and_no_deeper():
    nested = b'{"a":' * 500 + b"0" + b"}" * 500
    outline = await TreeSyntax().outline("a.json", nested)
    assert max(map(len, symbol_chains(outline.symbols))) == MAX_OUTLINE_DEPTH + 1
    assert outline.left_out == 500 - MAX_OUTLINE_DEPTH - 1


def test_the_language_of_a_header_is_told_in_one_pass_over_it():
    assert language_of("a.h", b"\n" * (1 << 20)) == "c"
    assert language_of("a.h", b" \n\t" * (1 << 14) + b"class A;") == "cpp"
