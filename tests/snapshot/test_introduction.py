"""What clients are told of the coding tools before they are loaded."""

import json

import pytest

from handtools.mcp.desk import Desk
from handtools.mcp.introduction import CODING, written
from handtools.toolbox import coding


def test_what_is_written_down_is_what_the_tools_say(
    request: pytest.FixtureRequest, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    listed = Desk(coding(folder), agent="", session="").listed
    if request.config.getoption("--update-snapshots"):
        CODING.write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    assert written() == json.loads(json.dumps(listed)), "if this is meant, run `just docs` and commit it"
