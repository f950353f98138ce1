"""What clients are told of the coding tools before they are loaded."""

import json

import pytest

from handtools.mcp.handshake import STORED_TOOLS_LIST_FILE, stored_tools_list
from handtools.mcp.tool_calls import ConnectionTools
from handtools.toolbox import coding


def test_what_is_written_down_is_what_the_tools_say(
    request: pytest.FixtureRequest, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    listed = ConnectionTools(coding(folder), agent="", session="").listed
    if request.config.getoption("--update-snapshots"):
        STORED_TOOLS_LIST_FILE.write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    assert stored_tools_list() == json.loads(json.dumps(listed)), (
        "if this is meant, run `just docs` and commit it"
    )
