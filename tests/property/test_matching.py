"""What holds for every text and every edit."""

import re
import string

from hypothesis import assume, given
from hypothesis import strategies as st

from handtools.text import lines
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditApplied, EditRefused
from handtools.tools.editing.refusals import render_refusal
from handtools.tools.editing.replacement import replace_text

WORDS = [
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "x = 1",
    "y = f(z)",
    "}",
    "if ready:",
    "return 'a'",
    'say("b")',
]
INDENTS = ["", "  ", "    ", "\t", "\t\t", "        "]
ENDS = ["\n", "\r\n", "\r"]
TAILS = ["", "", " ", "\t"]

line = st.builds(
    lambda indent, word, tail: indent + word + tail, *map(st.sampled_from, (INDENTS, WORDS, TAILS))
)
row = st.one_of(line, line, line, st.just(""))
ended = st.builds(lambda text, end: text + end, row, st.sampled_from(ENDS))
bodies = st.lists(ended, min_size=1, max_size=14).map("".join)
fragments = st.lists(row, min_size=1, max_size=5).map("\n".join)
DAMAGES = [
    lambda text: text,
    str.rstrip,
    str.strip,
    lambda text: "  " + text,
    lambda text: text.replace("\t", "    "),
    lambda text: text.replace("'", '"'),
    lambda text: text.replace(" ", "  "),
]


@st.composite
def attempts(draw):
    """A body, and the arguments of someone who read it and copied a part of it badly."""
    rows = draw(st.lists(ended, min_size=2, max_size=14))
    start = draw(st.integers(0, len(rows) - 1))
    count = draw(st.integers(1, 5))
    damage = draw(st.sampled_from(DAMAGES))
    old = [damage(lines.without_line_ending(text)) for text in rows[start : start + count]]
    new = list(old)
    at = draw(st.integers(0, len(old) - 1))
    new[at : at + draw(st.integers(0, 1))] = draw(st.lists(row, max_size=2))
    tail = draw(st.sampled_from(["", "\n"]))
    return "".join(rows), "\n".join(old) + tail, "\n".join(new) + tail


anything = st.text(alphabet=st.sampled_from(string.printable + "“”’–\u00a0\u200béЖ\udc80"), max_size=80)


@given(attempts())
def test_not_one_character_outside_the_spans_changes(attempt):
    body, old, new = attempt
    outcome = replace_text(body, old, new)
    if isinstance(outcome, EditApplied):
        (span,) = outcome.spans
        assert outcome.text.startswith(body[: span.start])
        assert outcome.text.endswith(body[span.end :])
        assert len(outcome.text) >= span.start + len(body) - span.end


@given(attempts())
def test_what_is_written_is_in_the_file_or_in_the_new_text(attempt):
    """Every line of the result is one of the file, or one of `new` but for blanks and quotes."""
    body, old, new = attempt
    outcome = replace_text(body, old, new)
    if isinstance(outcome, EditApplied) and outcome.tier != "exact":
        known = {_folded(text) for text in (*lines.split_lines(body), *new.split("\n"))}
        assert {_folded(text) for text in lines.split_lines(outcome.text)} <= known


def _folded(text: str) -> str:
    return "".join(text.split()).replace("'", '"')


@given(anything, anything, anything)
def test_every_input_is_applied_or_refused_and_the_refusal_can_be_shown(body, old, new):
    outcome = replace_text(body, old, new)
    if isinstance(outcome, EditRefused):
        assert render_refusal(outcome).startswith(outcome.message)
    else:
        assert (outcome.text == body) == isinstance(outcome, AlreadyApplied)


@given(bodies, st.data())
def test_a_unique_piece_is_replaced_as_str_replace_would(body, data):
    # A lone carriage return may meet the line feed of an empty line.
    mixed, body = re.sub("\r(?!\n)", "\r\n", body), lines.convert_line_ends(body, "\n")
    start = data.draw(st.integers(0, len(body) - 1))
    end = data.draw(st.integers(start + 1, len(body)))
    old = body[start:end]
    new = data.draw(fragments)
    assume(old != new and body.find(old, body.find(old) + 1) < 0)
    # Blanks next to the piece may belong to a line that goes; what then happens has tests of its own.
    assume(body[start - 1 : start] not in {" ", "\t"} and body[end : end + 1] not in {" ", "\t"})
    outcome = replace_text(body, old, new)
    if isinstance(outcome, EditApplied):
        assert outcome.text == body.replace(old, new)
        assert outcome.tier == "exact"
    elif isinstance(outcome, AlreadyApplied):
        assert old in new
        assert new in body
    else:
        # What cuts a word, a depth or a line in two.
        assert outcome.code in {"inside_word", "indent_conflict", "unclear"}
    again = replace_text(mixed, old, new)
    if isinstance(outcome, EditApplied) and isinstance(again, EditApplied):
        assert lines.convert_line_ends(again.text, "\n") == outcome.text
    else:
        assert type(again) is type(outcome)


@given(st.lists(line, min_size=1, max_size=8, unique_by=str.strip), st.data())
def test_an_insertion_sent_again_is_never_made_again(rows, data):
    """Whatever lines were put beside one that stands once, the same edit has nothing to do the second time."""
    at = data.draw(st.integers(0, len(rows) - 1))
    told = rows[at]
    above, below = (
        data.draw(st.lists(st.sampled_from(["added()", "  more = 2"]), max_size=2)) for _ in "ab"
    )
    assume(above or below)
    new = "\n".join([*above, told, *below])
    body = "\n".join([*rows[:at], new, *rows[at + 1 :], ""])
    outcome = replace_text(body, told, new)
    assume(not isinstance(outcome, EditRefused))
    assert isinstance(outcome, AlreadyApplied)
    assert outcome.text == body


