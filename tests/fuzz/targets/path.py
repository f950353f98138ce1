"""Paths as models write them: inside of the workspace and in normal form, or refused; parts of files behind them."""

from handtools.text.paths import (
    BadPath,
    file_url,
    parse_path_spec,
    similar_names,
    url_escaped_path,
    workspace_relative,
)
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"src/./a//b.py\xff/w",
    b"/w/a/../b\xff/w",
    b"file:///w/a%20b\xff/w",
    b"C:\\x\\y\xff/w",
    b"a.py:10-40\xff",
    b"a::B.c\xff",
]
WORDS = [
    "../",
    "./",
    "//",
    "~",
    "file://",
    "%2e",
    "%00",
    "C:\\",
    "\\",
    ":1-2",
    "::",
    "\\\\host\\",
    "/w/",
    "\x00",
]
PARSERS = ["handtools.text.paths"]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    text, other = texts_of(data, 2)
    parse_path_spec(text)
    similar_names(text[:200], [other[:200], "a.py"])
    try:
        plain = workspace_relative(text, "/w")
    except BadPath:
        return
    assert not plain.startswith("/")
    assert ".." not in plain.split("/")
    assert "\0" not in plain
    assert workspace_relative(plain, "/w") == plain
    url_escaped_path(plain)
    file_url(f"/w/{plain}")
