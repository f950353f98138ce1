"""Configurations of clients (JSON with comments, TOML, YAML): our entry is in and out again, or a refusal."""

import tomllib

from handtools.core.errors import UsageError
from handtools.mcp.clients.config_edits import (
    ListItemsEdit,
    ServerEntryEdit,
    SettingEdit,
    apply_edits,
    config_edits_present,
    config_value_text,
    revert_edits,
)
from tests.fuzz.drawn_values import DrawnValues, text_of

ENTRY = ServerEntryEdit(("mcpServers", "handtools"), {"command": "handtools", "args": ["mcp"]})
EDITS = {
    "json": [ENTRY, SettingEdit(("tools", "shell"), value=False), ListItemsEdit(("permissions", "deny"), ("Bash", "Read"))],
    "toml": [ENTRY, SettingEdit(("sandbox_mode",), "read-only")],
    "yaml": [ENTRY],
}  # fmt: skip
SEEDS = [
    b'\x00{\n  // c\n  "mcpServers": {"a": {}},\n  "permissions": {"deny": ["X", "Bash"]}, /* d */\n}\n',
    b'\x00{"tools": {"shell": true}}',
    b'\x01sandbox_mode = "x" # c\n[mcpServers.a]\nb = """\n[c]\n"""\n[[t]]\n',
    b"\x01\xef\xbb\xbfa = 1\n",
    b"\x02mcpServers:\n  a:\n    command: b\nother: []\n",
]
WORDS = ["mcpServers", "handtools", "permissions", "deny", "Bash", "tools", "shell", "sandbox_mode", "//", "/*", "*/", '"',
         "\\u0022", "[mcpServers]\n", "[mcpServers.handtools]\n", "'''", "\r\n", "\ufeff", "  "]  # fmt: skip
PARSERS = ["handtools.mcp.clients"]
FOUND = {
    "an item of a list that is no JSON ended in JSONDecodeError": b'\x00{"permissions": {"deny": ["X"Bashash"]}}',
    "a control character in a key ended in JSONDecodeError": b'\x00{"tool\x00": {"shell": true}}',
    "deep objects ended in RecursionError": b"\x00" + b'{"a":' * 3000,
    "deep arrays in TOML ended in RecursionError": b"\x01a = " + b"[" * 3000,
    "a number of thousands of digits in TOML ended in ValueError": b"\x01a = " + b"9" * 5000,
}


def others(values):
    """All that is not ours; an empty table is none."""
    servers = {name: value for name, value in values.get("mcpServers", {}).items() if name != "handtools"}
    rest = {key: value for key, value in values.items() if key not in {"mcpServers", "sandbox_mode"}}
    return rest | ({"mcpServers": servers} if servers else {})


def fuzz(data):
    drawn = DrawnValues(data)
    shape, text = drawn.pick(["json", "toml", "yaml"]), text_of(drawn.rest())
    edits = EDITS[shape]
    try:
        config_edits_present(shape, text, edits)
        after, applied = apply_edits(shape, text, edits)
    except UsageError:
        return
    for edit in edits:
        assert config_value_text(shape, after, edit.keys) is not None
    if shape == "toml":
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
        changed = tomllib.loads(after.removeprefix("\ufeff"))
        assert changed["mcpServers"]["handtools"]["command"] == "handtools"
        assert others(changed) == others(tomllib.loads(text.removeprefix("\ufeff")))
    twice, _ = apply_edits(shape, after, edits)
    # Blank lines around our entry may go, and it may go to the end.
    assert sorted(twice.split()) == sorted(after.split())
    try:
        revert_edits(shape, after, applied)
    except UsageError:
        return
