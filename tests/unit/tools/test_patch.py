"""Patch: add, change, move and delete files, all of it or nothing."""

from dataclasses import replace

import pytest

from handtools import Node
from handtools.testing.memory_files_and_search import MemoryFiles
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
from handtools.toolbox import CODING, Toolbox
from handtools.tools.patch import MAX_PATCH_CHARS

FILES = {"a.py": b"def f():\n    one = 1\n    return one\n", "b.py": b"x = 1\n", "c.py": b"gone\n"}
ENVELOPE = """\
*** Begin Patch
*** Update File: a.py
*** Move to: src/a.py
@@ def f():
-    one = 1
+    one = 2
     return one
*** Add File: d.py
+new
*** Delete File: c.py
*** End Patch
"""


async def patch(files, text, **args):
    box = memory_toolbox(files)
    return await box.call("patch", {"patch": text, **args}), box.workspace.files.files


@pytest.mark.parametrize("hunk", ["", "@@\n-x = 1\n+x = 2\n"])
async def test_the_diff_of_a_move_is_a_patch_that_makes_it(hunk):
    sections = f"*** Update File: b.py\n*** Move to: d.py\n{hunk}*** Delete File: c.py\n"
    moved = f"*** Begin Patch\n{sections}*** End Patch"
    done, files = await patch(FILES, moved)
    assert done.ok, done.text
    again, same = await patch(FILES, done.details.diff)
    assert again.ok, again.text
    assert same == files


@pytest.mark.claim("patch.formats")
async def test_the_envelope_adds_changes_moves_and_deletes():
    done, files = await patch(FILES, ENVELOPE)
    assert done.ok, done.text
    assert files == {
        "src/a.py": b"def f():\n    one = 2\n    return one\n",
        "b.py": b"x = 1\n",
        "d.py": b"new\n",
    }
    assert [(file.action, file.path) for file in done.details.files] == [
        ("move", "src/a.py"),
        ("add", "d.py"),
        ("delete", "c.py"),
    ]
    assert "rename from a.py" in done.details.diff


@pytest.mark.claim("patch.formats")
async def test_a_unified_diff_does_the_same_and_is_taken_back_in_reverse():
    diff = (
        "diff --git a/a.py b/src/a.py\nsimilarity index 60%\nrename from a.py\nrename to src/a.py\n"
        "--- a/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n def f():\n-    one = 1\n+    one = 2\n     return one\n"
        "diff --git a/c.py b/c.py\ndeleted file mode 100644\n--- a/c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "diff --git a/d.py b/d.py\nnew file mode 100644\n--- /dev/null\n+++ b/d.py\n@@ -0,0 +1 @@\n+new\n"
    )
    box = memory_toolbox(FILES)
    assert (await box.call("patch", {"patch": diff})).ok
    assert sorted(box.workspace.files.files) == ["b.py", "d.py", "src/a.py"]
    assert (await box.call("patch", {"patch": diff, "reverse": True})).ok
    assert box.workspace.files.files == FILES


@pytest.mark.claim("patch.whole")
async def test_one_hunk_that_does_not_fit_leaves_every_file_as_it_was():
    text = ENVELOPE.replace("*** End Patch", "*** Update File: b.py\n-x = 99\n+x = 3\n*** End Patch")
    refused, files = await patch(FILES, text)
    assert refused.fault.code == "no_match"
    assert refused.text.startswith("Nothing was written. b.py, hunk 1 of 1")
    assert files == FILES


@pytest.mark.claim("patch.refusal")
async def test_a_refusal_names_the_file_the_hunk_and_what_is_there():
    hunk = " def f():\n-    one = 9\n+    one = 3\n     return one\n"
    text = f"*** Begin Patch\n*** Update File: a.py\n{hunk}*** End Patch"
    refused, _ = await patch(FILES, text)
    assert "a.py, hunk 1 of 1" in refused.text
    assert "    one = 1\n" in refused.text
    assert "old_string" not in refused.text


_CHANGE = (
    "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n def f():\n-    one = 1\n+    one = 2\n     return one\n"
)


@pytest.mark.claim("patch.drift")
@pytest.mark.parametrize("drift", [0, 3, 4, 400])
async def test_a_numbered_hunk_whose_lines_occur_once_applies_at_any_distance(drift):
    body = b"above\n" * drift + FILES["a.py"]
    result, files = await patch({"a.py": body}, _CHANGE)
    assert result.ok, result.text
    assert files["a.py"] == body.replace(b"= 1", b"= 2")
    assert (f"at line {drift + 1}, not 1" in result.text) == bool(drift)


