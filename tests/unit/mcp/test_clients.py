"""Configuration files of clients: what is ours comes and goes, and nothing else moves."""

import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.errors import UsageError
from handtools.mcp.clients import jsonc_edit, toml_edit, yaml_edit
from handtools.mcp.clients.client_setup import KNOWN_CLIENTS
from handtools.mcp.clients.config_edits import (
    InstalledFile,
    ListItemsEdit,
    SettingEdit,
    apply_edits,
    config_edits_present,
    revert_edits,
)

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
CLAUDE = """{
  // ours
  "permissions": {
    "deny": [
      "Read(.env)", // secrets
      "Bash"
    ],
    "allow": ["Bash(ls)"]
  },
  "permission": {"bash": {"git *": "allow"}, "edit": "ask"},
  "tools": {"exclude": [], "toolSearch": {"enabled": true}}
}
"""
CODEX = 'model = "o9"\n\n[mcp_servers.other]\ncommand = "x"\n\n[profiles.a]\nmodel = "b"\n'
FEATURES = (
    '# mine\nsandbox_mode = "workspace-write" # for work\n\n[features]\n# all\nshell_tool = true\nx = 1\n'
)
GOOSE = "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nlast: 1\n"
CONTINUE = (
    "name: m\nmcpServers:\n  - name: other # keep\n    command: x\nexclude:\n  - Fetch # no web\n  - Bash\n"
)
FILES = {
    "json": [
        "",
        "{}",
        "{}\n",
        '{"mcpServers": {}}',
        '{"a": [1, {"b": 2}], "servers": {"x": {}}}\n',
        ZED,
        CLAUDE,
    ],
    "toml": ["", CODEX, 'model = "x"', FEATURES, "[features]\n", "\n[a]\nb = 1\n"],
    "yaml": ["", GOOSE, "a: 1\n", "extensions: {}\n", CONTINUE, "exclude:\n- Mine\n", "exclude: []\n"],
}


def every_file(client):
    """The shape and the edits of each of a client's files."""
    yield client.shape, (client.server(LAUNCH),)
    for own in client.own_tools:
        # One of Codex's settings is in our own entry.
        yield own.shape, tuple(edit for edit in own.edits if edit.keys[0] != "mcp_servers")


CASES = [
    pytest.param(shape, edits, text, id=f"{name}-{number}-{place}")
    for name, client in KNOWN_CLIENTS.items()
    for number, (shape, edits) in enumerate(every_file(client))
    for place, text in enumerate(FILES[shape])
]


def loaded(text):
    """JSON with comments and trailing commas, read by something other than our own reader."""
    pattern = r'("(?:[^"\\\\]|\\\\.)*")|//[^\n]*|/\*.*?\*/'
    plain = re.sub(pattern, lambda m: m[1] or "", text, flags=re.DOTALL)
    plain = re.sub(r'("(?:[^"\\\\]|\\\\.)*")|,(?=\s*[}\]])', lambda m: m[1] or "", plain)
    return json.loads(plain)


def value_at(whole, keys):
    for key in keys:
        whole = whole[key]
    return whole


@pytest.mark.parametrize(("shape", "edits", "text"), CASES)
def test_what_is_installed_is_there_once_however_often(shape, edits, text):
    once, _ = apply_edits(shape, text, edits)
    assert apply_edits(shape, once, edits)[0] == once
    assert len(config_edits_present(shape, once, edits)) == len(edits)
    if shape == "yaml":
        assert once.count("  handtools:\n") + once.count('- name: "handtools"') <= 1
        return
    whole = loaded(once) if shape == "json" else tomllib.loads(once)
    for edit in edits:
        found = value_at(whole, edit.keys)
        if isinstance(edit, ListItemsEdit):
            assert len(set(found)) == len(found)
            assert set(edit.items) <= set(found)
        else:
            assert found == json.loads(json.dumps(edit.value))