@given(bodies, fragments, fragments)
def test_two_exact_places_are_always_refused(body, old, new):
    body = lines.convert_line_ends(body, "\n")
    assume(old and old != new)
    doubled = f"{body}\n{old}\n{body}\n{old}\n"
    outcome = replace_text(doubled, old, new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "ambiguous"


@given(bodies, fragments, st.sampled_from(["# ... existing code ...", "// (unchanged)"]))
def test_a_note_for_code_left_out_never_reaches_the_file(body, old, note):
    outcome = replace_text(body, old, f"{old}\n{note}")
    assert isinstance(outcome, EditRefused)


@given(st.lists(line, min_size=2, max_size=8, unique_by=str.strip), st.data())
def test_kept_lines_keep_the_files_bytes_whatever_the_model_lost(rows, data):
    """Old and new without trailing blanks and with other line ends; one line is dropped."""
    ends = data.draw(st.lists(st.sampled_from(ENDS[:2]), min_size=len(rows), max_size=len(rows)))
    body = "".join(text + end for text, end in zip(rows, ends, strict=True))
    gone = data.draw(st.integers(0, len(rows) - 1))
    told = [text.rstrip() for text in rows]
    outcome = replace_text(body, "\n".join(told) + "\n", "\n".join([*told[:gone], *told[gone + 1 :], ""]))
    assume(isinstance(outcome, EditApplied))
    kept = "".join(
        text + end for index, (text, end) in enumerate(zip(rows, ends, strict=True)) if index != gone
    )
    assert outcome.text == kept


@given(
    st.lists(st.tuples(st.sampled_from(WORDS[:2]), st.sampled_from(["", "\t"])), min_size=2, max_size=6),
    st.data(),
)
def test_lines_that_change_places_take_their_own_blanks_along_or_are_refused(rows, data):
    """Lines are equal but for blanks at their ends: a block of them is moved, taken out, or two are exchanged."""
    told, filed = [word for word, _ in rows], [word + tail for word, tail in rows]
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    block, rest = list(range(start, stop)), [*range(start), *range(stop, len(rows))]
    at = data.draw(st.integers(0, len(rest)))
    exchanged = list(range(len(rows)))
    exchanged[start], exchanged[stop - 1] = stop - 1, start
    order = data.draw(st.sampled_from([[*rest[:at], *block, *rest[at:]], rest, exchanged]))
    body, wanted = (
        "\n".join(["head", *side, "foot", ""]) for side in (filed, [filed[index] for index in order])
    )
    outcome = replace_text(body, "\n".join([*told, ""]), "".join(f"{told[index]}\n" for index in order))
    if isinstance(outcome, EditApplied) and outcome.tier != "exact":
        assert outcome.text == wanted


@given(st.lists(line.map(str.rstrip), min_size=2, max_size=8, unique_by=str.strip), st.data())
def test_text_moved_sideways_is_put_back(rows, data):
    """Both arguments shifted by one prefix: added lines land where they were meant."""
    assume(sum(map(str.isalnum, "".join(rows))) >= 8)
    shift = data.draw(st.sampled_from(["    ", "  ", "\t"]))
    at = data.draw(st.integers(1, len(rows)))
    indent = rows[at - 1][: len(rows[at - 1]) - len(rows[at - 1].lstrip())]
    wanted = [*rows[:at], f"{indent}added_line()", *rows[at:]]
    old, new = ("\n".join(shift + text for text in side) for side in (rows, wanted))
    body = "head\n" + "\n".join(rows) + "\ntail\n"
    outcome = replace_text(body, old, new)
    if isinstance(outcome, EditApplied):
        assert outcome.text == "head\n" + "\n".join(wanted) + "\ntail\n"


@given(attempts(), st.sampled_from(WORDS))
def test_a_suggested_old_string_occurs_exactly_once(attempt, word):
    body, old, new = attempt
    outcome = replace_text(body, old.replace(word, "echo"), new)
    if isinstance(outcome, EditRefused) and outcome.suggestion:
        view = lines.convert_line_ends(body, "\n")
        at = view.find(outcome.suggestion)
        assert at >= 0
        assert view.find(outcome.suggestion, at + 1) < 0


@given(bodies, line, row)
def test_every_counts_what_it_replaced(body, old, new):
    assume(old != new)
    body = lines.convert_line_ends(body, "\n") + old
    outcome = replace_text(body, old, new, every=True)
    assert isinstance(outcome, EditApplied)
    assert outcome.count == body.count(old)
    assert outcome.text == body.replace(old, new)


@given(attempts(), st.data())
def test_memory_never_loses_what_others_wrote(attempt, data):
    seen, old, new = attempt
    rows = lines.split_lines(seen)
    at = data.draw(st.integers(0, len(rows) - 1))
    now = "".join([*rows[:at], "written by another\n", *rows[at + data.draw(st.integers(0, 1)) :]])
    outcome = replace_text(now, old, new, seen=seen)
    if isinstance(outcome, EditApplied):
        assert "written by another" in outcome.text
        (span,) = outcome.spans
        assert outcome.text.startswith(now[: span.start])
        assert outcome.text.endswith(now[span.end :])
