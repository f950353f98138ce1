"""Think: room for a thought; nothing happens."""

import pytest

from handtools.testing.memory_toolbox import memory_toolbox


@pytest.mark.claim("think.inert")
async def test_a_thought_is_noted_and_changes_nothing():
    box = memory_toolbox({"a": b"x"})
    result = await box.call("think", {"thought": "delete everything"})
    assert result.ok
    assert result.changes is None
    assert box.workspace.files.files == {"a": b"x"}
