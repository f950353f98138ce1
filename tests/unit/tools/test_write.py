"""Write: a whole file, new or replaced."""

import pytest

from handtools import Change, Node
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.write import MAX_BYTES


async def write(files, **args):
    box = memory_toolbox(files)
    return await box.call("write", args), box.workspace.files.files


@pytest.mark.claim("write.modes")
async def test_create_refuses_a_file_that_exists_and_overwrite_one_that_does_not():
    refused, files = await write({"a": b"x"}, path="a", content="y")
    assert refused.fault.code == "already_exists"
    assert "overwrite" in refused.text
    assert files == {"a": b"x"}
    refused, files = await write({}, path="a", content="y", mode="overwrite")
    assert refused.fault.code == "not_found"
    assert "create" in refused.text
    assert files == {}


@pytest.mark.claim("write.folders")
async def test_missing_folders_are_made():
    result, files = await write({}, path="a/b/c.txt", content="hi")
    assert result.ok
    assert files == {"a/b/c.txt": b"hi"}
    assert result.details.created


@pytest.mark.claim("write.limit")
async def test_more_than_the_limit_is_refused():
    result, files = await write({}, path="a", content="x" * (MAX_BYTES + 1))
    assert result.fault.code == "too_large"
    assert files == {}


async def test_overwriting_keeps_the_encoding_of_the_file():
    result, files = await write(
        {"a": "grün\n".encode("utf-16")}, path="a", content="blau\n", mode="overwrite"
    )
    assert result.ok, result.text
    assert files["a"] == "blau\n".encode("utf-16")


@pytest.mark.parametrize("content", ["new\n", "\ufeffnew\n"])
async def test_overwriting_keeps_one_byte_order_mark(content):
    result, files = await write({"a": b"\xef\xbb\xbfold\n"}, path="a", content=content, mode="overwrite")
    assert result.ok
    assert files["a"] == b"\xef\xbb\xbfnew\n"


async def test_what_the_encoding_cannot_hold_is_refused():
    data = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")
    result, files = await write(
        {"a.py": data}, path="a.py", content="# -*- coding: latin-1 -*-\n'✓'\n", mode="overwrite"
    )
    assert result.fault.code == "invalid_input"
    assert files["a.py"] == data


async def test_writing_the_same_content_is_refused_as_nothing_to_do():
    result, _ = await write({"a": b"x"}, path="a", content="x", mode="overwrite")
    assert result.fault.code == "invalid_input"


async def test_the_details_carry_the_diff():
    result, _ = await write({"a": b"one\ntwo\n"}, path="a", content="one\n2\n", mode="overwrite")
    assert "-two" in result.details.diff
    assert "+2" in result.details.diff
    assert result.details.first_changed_line == 2


@pytest.mark.parametrize("path", ["new/", "there", "."])
@pytest.mark.parametrize("mode", ["create", "overwrite"])
async def test_a_folder_is_not_written_and_the_answer_asks_for_a_file(path, mode):
    box = memory_toolbox({"there/a": b""})
    result = await box.call("write", {"path": path, "content": "x", "mode": mode})
    assert result.fault.code == "wrong_kind"
    assert "the path of a file" in result.text
    assert box.workspace.files.files == {"there/a": b""}


async def test_what_a_person_changed_since_it_was_seen_is_not_written_over():
    box = memory_toolbox({"a": b"one\ntwo\n"})
    await box.call("read", {"path": "a"})
    files = box.workspace.files
    files.perform(files.plan([Change.of("a", before=b"one\ntwo\n", after=b"one\nmine\n")]))
    args = {"path": "a", "content": "three\n", "mode": "overwrite"}
    refused = await box.call("write", args)
    assert refused.fault.code == "stale"
    assert "+mine" in refused.text
    assert files.files["a"] == b"one\nmine\n"
    assert (await box.call("write", args)).ok