@pytest.mark.claim("patch.drift")
@pytest.mark.parametrize("drift", [3, 4])
async def test_a_numbered_hunk_whose_lines_occur_twice_may_be_off_by_three_lines(drift):
    body = b"above\n" * drift + FILES["a.py"] + b"between\n" * 9 + FILES["a.py"]
    result, files = await patch({"a.py": body}, _CHANGE)
    assert result.ok == (drift <= 3)
    assert files["a.py"] == (body.replace(b"= 1", b"= 2", 1) if result.ok else body)
    if not result.ok:
        # The advice works: the number of the right place in the header.
        assert "at line 5, 17" in result.text
        assert "Put the number of the right place in the header." in result.text
        result, files = await patch({"a.py": body}, _CHANGE.replace("-1,3 +1,3", "-17,3 +17,3"))
        assert result.ok, result.text
        assert files["a.py"] == b"2".join(body.rsplit(b"1", 1))


async def test_a_numbered_hunk_sent_again_does_not_change_a_copy_of_its_lines():
    body = b"above\n" * 40 + FILES["a.py"] + b"between\n" * 40 + FILES["a.py"]
    diff = _CHANGE.replace("-1,3 +1,3", "-84,3 +84,3")
    first, once = await patch({"a.py": body}, diff)
    assert first.ok, first.text
    _, twice = await patch(once, diff)
    assert twice == once


async def test_numbered_hunks_with_wrong_numbers_come_in_the_order_of_the_file():
    files = {"a": b"one\ntwo\n" + b"-\n" * 9 + b"three\nfour\n"}
    first, second = "@@ -30,2 +30,2 @@\n three\n-four\n+4\n", "@@ -70,2 +70,2 @@\n one\n-two\n+2\n"
    refused, _ = await patch(files, f"--- a/a\n+++ b/a\n{first}{second}")
    assert "sort the hunks by line" in refused.text
    done, after = await patch(files, f"--- a/a\n+++ b/a\n{second}{first}")
    assert done.ok, done.text
    assert after["a"] == files["a"].replace(b"two", b"2").replace(b"four", b"4")


@pytest.mark.claim("patch.drift")
async def test_hunks_that_each_fit_one_place_come_in_any_order():
    hunks = "@@\n-    return one\n+    return 1\n@@\n-def f():\n+def g():\n"
    text = f"*** Begin Patch\n*** Update File: a.py\n{hunks}*** End Patch"
    result, files = await patch(FILES, text)
    assert result.ok, result.text
    assert files["a.py"] == b"def g():\n    one = 1\n    return 1\n"


async def test_a_patch_sent_again_has_nothing_to_do():
    hunk = "@@\n def f():\n+    # One, always.\n"
    text = f"*** Begin Patch\n*** Update File: a.py\n{hunk}*** Add File: b.txt\n+new here\n*** End Patch"
    first, once = await patch(FILES, text)
    assert first.ok, first.text
    again, twice = await patch(once, text)
    assert again.ok, again.text
    assert twice == once
    assert "Nothing to do" in again.text


@pytest.mark.claim("patch.adds")
async def test_a_hunk_that_only_adds_goes_after_its_line_or_is_refused():
    text = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n+    zero = 0\n*** End Patch"
    done, files = await patch(FILES, text)
    assert done.ok, done.text
    assert files["a.py"] == b"def f():\n    zero = 0\n    one = 1\n    return one\n"
    refused, files = await patch(FILES, text.replace("@@ def f():\n", ""))
    assert refused.fault.code == "no_match"
    assert files == FILES


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nothing like a patch", "invalid_input"),
        ("*** Begin Patch\n*** Update File: gone.py\n-x\n+y\n*** End Patch", "not_found"),
        ("*** Begin Patch\n*** Delete File: gone.py\n*** End Patch", "not_found"),
        ("*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", "already_exists"),
        ("*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** End Patch", "already_exists"),
        ("*** Begin Patch\n*** Add File: ../a.py\n+x\n*** End Patch", "outside_workspace"),
        ("x" * (MAX_PATCH_CHARS + 1), "too_large"),
    ],
)
async def test_what_cannot_be_done_is_refused_and_nothing_changes(text, code):
    refused, files = await patch(FILES, text)
    assert refused.fault.code == code, refused.text
    assert files == FILES


async def test_several_sections_of_one_file_apply_one_after_the_other():
    text = (
        "*** Begin Patch\n*** Update File: b.py\n-x = 1\n+x = 2\n*** Update File: ./b.py\n-x = 2\n+x = 3\n"
        "*** End Patch"
    )
    done, files = await patch(FILES, text)
    assert done.ok, done.text
    assert files["b.py"] == b"x = 3\n"


async def test_a_file_is_deleted_and_added_anew():
    text = "*** Begin Patch\n*** Delete File: b.py\n*** Add File: b.py\n+y\n*** End Patch"
    done, files = await patch(FILES, text)
    assert done.ok, done.text
    assert files["b.py"] == b"y\n"


