"""Every format is read into one form, and what can't be read is named by its line."""

import pytest

from handtools.text.patches import Hunk, HunkRow, MalformedPatch, invert_patch, parse_patch

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
    "names", ["--- a/x.py\n+++ a/x.py\n", "--- a/x.py\t2020-01-01\n+++ a/x.py\t2020-01-02\n"]
)
def test_a_folder_called_a_is_no_prefix(names):
    [file] = parse_patch(f"{names}@@ -1 +1 @@\n-x\n+y\n")
    assert file.path == "a/x.py"


def test_lines_that_look_like_headers_are_counted_as_the_hunk_says():
    [file] = parse_patch("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n")
    assert file.hunks[0].rows == (HunkRow("-", "-- old"), HunkRow("+", "++ new"), HunkRow(" ", "same"))


def test_a_hunk_that_counts_wrongly_ends_where_its_lines_end():
    first, second = parse_patch(
        "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-x\n+y\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-1\n+2\n 3\n"
    )
    assert len(first.hunks[0].rows) == 2
    assert len(second.hunks[0].rows) == 3


def test_the_missing_final_line_end_is_read():
    [file] = parse_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n")
    assert [row.ended for row in file.hunks[0].rows] == [False, True]


def test_a_blank_line_that_lost_its_space_is_a_kept_one():
    [file] = parse_patch("*** Begin Patch\n*** Update File: x\n a\n\n-b\n+c\n\n*** End Patch")
    assert file.hunks[0].rows == (HunkRow(" ", "a"), HunkRow(" ", ""), HunkRow("-", "b"), HunkRow("+", "c"))


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
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(patch, line):
    with pytest.raises(MalformedPatch) as caught:
        parse_patch(patch)
    assert caught.value.line == line
