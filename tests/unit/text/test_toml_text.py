"""TOML in bounded time."""

import tomllib

import pytest

from handtools.text.toml_parsing import MAX_KEY_PARTS, MAX_TOML_CHARS, parse_toml


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 20_000) + " = 1",
        "x = {" + ".".join(['"a"'] * 20_000) + " = 1}",
        "[" + " . ".join(["a"] * 20_000) + "]",
        "# " + "x" * MAX_TOML_CHARS,
    ],
    ids=["key", "inline table", "header", "long"],
)
def test_what_would_take_the_parser_minutes_is_refused(text):
    with pytest.raises(ValueError, match=f"more than {MAX_KEY_PARTS} parts|longer than"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        'dependencies = ["' + '", "'.join(f"package{n}==1.2.{n}" for n in range(500)) + '"]',
        "[tool.a.b.c]\nd.e.f = 1\n" * 1,
        "x = 'one. two. three. " + "and so on. " * 100 + "'",
        "a = [\n  1.5,\n]\n" + "\n".join(f"key{n}.a.b = {n}.5" for n in range(500)),
    ],
)
def test_what_people_write_is_read(text):
    assert parse_toml(text) == tomllib.loads(text)
