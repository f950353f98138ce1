"""The contract of any tool, held by ours."""

from handtools.testing.contract import ToolContract
from handtools.tools.edit import edit as edit_tool
from handtools.tools.now import now as now_tool
from handtools.tools.read import read as read_tool
from handtools.tools.think import think as think_tool
from handtools.tools.undo import undo as undo_tool
from handtools.tools.write import write as write_tool


class TestRead(ToolContract):
    tool = read_tool
    files = {"a.txt": b"one\ntwo\n"}
    args = {"path": "a.txt"}


class TestEdit(ToolContract):
    tool = edit_tool
    files = {"a.txt": b"one\ntwo\n"}
    args = {"path": "a.txt", "old_string": "one", "new_string": "1"}


class TestWrite(ToolContract):
    tool = write_tool
    files = {"a.txt": b"one\n"}
    args = {"path": "new/b.txt", "content": "two\n"}


class TestUndo(ToolContract):
    tool = undo_tool
    files = {"a.txt": b"one\n"}
    args = {"name": "a.txt", "action": "versions"}


class TestThink(ToolContract):
    tool = think_tool
    args = {"thought": "hm"}


class TestNow(ToolContract):
    tool = now_tool
    args = {}
