from handtools.text import lines
from handtools.text.diffs.three_way_merge import MergeConflict, three_way_merge

BASE = "one\ntwo\nthree\nfour\nfive\n"


def test_changes_in_different_places_are_both_kept():
    ours = BASE.replace("one", "ONE")
    theirs = BASE.replace("five", "FIVE")
    merged = three_way_merge(BASE, ours, theirs)
    assert merged.text == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert merged.conflicts == []


def test_the_same_change_on_both_sides_is_made_once():
    changed = BASE.replace("three", "3\n3")
    assert three_way_merge(BASE, changed, changed).text == changed


def test_an_insertion_and_a_deletion_elsewhere_are_both_kept():
    merged = three_way_merge(BASE, "zero\n" + BASE, BASE.replace("four\n", ""))
    assert merged.text == "zero\none\ntwo\nthree\nfive\n"


def test_different_changes_of_one_line_conflict():
    merged = three_way_merge(BASE, BASE.replace("two", "2"), BASE.replace("two", "II"))
    assert merged.text == ("one\n<<<<<<< ours\n2\n=======\nII\n>>>>>>> theirs\nthree\nfour\nfive\n")
    assert merged.conflicts == [MergeConflict(2, 6, base="two\n", ours="2\n", theirs="II\n")]


def test_changes_of_neighbouring_lines_conflict():
    merged = three_way_merge(BASE, BASE.replace("two", "2"), BASE.replace("three", "3"))
    assert [conflict.base for conflict in merged.conflicts] == ["two\nthree\n"]
    assert merged.conflicts[0].ours == "2\nthree\n"
    assert merged.conflicts[0].theirs == "two\n3\n"


def test_different_insertions_at_one_place_conflict():
    merged = three_way_merge("a\nb\n", "a\nx\nb\n", "a\ny\nb\n")
    assert merged.conflicts == [MergeConflict(2, 6, base="", ours="x\n", theirs="y\n")]


def test_a_deletion_of_what_the_other_side_changed_conflicts():
    merged = three_way_merge(BASE, BASE.replace("two\n", ""), BASE.replace("two", "2"))
    assert merged.conflicts[0].ours == ""
    assert merged.conflicts[0].theirs == "2\n"


def test_each_conflict_names_its_lines_in_the_merged_text():
    ours = BASE.replace("one", "1").replace("five", "5")
    theirs = BASE.replace("one", "I").replace("five", "V")
    merged = three_way_merge(BASE, ours, theirs)
    rows = lines.split_lines(merged.text)
    for conflict in merged.conflicts:
        assert rows[conflict.line - 1].startswith("<<<<<<<")
        assert rows[conflict.end_line - 1].startswith(">>>>>>>")
    assert len(merged.conflicts) == 2


def test_a_change_beside_a_conflict_is_kept():
    ours = BASE.replace("one", "1").replace("five", "5")
    theirs = BASE.replace("one", "I")
    merged = three_way_merge(BASE, ours, theirs)
    assert len(merged.conflicts) == 1
    assert merged.text.endswith("four\n5\n")


def test_a_side_without_a_final_line_end_gets_one_before_its_marker():
    merged = three_way_merge("a", "b", "c")
    assert merged.text == "<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
    assert (merged.conflicts[0].ours, merged.conflicts[0].theirs) == ("b", "c")


def test_markers_take_the_line_end_of_the_text():
    merged = three_way_merge("a\r\n", "b\r\n", "c\r\n")
    assert merged.text == "<<<<<<< ours\r\nb\r\n=======\r\nc\r\n>>>>>>> theirs\r\n"


def test_files_of_carriage_returns_merge_by_their_lines():
    assert three_way_merge("a\rb\rc\r", "A\rb\rc\r", "a\rb\rC\r").text == "A\rb\rC\r"
