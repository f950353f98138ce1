"""Putting tools, a machine and a policy together."""

import gc
import os
import threading

import pytest

from handtools import BlockingToolbox, Policy, Toolbox, UsageError, coding, reading
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
from handtools.tools.read import read


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))


async def test_coding_works_on_a_folder_with_no_configuration(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    async with coding(root) as box:
        assert (await box.call("write", {"path": "a.txt", "content": "hi\n"})).ok
        assert (await box.call("undo", {"name": "a.txt"})).ok
    assert list(root.iterdir()) == []


async def test_reading_offers_nothing_that_changes(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    box = reading(root, policy=Policy(excluded=("*.log",)))
    offered = {definition.name: definition.reads_only for definition in box.definitions()}
    assert all(offered.values())
    assert "fetch" in offered
    assert (await box.call("read", {"path": "a.log"})).status == "denied"


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(UsageError, match="same name"):
        Toolbox([read, read], workspace=memory_workspace())


def test_the_blocking_toolbox_has_the_same_answers():
    box = BlockingToolbox(memory_toolbox({"a": b"one\n"}))
    assert "one" in box.call("read", {"path": "a"}).text
    assert box.why("read", {"path": ".env"}).rule == "private"
    assert box.waiting() == []
    box.close()


def test_a_toolbox_at_rest_holds_no_thread_and_no_file(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    gc.collect()
    before, files = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    boxes = [coding(root) for _ in range(200)]
    # What earlier tests left may end meanwhile.
    assert set(threading.enumerate()) <= before
    assert set(os.listdir("/proc/self/fd")) <= files
    assert len(boxes) == 200
