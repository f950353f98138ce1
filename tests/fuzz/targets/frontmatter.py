"""The YAML heads of Markdown files: never an error, and what is plain YAML comes back as it was written."""

import json
import re

from handtools.text.frontmatter import parse_frontmatter
from tests.fuzz.drawn_values import DrawnValues, text_of

SEEDS = [
    b"\x01---\nname: a\ndescription: >-\n  b\n\n  c\ntools: [x, 'y, z']\nmeta:\n  k: v\n  l:\n   - 1\n---\nbody\n",
    b"\x01---\n'a b': |2+\n   x\n\n\"q\\u00e9\": \"r\\\n  s\"\nlist:\n- a # c\n- - b\nmap: {a: 1, b: '2'}\n...\n",
    b"\x00name\xffsome text: #1\xffa\xff",
]
WORDS = [
    "---\n",
    "...\n",
    ": ",
    "- ",
    "|",
    ">-",
    "|2+",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "\\u00e9",
    " #",
    "\t",
    "\n  ",
]
PARSERS = ["handtools.text.frontmatter"]
_HALF = re.compile("[\ud800-\udfff]")
FOUND = {
    "a character that JSON escapes as two halves": b"\0\xf0\xa6\x80\x80",
    "half a character": b"\0\xa6",
}


def fuzz(data):
    if data[:1] != b"\0":
        found = parse_frontmatter(text_of(data[1:]))
        for key, value in found.fields.items():
            assert isinstance(key, str)
            assert isinstance(value, str | list | dict)
        assert all(isinstance(problem, str) for problem in found.problems)
        return
    # A JSON text is a quoted YAML scalar; only half a character does not come back.
    drawn, fields = DrawnValues(data[1:]), {}
    while not drawn.ended:
        number = len(fields)
        fields[f"key {number}"] = drawn.text()
    rows = [f"{key}: {json.dumps(value)}" for key, value in fields.items()]
    found = parse_frontmatter("\n".join(["---", *rows, "---", "body"]))
    assert found.body == "body"
    assert not found.problems
    assert found.fields == {key: _HALF.sub("\ufffd", value) for key, value in fields.items()}
