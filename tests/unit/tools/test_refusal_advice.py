"""The advice of a refused edit, patch or write works when it is followed to the letter."""

import re

import pytest

from handtools.testing.memory_toolbox import memory_toolbox

_OLD = re.compile(r"old_string(?: for line \d+)?:\n(`{3,})\n(.*?)\n\1", re.DOTALL)


async def refused_edit(text, old, new):
    box = memory_toolbox({"a": text.encode()})
    refused = await box.call("edit", {"path": "a", "old_string": old, "new_string": new})
    assert not refused.ok, refused.text
    return box, refused.text


async def content_after(box, **args):
    done = await box.call("edit", {"path": "a", **args})
    assert done.ok, done.text
    return box.workspace.files.files["a"].decode()


async def test_replace_all_is_offered_where_it_works():
    box, told = await refused_edit("x = 1\ny = 2\nx = 1\n", "x = 1", "x = 3")
    assert "or set `replace_all` to change all." in told
    after = await content_after(box, old_string="x = 1", new_string="x = 3", replace_all=True)
    assert after == "x = 3\ny = 2\nx = 3\n"


@pytest.mark.parametrize("old", ["run( a )", "“run”(a)"])
async def test_replace_all_is_not_offered_for_places_that_differ_from_old_string(old):
    body = "run(a)\n\nrun(a)\n" if "“" not in old else '"run"(a)\n\n"run"(a)\n'
    _, told = await refused_edit(body, old, "go(a)")
    assert "replace_all" not in told


async def test_replace_all_is_not_offered_by_a_tool_that_lacks_it():
    box = memory_toolbox({"a": b"if x:\n\tgo()\nif x:\n\tgo()\n"})
    hunk = "*** Begin Patch\n*** Update File: a\n@@\n-    go( )\n+    stop()\n*** End Patch"
    refused = await box.call("patch", {"patch": hunk})
    assert not refused.ok
    assert "replace_all" not in refused.text
    assert "replace all" not in refused.text


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a\nx = 1\nb\nx = 1\n", "x = 1"),
        (
            "def f(job):\n    run(job, 14)\n    return job\n",
            "def f(job):\n    run(job, 99)\n    return job",
        ),
        ("timeout = 10\n", "timeout = 1"),
        ("check()\nreturn total + rest\n", "return total"),
        ("class A:\n    if ready:\n        go()\n", "if ready:"),
    ],
    ids=["ambiguous", "not found", "inside a number", "cut line", "lost indentation"],
)
async def test_an_old_string_from_the_refusal_is_accepted(text, old):
    new = f"{old}\n    added()"
    box, told = await refused_edit(text, old, new if old != "timeout = 1" else "timeout = 2")
    offered = [match[2] for match in _OLD.finditer(told)]
    assert offered
    for one in offered:
        box = memory_toolbox({"a": text.encode()})
        after = await content_after(box, old_string=one, new_string=f"# new\n{one}")
        assert after == text.replace(one, f"# new\n{one}")


async def test_lines_that_are_not_unique_are_not_offered_as_an_old_string():
    text = "go(1)\ngo(2)\ngo(3)\n" * 40
    _, told = await refused_edit(text, "go(1)\ngo(7)\ngo(3)", "stop()")
    for match in _OLD.finditer(told):
        assert text.count(match[2]) == 1
    if not _OLD.search(told):
        assert "as above" not in told


async def test_an_edit_sent_again_is_told_as_done_and_not_to_send_the_result_as_old_string():
    box = memory_toolbox({"a": b"y = 0\nx = 1\n"})
    args = {"path": "a", "old_string": "x = 1", "new_string": "x = 2"}
    assert (await box.call("edit", args)).ok
    again = await box.call("edit", args)
    assert "Already done: new_string is at line 2 since edit (the last call" in again.text
    assert "send old_string" not in again.text
    assert box.workspace.files.files["a"] == b"y = 0\nx = 2\n"


async def test_one_line_is_not_told_as_a_range():
    _, told = await refused_edit("total = compute(1)\n", "total = compute(7)", "x")
    assert "Nearest: line 1." in told


async def test_what_is_too_large_to_write_can_be_written_in_two_steps(monkeypatch):
    monkeypatch.setattr("handtools.tools.write.MAX_BYTES", 8)
    box = memory_toolbox({})
    refused = await box.call("write", {"path": "a", "content": "one\ntwo\nthree\n"})
    assert "Write a part, then add the rest with `edit`." in refused.text
    assert (await box.call("write", {"path": "a", "content": "one\ntwo\n"})).ok
    assert await content_after(box, old_string="two", new_string="two\nthree") == "one\ntwo\nthree\n"


async def test_a_file_that_exists_can_be_overwritten_as_the_refusal_says():
    box = memory_toolbox({"a": b"x\n"})
    refused = await box.call("write", {"path": "a", "content": "y\n"})
    assert "write with mode=overwrite" in refused.text
    assert (await box.call("write", {"path": "a", "content": "y\n", "mode": "overwrite"})).ok
    missing = await box.call("write", {"path": "b", "content": "y\n", "mode": "overwrite"})
    assert "mode=create" in missing.text
    assert (await box.call("write", {"path": "b", "content": "y\n", "mode": "create"})).ok
