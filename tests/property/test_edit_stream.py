"""Edit streams: however an answer is cut into pieces, and wherever it breaks off."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.tools.editing.edit_agent_messages import (
    AnswerComplete,
    AnswerTags,
    EditStreamParser,
    OldNewPair,
)

MARKS = AnswerTags("_1")
texts = st.text(st.sampled_from("ab <>/_1\n\r\"'oldnewdone"), max_size=30).filter(
    lambda text: "_1>" not in text
)
pairs = st.lists(st.tuples(texts, texts), max_size=5)


def whole(edits: list[tuple[str, str]], chatter: str = "\n") -> str:
    return chatter.join([*(MARKS.render_edit(old, new) for old, new in edits), MARKS.done])


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


def edits_in(pieces: list[str]) -> tuple[list[tuple[str, str]], EditStreamParser]:
    stream = EditStreamParser(MARKS)
    found = [piece for text in pieces for piece in stream.feed(text)]
    return [(piece.old, piece.new) for piece in found if isinstance(piece, OldNewPair)], stream


@given(pairs, st.lists(st.integers(0, 9), max_size=80))
def test_the_pairs_are_the_same_however_the_answer_is_cut(edits, sizes):
    found, stream = edits_in(cut(whole(edits), sizes))
    assert found == edits
    assert not stream.why_incomplete()


@given(pairs, st.integers(0, 400))
def test_an_answer_that_breaks_off_gives_whole_pairs_only_and_says_so(edits, length):
    text = whole(edits)
    found, stream = edits_in([text[:length]])
    assert found == edits[: len(found)]
    assert bool(stream.why_incomplete()) == (MARKS.done not in text[:length])


@given(st.text(max_size=60).filter(lambda text: "_1" not in text))
def test_what_stands_between_the_tags_is_passed_over(chatter):
    found, _ = edits_in([chatter + whole([("a", "b"), ("c", "d")], chatter) + chatter])
    assert found == [("a", "b"), ("c", "d")]


@given(st.text(max_size=200), st.text(max_size=50))
def test_no_tag_can_be_in_the_file(body, instructions):
    marks = AnswerTags.absent_from(body, instructions)
    for tag in (f"<old{marks.suffix}>", f"</new{marks.suffix}>", marks.done, marks.show(1, 2)):
        assert tag not in body + instructions


def test_a_file_that_holds_such_tags_gets_others():
    assert AnswerTags.absent_from("<old_1>", "") == AnswerTags("_2")


def test_what_follows_the_end_is_not_read():
    stream = EditStreamParser(MARKS)
    assert stream.feed(MARKS.done + MARKS.render_edit("a", "b")) == [AnswerComplete()]
