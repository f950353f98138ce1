"""Multi edit: several edits that land together or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import BlockingToolbox, Call
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.diffs.unified_diff import first_changed_line, unified_diff


async def multi_edit(files, edits, **args):
    box = memory_toolbox(files)
    return await box.call("multi_edit", {"path": "a", "edits": edits, **args}), box.workspace.files.files


def swap(old, new, **more):
    return {"old_string": old, "new_string": new, **more}


@pytest.mark.claim("multi_edit.one")
async def test_one_undo_takes_all_the_edits_back():
    files = {"a": b"one\n", "b": b"two\n"}
    box = memory_toolbox(files)
    call = Call(
        tool="multi_edit", args={"path": "a", "edits": [swap("one", "1"), swap("two", "2", path="b")]}
    )
    assert (await box.call(call)).ok
    assert box.workspace.files.files == {"a": b"1\n", "b": b"2\n"}
    await box.call("undo", {"scope": "call", "name": call.id})
    assert box.workspace.files.files == files


@pytest.mark.claim("multi_edit.whole")
async def test_one_edit_that_fails_leaves_every_file_as_it_was_and_is_named():
    files = {"a": b"one\n", "b": b"two\n"}
    edits = [swap("one", "1"), swap("two", "2", path="b"), swap("nowhere", "x", path="b"), swap("1", "one")]
    refused, after = await multi_edit(files, edits)
    assert refused.fault.code == "no_match"
    assert "Edit 3 of 4 (b)" in refused.text
    assert after == files


@pytest.mark.claim("multi_edit.order")
async def test_each_edit_sees_what_the_ones_before_it_left():
    done, files = await multi_edit({"a": b"one\n"}, [swap("one", "two"), swap("two", "three")])
    assert done.ok, done.text
    assert files["a"] == b"three\n"
    assert "-one\n+three\n" in done.text


@pytest.mark.claim("multi_edit.insert")
@pytest.mark.parametrize(("line", "after"), [(1, b"new\nx\ny\n"), (2, b"x\nnew\ny\n"), (3, b"x\ny\nnew\n")])
@pytest.mark.parametrize("text", ["new", "new\n"])
async def test_an_insertion_becomes_that_line(line, after, text):
    done, files = await multi_edit({"a": b"x\ny\n"}, [{"insert_line": line, "new_string": text}])
    assert done.ok, done.text
    assert files["a"] == after


@pytest.mark.parametrize("line", [0, 4])
async def test_an_insertion_outside_the_file_is_refused(line):
    refused, _ = await multi_edit({"a": b"x\ny\n"}, [{"insert_line": line, "new_string": "new"}])
    assert refused.fault.code == "invalid_input"


async def test_an_insertion_that_also_replaces_is_refused():
    refused, files = await multi_edit({"a": b"x\n"}, [swap("x", "y", insert_line=1)])
    assert refused.fault.code == "invalid_input"
    assert files["a"] == b"x\n"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b"x\r\ny\r\n", b"x\r\nnew\r\ny\r\n"),
        (b"x\ny", b"x\nnew\ny"),
        (b"x\ry\r", b"x\rnew\ry\r"),
        (b"x", b"x\nnew"),
    ],
)
async def test_an_inserted_line_takes_the_line_end_of_its_neighbours(body, after):
    done, files = await multi_edit({"a": body}, [{"insert_line": 2, "new_string": "new\n"}])
    assert done.ok, done.text
    assert files["a"] == after


@pytest.mark.claim("multi_edit.create")
async def test_an_empty_old_string_creates_a_file_and_later_edits_go_on_with_it():
    done, files = await multi_edit(
        {}, [swap("", "one\ntwo\n", path="new/c"), swap("two", "2", path="new/c")]
    )
    assert done.ok, done.text
    assert files == {"new/c": b"one\n2\n"}
    assert done.details.files[0].created


async def test_an_empty_old_string_never_overwrites():
    refused, files = await multi_edit({"a": b"x\n"}, [swap("", "y\n")])
    assert refused.fault.code == "already_exists"
    assert files == {"a": b"x\n"}


async def test_a_file_that_is_not_there_is_refused_with_the_way_to_create_it():
    refused, _ = await multi_edit({}, [swap("x", "y")])
    assert refused.fault.code == "not_found"
    assert "empty old_string" in refused.text


async def test_an_edit_without_a_file_is_refused():
    refused, _ = await multi_edit({}, [swap("x", "y")], path=None)
    assert refused.fault.code == "invalid_input"


async def test_two_spellings_of_one_path_are_one_file():
    edits = [swap("one", "1"), swap("two", "2", path="./a"), swap("three", "3", path="/workspace/a")]
    done, files = await multi_edit({"a": b"one\ntwo\nthree\n"}, edits)
    assert done.ok, done.text
    assert files == {"a": b"1\n2\n3\n"}
    assert [file.edits for file in done.details.files] == [3]


async def test_a_misspelt_parameter_of_an_edit_is_named():
    refused, _ = await multi_edit({"a": b"x\n"}, [{"oldstring": "x", "new_string": "y"}])
    assert refused.fault.code == "invalid_input"
    assert "oldstring" in refused.text


async def test_edits_that_change_nothing_together_land_nothing():
    refused, files = await multi_edit({"a": b"x\n"}, [swap("x", "y"), swap("y", "x")])
    assert refused.fault.code == "invalid_input"
    assert files["a"] == b"x\n"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8))
def test_the_edits_are_the_same_as_one_after_the_other(pairs):
    """All of them as single edits, or nothing at all where one of those fails."""
    body = b"".join(b"word_%d\n" % n for n in range(10))
    edits = [swap(f"word_{a}", f"term_{b}") for a, b in pairs]
    single, many = memory_toolbox({"a": body}), memory_toolbox({"a": body})
    results = [BlockingToolbox(single).call("edit", {"path": "a", **edit}) for edit in edits]
    together = BlockingToolbox(many).call("multi_edit", {"path": "a", "edits": edits})
    if all(result.ok for result in results):
        assert together.ok
        assert many.workspace.files.files == single.workspace.files.files
    else:
        assert not together.ok
        assert many.workspace.files.files == {"a": body}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("swap"), st.integers(0, 9), st.text("ab\n", max_size=4)),
            st.tuples(st.just("insert"), st.integers(1, 8), st.text("ab\n", max_size=4)),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_diff_is_what_was_written_whatever_the_order_of_edits(steps):
    body = "".join(f"word_{n}\n" for n in range(10))
    edits = [
        swap(f"word_{at}", text) if kind == "swap" else {"insert_line": at, "new_string": text}
        for kind, at, text in steps
    ]
    box = memory_toolbox({"a": body.encode()})
    done = BlockingToolbox(box).call("multi_edit", {"path": "a", "edits": edits})
    if done.ok:
        after = box.workspace.files.files["a"].decode()
        assert unified_diff("a", body, after) in done.text
        assert done.details.files[0].first_changed_line == first_changed_line(body, after)


async def test_an_empty_old_string_fills_an_empty_file_and_leaves_a_filled_one():
    box = memory_toolbox({"empty": b"", "filled": b"x\n"})
    edits = [{"old_string": "", "new_string": "a\n"}, {"old_string": "a", "new_string": "b"}]
    done = await box.call("multi_edit", {"path": "empty", "edits": edits})
    assert done.ok, done.text
    assert box.workspace.files.files["empty"] == b"b\n"
    refused = await box.call("multi_edit", {"path": "filled", "edits": edits})
    assert refused.fault.code == "already_exists"
    assert box.workspace.files.files["filled"] == b"x\n"
