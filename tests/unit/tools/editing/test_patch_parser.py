"""Every format is read into one form, and what can't be read is named by its line."""

import re

import pytest

from handtools.text.patch_model import Hunk, HunkRow, MalformedPatch, begin_patch_text, invert_patch
from handtools.tools.editing.patch_parser import parse_patch

GIT = """\
diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@ def f():
 one
-two
+2
 three
"""
NO_END = "\\ No newline at end of file\n"


def test_a_git_diff_is_read():
    [file] = parse_patch(GIT)
    assert (file.action, file.path, file.origin) == ("update", "src/a.py", None)
    assert file.hunks == (
        Hunk((HunkRow(" ", "one"), HunkRow("-", "two"), HunkRow("+", "2"), HunkRow(" ", "three")), 1),
    )


def test_the_envelope_is_read():
    files = parse_patch(
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ class A\n@@ def f\n x\n-y\n+z\n"
        "*** End of File\n*** Add File: c.py\n+one\n+\n*** Delete File: d.py\n*** End Patch\n"
    )
    assert [(file.action, file.path, file.origin) for file in files] == [
        ("update", "b.py", "a.py"),
        ("add", "c.py", None),
        ("delete", "d.py", None),
    ]
    [hunk] = files[0].hunks
    assert (hunk.scopes, hunk.at_end) == (("class A", "def f"), True)
    assert files[1].hunks == (Hunk((HunkRow("+", "one"), HunkRow("+", ""))),)


@pytest.mark.parametrize(
    "wrapped",
    [
        "```\n{}\n```",
        "```diff\n{}\n```\n",
        "apply_patch <<'EOF'\n{}\nEOF\n",
        "Here it is:\n{}\n",
        "\n\n{}\n\n",
    ],
)
def test_what_stands_around_a_patch_is_left_out(wrapped):
    envelope = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    assert parse_patch(wrapped.format(envelope)) == parse_patch(envelope)
    if "EOF" not in wrapped:
        assert parse_patch(wrapped.format(GIT.strip("\n"))) == parse_patch(GIT)


@pytest.mark.parametrize("rows", ["-x\n", "-x\n+y\n", " x\n", "-x\n+y\n z\n"])
@pytest.mark.parametrize(
    "rest", ["That is all.\n", "-- \n2.39.5\n\nFrom 1a2b3c Mon Sep 17\n", "--\n2.39.5 (Apple Git-154)"]
)
def test_what_stands_below_a_diff_is_no_part_of_it(rows, rest):
    old, new = (len(re.findall(f"(?m)^[ {sign}]", rows)) for sign in "-+")
    diff = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,{old} +1,{new} @@\n{rows}"
    assert parse_patch(diff + rest) == parse_patch(diff)


def test_a_removed_hyphen_is_no_end_of_a_mail():
    [file] = parse_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n-- \n- 2.39.5\n")
    assert [row.text for row in file.hunks[0].rows] == ["x", "y", "- ", " 2.39.5"]


