"""Tangles: what ends a parser or takes it minutes is told by counting; what people write is not one."""

import json

import pytest

from handtools.core.syntax import TextPosition
from handtools.host.syntax.ast_grep_syntax import TreeSyntax, exceeds_parser_limits

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