async def test_a_read_only_file_is_left_alone():
    box = memory_toolbox({"a": Node("file", b"x\n", 0o444)})
    refused = await box.call("write", {"path": "a", "content": "y\n", "mode": "overwrite"})
    assert refused.fault.code == "storage"
    assert "not writable" in refused.text
    assert box.workspace.files.files["a"] == b"x\n"


async def test_overwriting_what_was_not_read_is_said():
    box = memory_toolbox({"a": b"one\ntwo\nthree\n", "b": b"one\n"})
    result = await box.call("write", {"path": "a", "content": "x", "mode": "overwrite"})
    assert "You had not read the 3 lines that you replaced; `undo` restores them." in result.text
    await box.call("read", {"path": "b"})
    result = await box.call("write", {"path": "b", "content": "x", "mode": "overwrite"})
    assert "had not read" not in result.text


FORTY = "".join(f"line {n}\n" for n in range(1, 41)).encode()


def changed_by_a_person(box, after):
    files = box.workspace.files
    files.perform(files.plan([Change.of("a", before=files.files["a"], after=after)]))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("edit", {"path": "a", "old_string": "not there at all", "new_string": "x"}),
        ("edit", {"path": "a", "old_string": "line 2\n", "new_string": "LINE 2\n"}),
        ("multi_edit", {"path": "a", "edits": [{"old_string": "line 2\n", "new_string": "LINE 2\n"}]}),
        ("patch", {"patch": "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n line 1\n-line 2\n+LINE 2\n"}),
        ("read", {"path": "a", "limit": 3}),
        ("read", {"path": "a", "start_line": 39, "end_line": 40}),
        ("grep", {"pattern": "line 1"}),
        ("edit_and_undo", {}),
    ],
    ids=["failed edit", "edit", "multi_edit", "patch", "read 1-3", "read 39-40", "grep", "undo"],
)
async def test_a_line_that_a_person_added_and_no_call_showed_is_not_written_over(tool, args):
    box = memory_toolbox({"a": FORTY})
    await box.call("read", {"path": "a"})
    changed_by_a_person(box, FORTY + b"by a person\n")
    if tool == "edit_and_undo":
        await box.call("edit", {"path": "a", "old_string": "line 2\n", "new_string": "LINE 2\n"})
        await box.call("undo", {"name": "a"})
    else:
        await box.call(tool, args)
    overwrite = {"path": "a", "content": "mine\n", "mode": "overwrite"}
    refused = await box.call("write", overwrite)
    assert refused.fault.code == "stale", refused.text
    assert "+by a person" in refused.text
    assert "LINE 2" not in refused.text
    assert box.workspace.files.files["a"].endswith(b"by a person\n")
    # The diff showed it: now it is seen.
    assert (await box.call("write", overwrite)).ok


@pytest.mark.parametrize(
    "args",
    [
        {"path": "a"},
        {"path": "a", "start_line": 41},
        {"path": "a", "view": "changes"},
        {"path": "a", "start_line": -1},
    ],
)
async def test_a_line_that_a_read_showed_may_be_written_over(args):
    box = memory_toolbox({"a": FORTY})
    await box.call("read", {"path": "a"})
    changed_by_a_person(box, FORTY + b"by a person\n")
    assert (await box.call("read", args)).ok
    assert (await box.call("write", {"path": "a", "content": "mine\n", "mode": "overwrite"})).ok


async def test_a_line_that_a_person_deleted_is_seen_where_the_lines_around_it_are_shown():
    for shown, ok in (((18, 19), False), ((20, 22), False), ((19, 20), True)):
        box = memory_toolbox({"a": FORTY})
        await box.call("read", {"path": "a"})
        changed_by_a_person(box, FORTY.replace(b"line 20\n", b""))
        await box.call("read", {"path": "a", "start_line": shown[0], "end_line": shown[1]})
        done = await box.call("write", {"path": "a", "content": "mine\n", "mode": "overwrite"})
        assert done.ok == ok, shown


