"""Drafts: text files as a call means to leave them."""

import pytest

from handtools.core.errors import AlreadyExists, InvalidInput, NoMatch, NotFound, WrongKind
from handtools.core.files import FileFacts
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.editing.drafts import Draft, DraftSet, refusal_error
from handtools.tools.editing.edit_outcome import EditRefused


class Shelf:
    """The part of the Files port that drafts need, over a dict."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.asked = 0

    async def read(self, path, *, start=0, size=None):
        if path not in self.files:
            raise NotFound(f"There is nothing at `{path}`.")
        return self.files[path]

    async def facts(self, path):
        name = path.removeprefix("./").removeprefix("/root/")
        return FileFacts(name, "file", 1, 0o750, 0.0) if name in self.files else None

    def shown_path(self, path):
        return path.removeprefix("./").removeprefix("/root/")

    async def last_read_bytes(self, path):
        self.asked += 1


async def test_what_the_agent_saw_is_asked_for_only_when_the_text_does_not_match():
    shelf = Shelf(a=b"one\n")
    draft = await Draft.read(shelf, "a")
    await draft.replace_old_text(shelf, "one", "two")
    assert shelf.asked == 0
    await draft.replace_old_text(shelf, "nowhere", "x")
    assert shelf.asked == 1


async def test_a_binary_file_is_no_draft():
    with pytest.raises(WrongKind):
        await Draft.read(Shelf(a=b"\0\1"), "a")


async def test_one_file_under_two_names_is_one_draft():
    desk = DraftSet(Shelf(a=b"one\n"))
    assert await desk.open("a") is await desk.open("./a") is await desk.open("/root/a")
    await desk.create("new", "x")
    with pytest.raises(AlreadyExists):
        await desk.create("./new", "y")


async def test_what_an_earlier_step_removed_is_gone_and_can_be_made_anew():
    desk = DraftSet(Shelf(a=b"one\n"))
    await desk.remove("a")
    with pytest.raises(NotFound):
        await desk.open("a")
    with pytest.raises(NotFound):
        await desk.remove("a")
    await desk.create("a", "two\n")
    [change] = desk.changes("")
    assert (change.before.data, change.after.data) == (b"one\n", b"two\n")


async def test_what_is_made_and_removed_again_is_refused():
    desk = DraftSet(Shelf())
    await desk.create("a", "x")
    with pytest.raises(InvalidInput):
        await desk.remove("a")


async def test_a_move_keeps_encoding_and_mode_and_is_two_changes():
    desk = DraftSet(Shelf(a="grün\n".encode("utf-16")))
    draft = await desk.move("a", "b")
    draft.put("rot\n")
    gone, made = desk.changes("")
    assert (gone.path, gone.after) == ("a", None)
    assert (made.path, made.before) == ("b", None)
    assert made.after.data == "rot\n".encode("utf-16")
    assert made.after.mode == 0o750
    assert "rename from a\nrename to b\n" in desk.diff()


async def test_nothing_to_land_is_refused():
    desk = DraftSet(Shelf(a=b"one\n"))
    await desk.open("a")
    with pytest.raises(InvalidInput):
        desk.changes("")


def test_a_refusal_speaks_of_the_arguments_of_the_tool_but_leaves_the_file_alone():
    refused = EditRefused(
        code="not_found", message="old_string is not there.", suggestion="old_string = 1\n```\nold_string"
    )
    fault = refusal_error(refused, "a: ", old="old_str", new="new_str")
    assert isinstance(fault, NoMatch)
    assert fault.message.startswith("a: old_str is not there.")
    assert "old_string = 1\n```\nold_string\n" in fault.message


async def test_a_file_that_is_too_large_is_refused_with_a_next_step(monkeypatch):
    monkeypatch.setattr("handtools.tools.editing.drafts.MAX_EDIT_BYTES", 3)
    box = memory_toolbox({"a": b"long text\n"})
    refused = await box.call("edit", {"path": "a", "old_string": "long", "new_string": "x"})
    assert refused.fault.code == "too_large"
    assert "command such as sed" in refused.fault.hint


async def test_a_character_that_the_encoding_lacks_is_refused_with_a_next_step():
    box = memory_toolbox({"a.py": "# coding: latin-1\nname = 'caf\xe9'\n".encode("latin-1")})
    refused = await box.call("edit", {"path": "a.py", "old_string": "name", "new_string": "\u540d"})
    assert "convert the file to UTF-8" in refused.fault.hint
