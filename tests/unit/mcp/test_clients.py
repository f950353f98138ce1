"""Configuration files of clients: our entry comes and goes, and nothing else moves."""

import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.errors import UsageError
from handtools.mcp.clients import jsonc
from handtools.mcp.clients.known import CLIENTS

LAUNCH = ("/opt/handtools", ["mcp", '/work/a "b"'])

ZED = """// Zed settings
{
  "theme": "One Dark", // dark
  /* servers */
  "context_servers": {
    "other": { "command": "x", "args": ["}", "//"] }, // keep
  },
  "vim_mode": true
}
"""
CODEX = 'model = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n\n[profiles.a]\nmodel = "b"\n'
GOOSE = "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nlast: 1\n"
FILES = {
    "json": ["", "{}", "{}\n", '{"mcpServers": {}}', '{"a": [1, {"b": 2}], "servers": {"x": {}}}\n', ZED],
    "toml": ["", CODEX, 'model = "x"'],
    "yaml": ["", GOOSE, "a: 1\n", "extensions: {}\n"],
}
CASES = [(name, text) for name, client in CLIENTS.items() for text in FILES[client.shape]]


def loaded(text):
    """JSON with comments and trailing commas, read by something other than our own reader."""
    pattern = r'("(?:[^"\\\\]|\\\\.)*")|//[^\n]*|/\*.*?\*/'
    plain = re.sub(pattern, lambda m: m[1] or "", text, flags=re.DOTALL)
    plain = re.sub(r'("(?:[^"\\\\]|\\\\.)*")|,(?=\s*[}\]])', lambda m: m[1] or "", plain)
    return json.loads(plain)


@pytest.mark.parametrize(("name", "text"), CASES)
def test_the_entry_is_there_once_however_often_it_is_installed(name, text):
    client = CLIENTS[name]
    once = client.put(text, LAUNCH)
    assert client.put(once, LAUNCH) == once
    if client.shape == "yaml":
        assert once.count("  handtools:\n") == 1
        return
    whole = loaded(once) if client.shape == "json" else tomllib.loads(once)
    entry = whole
    for key in client.keys:
        entry = entry[key]
    assert entry == json.loads(json.dumps(client.entry(LAUNCH)))


@pytest.mark.parametrize(("name", "text"), CASES)
def test_what_was_there_stays_and_comes_back_whole(name, text):
    client = CLIENTS[name]
    back = client.drop(client.put(text, LAUNCH))
    if client.shape == "json":
        unchanged = loaded(text) if text.strip() else {}
        if unchanged.get(client.keys[0]) == {}:
            del unchanged[client.keys[0]]  # an empty section goes with its last entry
        assert loaded(back) == unchanged
        assert [line for line in back.splitlines() if "//" in line or "/*" in line] == [
            line for line in text.splitlines() if "//" in line or "/*" in line
        ]
    elif client.shape == "toml":
        assert tomllib.loads(back) == tomllib.loads(text)
    else:
        assert back.replace("extensions: {}\n", "") in {text, text.replace("extensions: {}\n", "")}


@pytest.mark.parametrize("text", [CODEX, ZED, GOOSE])
def test_a_file_with_other_servers_comes_back_byte_for_byte(text):
    name = {CODEX: "codex", ZED: "zed", GOOSE: "goose"}[text]
    assert CLIENTS[name].drop(CLIENTS[name].put(text, LAUNCH)) == text


def test_nothing_is_dropped_where_nothing_is_ours():
    for name, text in CASES:
        assert CLIENTS[name].drop(text) == text


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": 3}', "{", '{"a" 1}', "{'a': 1}", '{"a": '])
def test_a_file_that_is_not_understood_is_not_changed(text):
    with pytest.raises(UsageError):
        jsonc.put(text, ("mcpServers", "handtools"), {})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.sampled_from([None, 0, 2]), values)
def test_any_object_keeps_all_that_is_not_ours(whole, indent, value):
    whole.pop("servers", None)
    text = json.dumps(whole, indent=indent)
    put = jsonc.put(text, ("servers", "handtools"), value)
    assert json.loads(put) == whole | {"servers": {"handtools": value}}
    assert json.loads(jsonc.drop(put, ("servers", "handtools"))) == whole
