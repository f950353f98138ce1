"""Citing: hits as a reader sees them."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.citing import Citation, cite, one_line

HITS = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["", "f 1-9", "g 9-30"])), max_size=8)


def test_symbols_are_named_where_they_change():
    found = [
        Citation(2, "a", crumbs="f 1-9"),
        Citation(3, "b", crumbs="f 1-9"),
        Citation(7, "c", crumbs="f 1-9"),
        Citation(12, "d"),
        Citation(14, "e", crumbs="f 1-9"),
    ]
    assert cite("x.py", found) == "x.py\n[f 1-9]\n2:a\n3:b\n7:c\n12:d\n[f 1-9]\n14:e"


@given(HITS)
def test_hits_alone_read_as_they_do_beside_a_line_of_their_own(found):
    lines = sorted(dict(found).items())
    alone = [Citation(line, "hit", crumbs=crumbs) for line, crumbs in lines]
    # The same hits the long way: each brings itself as its surroundings, far from the next.
    apart = [Citation(line * 9, "hit", crumbs=crumbs, around={line * 9: "hit"}) for line, crumbs in lines]
    shown = [row for row in cite("p", apart).split("\n") if row != "--"]
    assert [row.partition(":")[2] or row for row in shown] == [
        row.partition(":")[2] or row for row in cite("p", alone).split("\n")
    ]


def test_a_hit_over_several_lines_shows_each_once():
    found = [Citation(1, "a\nb"), Citation(2, "b")]
    assert cite("x", found) == "x\n1:a\n2:b"


def test_a_name_that_breaks_a_line_is_written_out_and_others_are_left_alone():
    assert one_line(["a\nb", "c d", "é"]) == ["a\\nb", "c d", "é"]
    assert one_line(["a\u00a0b"]) == ["a\u00a0b"]
