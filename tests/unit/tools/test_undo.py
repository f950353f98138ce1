"""Undo as a model calls it; the depths are in the runtime's tests."""

from itertools import pairwise

import pytest

from handtools.testing.memory_toolbox import memory_toolbox


async def changed(versions):
    box = memory_toolbox({"a": versions[0].encode()})
    for old, new in pairwise(versions):
        assert (await box.call("edit", {"path": "a", "old_string": old, "new_string": new})).ok
    return box


@pytest.mark.claim("undo.version")
async def test_any_recorded_version_can_be_brought_back():
    box = await changed(["one", "two", "three"])
    listed = await box.call("undo", {"name": "a", "action": "versions"})
    first = min(listed.details.versions)
    assert (await box.call("undo", {"name": "a", "version": first})).ok
    assert box.workspace.files.files["a"] == b"two"
    assert (await box.call("undo", {"name": "a", "version": 0})).ok
    assert box.workspace.files.files["a"] == b"one"


@pytest.mark.claim("undo.conflict")
async def test_a_file_that_changed_since_is_kept_and_named():
    box = await changed(["one", "two"])
    [first] = [call.id for call in box.workspace.journal.calls.page()]
    await box.call("edit", {"path": "a", "old_string": "two", "new_string": "three"})
    result = await box.call("undo", {"scope": "call", "name": first})
    assert [kept.path for kept in result.details.conflicts] == ["a"]
    assert "Kept a" in result.text
    assert box.workspace.files.files["a"] == b"three"


@pytest.mark.claim("undo.redo")
async def test_an_undo_is_taken_back_by_redo():
    box = await changed(["one", "two"])
    await box.call("undo", {"name": "a"})
    assert box.workspace.files.files["a"] == b"one"
    await box.call("undo", {"name": "a", "action": "redo"})
    assert box.workspace.files.files["a"] == b"two"


async def test_versions_of_anything_but_a_path_are_refused():
    result = await memory_toolbox().call("undo", {"scope": "call", "name": "x", "version": 1})
    assert result.fault.code == "invalid_input"
