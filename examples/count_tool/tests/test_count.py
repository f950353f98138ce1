"""The contract suite, for free."""

from handtools_count import count

from handtools.testing.contract import ToolContract


class TestCount(ToolContract):
    tool = count
    files = {"a.txt": b"one two\nthree\n"}
    args = {"path": "a.txt"}
