"""Citing: hits as a reader sees them."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.search.hit_rendering import RenderedHit, each_path_on_one_line, render_hits

HITS = st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["", "f 1-9", "g 9-30"])), max_size=8)


def test_symbols_are_named_where_they_change():
    found = [
        RenderedHit(2, "a", crumbs="f 1-9"),
        RenderedHit(3, "b", crumbs="f 1-9"),
        RenderedHit(7, "c", crumbs="f 1-9"),
        RenderedHit(12, "d"),
        RenderedHit(14, "e", crumbs="f 1-9"),
    ]
    assert render_hits("x.py", found) == "x.py\n[f 1-9]\n2:a\n3:b\n7:c\n12:d\n[f 1-9]\n14:e"


@given(HITS)
def test_hits_alone_read_as_they_do_beside_a_line_of_their_own(found):
    lines = sorted(dict(found).items())
    alone = [RenderedHit(line, "hit", crumbs=crumbs) for line, crumbs in lines]
    # The same hits the long way: each brings itself as its surroundings, far from the next.
    apart = [
        RenderedHit(line * 9, "hit", crumbs=crumbs, around={line * 9: "hit"}) for line, crumbs in lines
    ]
    shown = [row for row in render_hits("p", apart).split("\n") if row != "--"]
    assert [row.partition(":")[2] or row for row in shown] == [
        row.partition(":")[2] or row for row in render_hits("p", alone).split("\n")
    ]


def test_a_hit_over_several_lines_shows_each_once():
    found = [RenderedHit(1, "a\nb"), RenderedHit(2, "b")]
    assert render_hits("x", found) == "x\n1:a\n2:b"


def test_a_name_that_breaks_a_line_is_written_out_and_others_are_left_alone():
    assert each_path_on_one_line(["a\nb", "c d", "é"]) == ["a\\nb", "c d", "é"]
    assert each_path_on_one_line(["a\u00a0b"]) == ["a\u00a0b"]