@pytest.mark.parametrize("opening", ["```\n", "\n```diff\n"])
@pytest.mark.parametrize(
    "patch", ["*** Update File: a\n-x\n+y", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-x\n+y"]
)
def test_a_fence_ends_a_patch_that_does_not_say_where_it_ends(opening, patch):
    assert parse_patch(f"{opening}{patch}\n```\n") == parse_patch(patch)


def test_a_fence_that_nothing_closes_takes_no_line_of_the_patch():
    assert parse_patch(f"```diff\n{GIT}") == parse_patch(GIT)


def test_a_patch_whose_line_ends_were_turned_reads_the_same():
    assert parse_patch(GIT.replace("\n", "\r\n")) == parse_patch(GIT)


def test_a_carriage_return_inside_a_hunk_belongs_to_the_file():
    [file] = parse_patch(GIT.replace("-two\n", "-two\r\n"))
    assert HunkRow("-", "two\r") in file.hunks[0].rows


def test_the_one_line_of_an_added_file_keeps_its_carriage_return():
    [file] = parse_patch("*** Add File: x\n+one\r\n")
    assert file.hunks == (Hunk((HunkRow("+", "one\r"),)),)


@pytest.mark.parametrize(
    ("header", "action", "executable"),
    [
        (
            "new file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/a b.sh\n@@ -0,0 +1 @@\n+x\n",
            "add",
            None,
        ),
        ("new file mode 100755\n", "add", True),
        ("deleted file mode 100755\n", "delete", None),
        ("old mode 100644\nnew mode 100755\n", "update", True),
        ("old mode 100755\nnew mode 100644\n", "update", False),
    ],
)
def test_new_deleted_and_changed_modes_are_read(header, action, executable):
    [file] = parse_patch(f"diff --git a/a b.sh b/a b.sh\n{header}")
    assert (file.action, file.path, file.executable) == (action, "a b.sh", executable)


def test_renames_and_copies_are_read():
    renamed, copied = parse_patch(
        "diff --git a/x.py b/y.py\nsimilarity index 100%\nrename from x.py\nrename to y.py\n"
        "diff --git a/x.py b/z.py\ncopy from x.py\ncopy to z.py\n"
    )
    assert (renamed.origin, renamed.path, renamed.keeps_origin) == ("x.py", "y.py", False)
    assert (copied.origin, copied.path, copied.keeps_origin) == ("x.py", "z.py", True)


def test_names_with_spaces_are_told_apart_by_the_lines_of_a_rename():
    [file] = parse_patch("diff --git a/x y b/z w\nrename from x y\nrename to z w\n")
    assert (file.origin, file.path) == ("x y", "z w")


def test_the_inverse_of_a_deletion_brings_the_file_back_with_its_mode():
    [gone] = parse_patch("diff --git a/x b/x\ndeleted file mode 100755\n")
    back = invert_patch(gone, "one\n")
    assert (back.action, back.executable, back.hunks) == ("add", True, (Hunk((HunkRow("+", "one"),), 0),))


@pytest.mark.parametrize("rest", ["rename from x y\n", "rename to z w\n", "new file mode 100644\n"])
def test_half_of_a_rename_does_not_tell_names_with_spaces_apart(rest):
    with pytest.raises(MalformedPatch, match="can't tell where the first name"):
        parse_patch(f"diff --git a/x y b/z w\n{rest}")


def test_the_inverse_of_a_copy_deletes_it():
    [copied] = parse_patch("diff --git a/x b/z\ncopy from x\ncopy to z\n")
    back = invert_patch(copied)
    assert (back.action, back.path, back.origin) == ("delete", "z", None)


def test_the_inverse_of_a_deletion_brings_back_the_lines_that_it_quotes():
    [gone] = parse_patch("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n")
    assert invert_patch(gone, "other\n").hunks == (Hunk((HunkRow("+", "one"),), 0),)


def test_the_inverse_of_the_deletion_of_an_empty_file_adds_no_line():
    [gone] = parse_patch("diff --git a/x b/x\ndeleted file mode 100644\n")
    back = invert_patch(gone, "")
    assert (back.action, back.hunks) == ("add", ())


def test_blank_lines_behind_a_hunk_that_counts_wrongly_are_no_part_of_it():
    hunk = "@@ -1,9 +1,9 @@\n-x\n+y\n\n\n"
    file, _ = parse_patch(f"--- a/x\n+++ b/x\n{hunk}--- a/z\n+++ b/z\n@@ -1 +1 @@\n-1\n+2\n")
    assert file.hunks[0].rows == (HunkRow("-", "x"), HunkRow("+", "y"))


def test_names_that_git_quotes_are_read():
    [file] = parse_patch(
        'diff --git "a/\\303\\244 \\"q\\".txt" "b/\\303\\244 \\"q\\".txt"\nnew file mode 100644\n'
    )
    assert file.path == 'ä "q".txt'


def test_every_escape_of_a_quoted_name_is_undone():
    name = r"\a\b\t\n\v\f\r\\\"\377"
    [file] = parse_patch(f'diff --git "a/{name}" "b/{name}"\nnew file mode 100644\n')
    assert file.path == '\a\b\t\n\v\f\r\\"\udcff'


@pytest.mark.parametrize(
    ("old", "new", "origin", "path"),
    [
        ("a/x.py", "b/x.py", None, "x.py"),
        ("i/x.py", "w/y.py", "x.py", "y.py"),
        ("a/x.py", "a/x.py", None, "a/x.py"),
        ("a/x.py\t2020-01-01", "a/x.py\t2020-01-02", None, "a/x.py"),
        ("x/f.py", "y/f.py", "x/f.py", "y/f.py"),
        ("apple", "banana", "apple", "banana"),
        ("a/x.py", "banana", "a/x.py", "banana"),
    ],
)
def test_letters_that_a_diff_puts_in_front_are_no_part_of_a_name_but_folders_are(old, new, origin, path):
    [file] = parse_patch(f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-x\n+y\n")
    assert (file.origin, file.path) == (origin, path)


@pytest.mark.parametrize(
    ("ranges", "rest"),
    [("-1,2 +1,2", " same\n"), ("-1 +1", ""), ("-1 +1", "--- a/y\n+++ b/y\n"), ("-1 +1", NO_END)],
)
def test_lines_that_look_like_headers_are_counted_as_the_hunk_says(ranges, rest):
    file, *_ = parse_patch(f"--- a/x\n+++ b/x\n@@ {ranges} @@\n--- old\n+++ new\n{rest}")
    assert [row[:2] for row in file.hunks[0].rows[:2]] == [("-", "-- old"), ("+", "++ new")]


def test_a_removed_comment_is_no_header_where_a_hunk_counts_wrongly():
    [file] = parse_patch("--- a/x.sql\n+++ b/x.sql\n@@ -1,9 +1,9 @@\n--- old\n+-- new\n same\n")
    assert file.hunks[0].rows == (HunkRow("-", "-- old"), HunkRow("+", "-- new"), HunkRow(" ", "same"))


@pytest.mark.parametrize(
    ("title", "scopes"),
    [("@@ def f():", ("def f():",)), ("@@ class A @@", ("class A",)), ("@@ ... @@", ()), ("@@", ())],
)
def test_a_hunk_of_a_diff_without_numbers_is_found_by_what_its_header_names(title, scopes):
    [file] = parse_patch(f"--- a/x\n+++ b/x\n{title}\n-x\n+y\n")
    assert file.hunks == (Hunk((HunkRow("-", "x"), HunkRow("+", "y")), scopes=scopes),)


def test_a_hunk_that_counts_wrongly_ends_where_its_lines_end():
    first, second = parse_patch(
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-x\n+y\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-1\n+2\n 3\n"
    )
    assert len(first.hunks[0].rows) == 2
    assert len(second.hunks[0].rows) == 3


@pytest.mark.parametrize("ranges", ["-1,2 +1,2", "-1,9 +1,9"])
def test_the_missing_final_line_end_is_read(ranges):
    rows = f" w\n-x\n{NO_END}+x\n"
    [file] = parse_patch(f"--- a/x\n+++ b/x\n@@ {ranges} @@\n{rows}")
    assert [(row.text, row.ended) for row in file.hunks[0].rows] == [("w", True), ("x", False), ("x", True)]


def test_numbers_in_the_envelope_are_read():
    [file] = parse_patch("*** Update File: x\n@@ -7,2 +7,2 @@\n-a\n+b\n@@\n-c\n+d\n")
    assert [hunk.line for hunk in file.hunks] == [7, None]


def test_a_blank_line_that_lost_its_space_is_a_kept_one():
    [file] = parse_patch("*** Begin Patch\n*** Update File: x\n a\n\n-b\n+c\n\n*** End Patch")
    assert file.hunks[0].rows == (HunkRow(" ", "a"), HunkRow(" ", ""), HunkRow("-", "b"), HunkRow("+", "c"))


def test_a_blank_line_of_an_added_file_that_lost_its_sign_is_kept_between_others():
    files = parse_patch("*** Add File: x\n\n+a\n\n \n+b\n+c\n\n*** End of File\n*** Add File: y\n+d\n")
    assert [[row.text for row in file.hunks[0].rows] for file in files] == [["a", "", "", "b", "c"], ["d"]]


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        ("", 1),
        ("hello", 1),
        ("@@ -1 +1 @@\n-x\n+y", 1),
        ("*** Begin Patch\nwhat\n*** End Patch", 2),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", 2),
        ("*** Begin Patch\n*** Update File: a\n x\nwhat\n*** End Patch", 4),
        ("*** Begin Patch\n*** Add File: a\nwhat\n*** End Patch", 3),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", 3),
        ("*** Begin Patch\n*** Delete File: a\n*** Move to: b\n*** End Patch", 3),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\nwhat\n", 4),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", 3),
        ("diff --git a/x b/x\nGIT binary patch\n", 2),
        ("diff --git a/x b/x\nnew file mode 120000\n", 1),
        ("\n--- a/x\n+++ \n@@ -1 +1 @@\n-x\n+y\n", 2),
        ("\n--- \n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n", 2),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(patch, line):
    with pytest.raises(MalformedPatch) as caught:
        parse_patch(patch)
    assert caught.value.line == line


@pytest.mark.parametrize("patch", ["*** Begin Patch\nwhat\n*** End Patch", "--- a/x\n@@ -1 +1 @@\n-x\n+y"])
def test_the_line_is_counted_with_what_stands_around_the_patch(patch):
    with pytest.raises(MalformedPatch) as caught:
        parse_patch(f"\n\n```diff\n{patch}\n```\n")
    assert caught.value.line == 3 + 2


def test_what_is_no_file_is_named_with_its_mode():
    with pytest.raises(
        MalformedPatch, match=r"^Line 1 of the patch: lib is not a regular file \(mode 160000\)"
    ):
        parse_patch("diff --git a/lib b/lib\nnew file mode 160000\n")


@pytest.mark.parametrize(
    "before",
    ["*** Update File: a\n-x\n+y\n", "*** Add File: a\n+x\n", "--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-x\n+y\n"],
)
def test_the_first_sixty_letters_of_a_line_that_cannot_be_read_are_shown(before):
    with pytest.raises(MalformedPatch) as caught:
        parse_patch(before + "w" * 59 + "hat")
    assert repr("w" * 59 + "h") in str(caught.value)


def test_names_with_spaces_are_told_apart_up_to_ten_thousand_letters():
    short, long = "x y".ljust(4997, "z"), "x y".ljust(4998, "z")
    [file] = parse_patch(f"diff --git a/{short} b/{short}\nnew file mode 100644\n")
    assert file.path == short
    with pytest.raises(MalformedPatch, match="can't tell where the first name"):
        parse_patch(f"diff --git a/{long} b/{long}\nnew file mode 100644\n")


@pytest.mark.parametrize(
    ("arguments", "moved", "read"),
    [
        (("Delete", "a b"), "", ("delete", "a b", None, ())),
        (("Update", "a"), "b", ("update", "b", "a", ())),
        (("Add", "a", "+x\n+\n"), "", ("add", "a", None, (Hunk((HunkRow("+", "x"), HunkRow("+", ""))),))),
    ],
)
def test_a_patch_of_one_file_is_read_as_it_is_written(arguments, moved, read):
    [file] = parse_patch(begin_patch_text(*arguments, move_to=moved))
    assert (file.action, file.path, file.origin, file.hunks) == read
