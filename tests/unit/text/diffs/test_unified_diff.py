import time

import pytest

from handtools.text.diffs import unified_diff
from handtools.text.diffs.unified_diff import LineEdit


def test_equal_texts_have_no_edits_and_an_empty_diff():
    assert unified_diff.diff_line_edits(["a\n"], ["a\n"]) == []
    assert unified_diff.unified_diff("x", "a\n", "a\n") == ""
    assert unified_diff.unified_diff("x", None, None) == ""


def test_edits_name_the_changed_regions_only():
    assert unified_diff.diff_line_edits(list("abcde"), list("abXde")) == [LineEdit(2, 3, 2, 3)]
    assert unified_diff.diff_line_edits([], ["a"]) == [LineEdit(0, 0, 0, 1)]
    assert unified_diff.diff_line_edits(["a"], []) == [LineEdit(0, 1, 0, 0)]


def test_a_unified_diff_has_three_lines_of_context():
    before = "".join(f"{number}\n" for number in range(1, 11))
    assert unified_diff.unified_diff("dir/f.txt", before, before.replace("5", "five")) == (
        "--- a/dir/f.txt\n+++ b/dir/f.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )


def test_changes_whose_contexts_meet_share_a_hunk():
    before = "".join(f"{number}\n" for number in range(30))
    near = before.replace("\n10\n", "\nx\n").replace("\n17\n", "\ny\n")
    far = before.replace("\n10\n", "\nx\n").replace("\n18\n", "\ny\n")
    assert unified_diff.unified_diff("f", before, near).count("@@ -") == 1
    assert unified_diff.unified_diff("f", before, far).count("@@ -") == 2


def test_a_missing_final_newline_is_told_on_the_side_that_lacks_it():
    note = "\\ No newline at end of file\n"
    assert unified_diff.unified_diff("f", "a", "a\n") == (f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n{note}+a\n")
    assert unified_diff.unified_diff("f", "b\na", "c\na").endswith(f" a\n{note}")


def test_carriage_returns_are_kept():
    assert "-b\r\n+c\r\n" in unified_diff.unified_diff("f", "a\r\nb\r\n", "a\r\nc\r\n")
    assert "-a\n+a\r\n" in unified_diff.unified_diff("f", "a\n", "a\r\n")


def test_returns_at_the_end_of_every_line_are_not_shown():
    diff = unified_diff.unified_diff("f", "a\r\nb\r\nx", "a\r\nc\r\nx")
    assert unified_diff.diff_without_carriage_returns(diff).endswith(
        "\n a\n-b\n+c\n x\n\\ No newline at end of file\n"
    )
    changed = unified_diff.unified_diff("f", "a\r\nb\r\n", "a\r\nb\n")
    assert unified_diff.diff_without_carriage_returns(changed) == changed


def test_new_and_deleted_files_are_told_by_dev_null():
    assert unified_diff.unified_diff("f", None, "a\n") == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff.unified_diff("f", "a\n", None) == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"


def test_new_empty_files_are_told_by_a_header():
    diff = unified_diff.unified_diff("f", None, "")
    assert diff == "diff --git a/f b/f\nnew file mode 100644\n"


def test_a_moved_file_names_both_paths():
    diff = unified_diff.unified_diff("new", "a\n", "b\n", before_path="old")
    assert "rename from old\nrename to new\n--- a/old\n+++ b/new\n" in diff


def test_hunks_of_a_change_that_slid_far_keep_their_context():
    rows = [f"    row {number}\n" for number in range(150)]
    before = "def f():\n\n" + "".join(rows) + "\n" + "tail\n" * 5
    after = before.replace("".join(rows), "".join(rows) * 2)
    hunk = unified_diff.unified_diff("f", before, after).splitlines()[3:]
    assert [row[0] for row in hunk[:3]] == [" "] * 3
    assert [row[0] for row in hunk[-3:]] == [" "] * 3


def test_shared_indentation_is_trimmed_for_display():
    diff = unified_diff.unified_diff("f", "        a\n          b\n", "        a\n\n          c\n")
    assert unified_diff.dedent_diff_content(diff) == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n-  b\n+\n+  c\n"
    )


def test_tabs_and_spaces_share_no_indentation():
    diff = unified_diff.unified_diff("f", "\ta\n", "    b\n")
    assert unified_diff.dedent_diff_content(diff) == diff


def test_content_that_looks_like_a_header_is_trimmed_as_content():
    diff = unified_diff.unified_diff("f", "  -- x\n", "  ++ y\n")
    assert unified_diff.dedent_diff_content(diff).endswith("@@ -1 +1 @@\n--- x\n+++ y\n")


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("a\n", "a\n", None),
        ("", "a\n", 1),
        ("a\nb\n", "a\nc\n", 2),
        ("a\nb\n", "a\n", 1),
        ("a\n", "", 1),
        ("a\r\nb\r\n", "a\nb\r\n", 1),
        ("a\rb\r", "a\rc\r", 2),
    ],
)
def test_the_first_changed_line_is_a_line_of_the_new_text(before: str, after: str, line: int | None):
    assert unified_diff.first_changed_line(before, after) == line


def test_added_and_removed_lines_are_counted():
    assert unified_diff.count_changed_lines("a\nb\nc\n", "a\nx\ny\nc\n") == (2, 1)
    assert unified_diff.count_changed_lines("a", "a\n") == (1, 1)
    assert unified_diff.count_changed_lines("same", "same") == (0, 0)


def test_a_small_change_of_a_large_file_is_cheap():
    before = "".join(f"    some line of source code {number}\n" for number in range(3_000))
    after = before.replace("code 1500\n", "code fifteen hundred\n")
    durations = []
    for _ in range(10):
        start = time.perf_counter()
        unified_diff.unified_diff("x", before, after)
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.002