async def test_two_files_swap_their_names():
    text = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: t.py\n*** Update File: b.py\n*** Move to: a.py\n"
        "*** End Patch"
    )
    done, files = await patch(FILES, text)
    assert done.ok, done.text
    assert files["t.py"] == FILES["a.py"]
    assert files["a.py"] == FILES["b.py"]


async def test_a_binary_file_can_be_deleted():
    done, files = await patch({"a": b"\0\1"}, "*** Begin Patch\n*** Delete File: a\n*** End Patch")
    assert done.ok, done.text
    assert files == {}


async def test_an_envelope_that_deletes_cannot_be_reversed_but_undone():
    refused, _ = await patch(FILES, ENVELOPE, reverse=True)
    assert refused.fault.code == "invalid_input"
    assert "undo" in refused.text


def moded(files):
    nodes = {path: Node("file", data, mode) for path, (data, mode) in files.items()}
    box = Toolbox(CODING, workspace=replace(memory_workspace(), files=MemoryFiles(nodes)))
    return box, lambda path: box.workspace.files.facts(path).mode


async def test_modes_follow_the_patch_and_moves_keep_theirs():
    box, mode = moded({"run.sh": (b"x\n", 0o640), "tool.sh": (b"y\n", 0o750)})
    diff = (
        "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        "diff --git a/tool.sh b/bin/tool.sh\nsimilarity index 100%\nrename from tool.sh\nrename to bin/tool.sh\n"
        "diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+z\n"
    )
    done = await box.call("patch", {"patch": diff})
    assert done.ok, done.text
    assert (mode("run.sh"), mode("bin/tool.sh"), mode("new.sh")) == (0o750, 0o750, 0o755)
    assert (await box.call("patch", {"patch": diff, "reverse": True})).ok
    assert (mode("run.sh"), mode("tool.sh")) == (0o640, 0o750)


async def test_an_encoding_and_its_line_ends_survive_a_patch():
    body = "grün\r\nblau\r\n".encode("utf-16")
    done, files = await patch(
        {"a": body}, "*** Begin Patch\n*** Update File: a\n grün\n-blau\n+rot\n+gelb\n*** End Patch"
    )
    assert done.ok, done.text
    assert files["a"] == "grün\r\nrot\r\ngelb\r\n".encode("utf-16")


async def test_a_patch_whose_drift_was_understood_says_so():
    diff = "--- a/b.py\n+++ b/b.py\n@@ -3 +3 @@\n-x = 1\n+x = 2\n"
    done, _ = await patch(FILES, diff)
    assert done.ok, done.text
    assert done.details.notes == ["b.py: hunk 1 matched at line 1, not 3."]


async def test_an_undo_takes_back_a_mode_too():
    box, mode = moded({"run.sh": (b"x\n", 0o640)})
    assert (
        await box.call(
            "patch", {"patch": "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"}
        )
    ).ok
    assert mode("run.sh") == 0o750
    undone = await box.call("undo", {"name": "run.sh"})
    assert undone.details.restored == ["run.sh"]
    assert mode("run.sh") == 0o640
    assert (await box.call("undo", {"name": "run.sh", "action": "redo"})).ok
    assert mode("run.sh") == 0o750


async def test_a_refusal_points_at_the_text_above_it():
    done, _ = await patch(
        {"a": b"line 0\nline 1\n"}, "*** Begin Patch\n*** Update File: a\n@@\n-line x\n+y\n*** End Patch"
    )
    assert done.text.endswith("```\nIf you mean those lines, send the old text as above.")


@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Delete File: link\n*** End Patch",
        "*** Begin Patch\n*** Update File: link\n*** Move to: moved\n@@\n-x = 1\n+x = 2\n*** End Patch",
    ],
)
async def test_what_a_link_leads_to_is_neither_deleted_nor_moved_by_the_name_of_the_link(text):
    tree = {"b.py": b"x = 1\n", "link": Node("link", b"b.py")}
    refused, files = await patch(tree, text)
    assert refused.fault.code == "wrong_kind"
    assert "`link` is a symlink to `b.py`" in refused.text
    assert files == {"b.py": b"x = 1\n"}


async def test_a_file_behind_a_linked_folder_is_deleted():
    tree = {"real/b.py": b"x = 1\n", "linked": Node("link", b"real")}
    done, files = await patch(tree, "*** Begin Patch\n*** Delete File: linked/b.py\n*** End Patch")
    assert done.ok, done.text
    assert files == {}


@pytest.mark.parametrize(
    "head",
    [
        "deleted file mode 120000\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-b.py\n",
        "index 1234567..89abcde 120000\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-b.py\n+c.py\n",
    ],
)
async def test_a_diff_of_a_link_is_refused_by_its_name(head):
    tree = {"b.py": b"x = 1\n", "link": Node("link", b"b.py")}
    refused, _ = await patch(tree, f"diff --git a/link b/link\n{head}")
    assert "link is a symlink" in refused.text