async def test_a_change_after_a_part_was_read_is_not_written_over():
    box = memory_toolbox({"a": FORTY})
    await box.call("read", {"path": "a", "limit": 3})
    changed_by_a_person(box, FORTY + b"by a person\n")
    refused = await box.call("write", {"path": "a", "content": "mine\n", "mode": "overwrite"})
    assert refused.fault.code == "stale"


async def test_own_edits_after_a_read_are_known():
    box = memory_toolbox({"a": FORTY})
    await box.call("read", {"path": "a"})
    for number in (2, 30):
        edit = {"path": "a", "old_string": f"line {number}\n", "new_string": f"LINE {number}\nmore\n"}
        assert (await box.call("edit", edit)).ok
    assert (await box.call("write", {"path": "a", "content": "mine\n", "mode": "overwrite"})).ok


async def test_a_long_change_must_be_read_before_it_is_written_over():
    box = memory_toolbox({"a": FORTY})
    await box.call("read", {"path": "a"})
    changed_by_a_person(box, FORTY + b"by a person\n" * 100)
    overwrite = {"path": "a", "content": "mine\n", "mode": "overwrite"}
    for _ in range(2):
        refused = await box.call("write", overwrite)
        assert "Read the file, include its changes and write again." in refused.text
    await box.call("read", {"path": "a"})
    assert (await box.call("write", overwrite)).ok


@pytest.mark.parametrize(("end", "name"), [("\r\n", "CRLF"), ("\r", "CR")])
async def test_overwriting_keeps_the_line_ends_of_the_file_and_says_so(end, name):
    before = end.join(["one", "two", ""]).encode()
    result, files = await write({"a": before}, path="a", content="1\n2\n3\n", mode="overwrite")
    assert files["a"] == end.join(["1", "2", "3", ""]).encode()
    assert f"Replaced a ({len(files['a'])} bytes, {name} line endings)." in result.text
    assert result.details.first_changed_line == 1


async def test_content_with_its_own_carriage_returns_and_mixed_files_are_written_as_sent():
    for before, content in ((b"one\r\n", "1\r\n2\n"), (b"one\r\ntwo\n", "1\n2\n"), (b"one\n", "1\r\n")):
        result, files = await write({"a": before}, path="a", content=content, mode="overwrite")
        assert files["a"] == content.encode()
        assert "line endings" not in result.text


async def test_writing_the_same_lines_again_to_a_crlf_file_is_nothing_to_do():
    result, files = await write({"a": b"one\r\n"}, path="a", content="one\n", mode="overwrite")
    assert "already has exactly this content" in result.text
    assert files["a"] == b"one\r\n"


@pytest.mark.parametrize(
    ("settings", "path", "end"),
    [
        ({".gitattributes": b"*.bat text eol=crlf\n"}, "win/run.bat", b"\r\n"),
        ({".gitattributes": b"*.bat text eol=crlf\n"}, "win/run.sh", b"\n"),
        ({".gitattributes": b"* eol=crlf\n", "win/.gitattributes": b"* eol=lf\n"}, "win/run.bat", b"\n"),
        ({".editorconfig": b"[*]\nend_of_line = crlf\n"}, "win/run.bat", b"\r\n"),
        (
            {".editorconfig": b"[*]\nend_of_line = crlf\n", "win/.editorconfig": b"root=true\n"},
            "win/a",
            b"\n",
        ),
        ({".editorconfig": b"[*]\nend_of_line = crlf\n", ".gitattributes": b"* eol=lf\n"}, "a", b"\n"),
        ({".editorconfig": b"\xff\xfe\x00"}, "a", b"\n"),
        ({}, "win/run.bat", b"\n"),
    ],
)
async def test_a_new_file_gets_the_line_ends_that_the_project_sets(settings, path, end):
    result, files = await write(settings, path=path, content="one\ntwo\n")
    assert result.ok, result.text
    assert files[path] == b"one" + end + b"two" + end
    assert ("CRLF line endings" in result.text) == (end == b"\r\n")