@pytest.mark.parametrize(("shape", "edits", "text"), CASES)
def test_what_was_there_comes_back(shape, edits, text):
    after, applied = apply_edits(shape, text, edits)
    back = revert_edits(shape, after, applied)
    if shape == "json":
        before = loaded(text) if text.strip() else {}
        for edit in edits:
            if before.get(edit.keys[0]) == {}:
                before.pop(edit.keys[0])  # an empty section goes with its last entry
        assert loaded(back) == before
        comments = [line for line in text.splitlines() if "//" in line or "/*" in line]
        assert [line for line in back.splitlines() if "//" in line or "/*" in line] == comments
    elif shape == "toml":
        assert tomllib.loads(back) == tomllib.loads(text) or text == "[features]\n"
    else:
        assert back in {text, re.sub(r"(?m)^\w+: (?:\{\}|\[\])\n", "", text)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zed", ZED),
        ("codex", CODEX),
        ("codex", FEATURES),
        ("goose", GOOSE),
        ("continue", CONTINUE),
        ("claude", CLAUDE),
        ("opencode", CLAUDE),
        ("qwen", CLAUDE),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_with_other_settings_comes_back_byte_for_byte(name, text, end):
    for shape, edits in every_file(KNOWN_CLIENTS[name]):
        before = text.replace("\n", end)
        after, applied = apply_edits(shape, before, edits)
        assert after.count("\n") == after.count(end)
        assert revert_edits(shape, after, applied) == before


def test_a_persons_own_words_stay_in_a_list_when_ours_go():
    after, applied = apply_edits("json", CLAUDE, [ListItemsEdit(("permissions", "deny"), ("Bash", "Read"))])
    changed = after.replace('"Read(.env)"', '"WebFetch", "Read(.env)"')
    left = loaded(revert_edits("json", changed, applied))["permissions"]["deny"]
    assert left == ["WebFetch", "Read(.env)", "Bash"]


def test_a_setting_that_a_person_changed_since_stays():
    edits = (
        SettingEdit(("sandbox_mode",), "read-only"),
        SettingEdit(("features", "shell_tool"), value=False),
    )
    after, applied = apply_edits("toml", FEATURES, edits)
    changed = after.replace('"read-only"', '"danger-full-access"')
    assert tomllib.loads(revert_edits("toml", changed, applied)) == {
        "sandbox_mode": "danger-full-access",
        "features": {"shell_tool": True, "x": 1},
    }


@pytest.mark.parametrize("text", [None, "", "{}", "{ }\n", '{"mcpServers": {}}', ZED])
def test_the_record_of_a_file_gives_it_back_whatever_it_looked_like(tmp_path, text):
    after, applied = apply_edits("json", text or "", [KNOWN_CLIENTS["gemini"].server(LAUNCH)])
    kept = InstalledFile.of(tmp_path, text, after, applied, made_folder=False)
    assert kept.restored("json", after) == text


def test_nothing_is_in_place_where_nothing_is_ours():
    for client in KNOWN_CLIENTS.values():
        for text in FILES[client.shape]:
            assert config_edits_present(client.shape, text, [client.server(LAUNCH)]) == []


@pytest.mark.parametrize("text", ["features = {a = 1}\n", "a = [\n", "x = '''\n[features]\n'''\n"])
def test_toml_in_a_form_that_is_not_understood_is_not_changed(text):
    with pytest.raises(UsageError):
        toml_edit.set_value(text, ("features", "shell_tool"), value=False)


@pytest.mark.parametrize("text", ["exclude: [a, b]\n", "exclude: {a: 1}\n", "'exclude':\n  - a\n"])
def test_yaml_in_a_form_that_is_not_understood_is_not_changed(text):
    with pytest.raises(UsageError):
        yaml_edit.add_list_items(text, ("exclude",), ["x"])


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": 3}', "{", '{"a" 1}', "{'a': 1}", '{"a": '])
def test_a_file_that_is_not_understood_is_not_changed(text):
    with pytest.raises(UsageError):
        jsonc_edit.set_value(text, ("mcpServers", "handtools"), {})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.sampled_from([None, 0, 2]), values)
def test_any_object_keeps_all_that_is_not_ours(whole, indent, value):
    whole.pop("servers", None)
    text = json.dumps(whole, indent=indent)
    put = jsonc_edit.set_value(text, ("servers", "handtools"), value)
    assert json.loads(put) == whole | {"servers": {"handtools": value}}
    assert json.loads(jsonc_edit.remove_value(put, ("servers", "handtools"))) == whole


words = st.text(st.characters(codec="utf-8"), max_size=6)


@given(
    st.lists(words, max_size=4),
    st.lists(words, min_size=1, max_size=4, unique=True),
    st.sampled_from([None, 0, 2]),
)
def test_any_list_keeps_the_words_that_are_not_ours(there, ours, indent):
    text = json.dumps({"a": 1, "list": there}, indent=indent)
    after, applied = apply_edits("json", text, [ListItemsEdit(("list",), tuple(ours))])
    assert set(json.loads(after)["list"]) == {*there, *ours}
    assert revert_edits("json", after, applied) == text


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,3}", fullmatch=True),
        st.booleans() | st.integers() | st.text("ab[]=#", max_size=5),
        max_size=3,
    ),
    st.booleans(),
)
def test_any_table_keeps_what_is_not_ours(table, inside):
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    text = "\n".join([*(["[features]"] if inside else []), *lines, "[zone]", "y = 1", ""])
    edits = [
        SettingEdit(("features", "shell_tool"), value=False),
        SettingEdit(("sandbox_mode",), "read-only"),
    ]
    after, applied = apply_edits("toml", text, edits)
    found = tomllib.loads(after)
    assert found["features"]["shell_tool"] is False
    assert found["sandbox_mode"] == "read-only"
    back = revert_edits("toml", after, applied)
    assert back == text or (inside and not table)
