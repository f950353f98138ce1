from textwrap import dedent

from handtools.text.diffs.alignment import LineEdit, align_lines
from handtools.text.diffs.unified_diff import edits_slid_to_best_place


def rows(text: str) -> list[str]:
    return dedent(text).lstrip("\n").splitlines()


def added(before: str, after: str) -> list[str]:
    """Give the rows that one edit adds."""
    (edit,) = edits_slid_to_best_place(align_lines(rows(before), rows(after)), rows(before), rows(after))
    return rows(after)[edit.start_b : edit.end_b]


def test_an_inserted_function_is_shown_whole():
    before = """
        def one():
            pass

        def three():
            pass
        """
    after = """
        def one():
            pass

        def two():
            pass

        def three():
            pass
        """
    assert added(before, after) == ["def two():", "    pass", ""]


def test_an_inserted_block_starts_at_its_opening_line():
    before = """
        outer {
            if (a) {
                one();
            }
        }
        """
    after = """
        outer {
            if (a) {
                one();
            }
            if (a) {
                two();
            }
        }
        """
    assert added(before, after) == ["    if (a) {", "        two();", "    }"]


def test_an_inserted_block_begins_with_its_own_comment():
    before = """
        /// One.
        fn a() {}

        /// Any.
        fn c() {}
        """
    after = """
        /// One.
        fn a() {}

        /// Any.
        fn b() {}

        /// Any.
        fn c() {}
        """
    assert added(before, after) == ["/// Any.", "fn b() {}", ""]


def test_a_removed_block_is_shown_as_a_whole():
    before = ["start {", "    x", "}", "start {", "    y", "}", "end"]
    after = ["start {", "    x", "}", "end"]
    assert edits_slid_to_best_place([LineEdit(2, 5, 2, 2)], before, after) == [LineEdit(3, 6, 3, 3)]


def test_a_repeated_line_is_added_after_the_others():
    assert added("a\na\nb", "a\na\na\nb") == ["a"]
    assert edits_slid_to_best_place(align_lines(["a"], ["a", "a"]), ["a"], ["a", "a"]) == [
        LineEdit(1, 1, 1, 2)
    ]


def test_a_deletion_that_can_reach_an_insertion_joins_it():
    assert edits_slid_to_best_place(
        [LineEdit(0, 1, 0, 0), LineEdit(2, 2, 1, 2)], list("aab"), list("aXb")
    ) == [LineEdit(1, 2, 1, 2)]


def test_a_change_never_slides_over_another():
    a, b = list("xaaay"), list("aaa")
    assert edits_slid_to_best_place(align_lines(a, b), a, b) == [LineEdit(0, 1, 0, 0), LineEdit(4, 5, 3, 3)]
