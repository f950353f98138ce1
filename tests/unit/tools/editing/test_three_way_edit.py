import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused, MatchHint
from handtools.tools.editing.replacement import replace_text

NAMES = [
    "oak",
    "elm",
    "ash",
    "fir",
    "yew",
    "box",
    "bay",
    "fig",
    "nut",
    "date",
    "plum",
    "pear",
    "lime",
    "rose",
]
BODY = "def plant(plot):\n" + "".join(f"    plot.dig({n}, {name!r})\n" for n, name in enumerate(NAMES))
TOLD = BODY.replace("'pear'", "'apple tree'")


def applied(old: str, new: str, body: str = BODY) -> EditApplied:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    return outcome


def test_a_misremembered_line_that_the_edit_does_not_touch_stays_as_it_is():
    outcome = applied(TOLD, TOLD.replace("'oak'", "'beech'"))
    assert outcome.text == BODY.replace("'oak'", "'beech'")
    assert outcome.tier == "misremembered context"
    assert "apple tree" in outcome.notes[0]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_misremembered_line_is_no_trouble_in_a_file_with_other_line_ends(end):
    body = BODY.replace("\n", end)
    assert applied(TOLD, TOLD.replace("'oak'", "'beech'"), body).text == body.replace("'oak'", "'beech'")


def test_where_a_line_is_named_a_misremembered_line_is_refused():
    outcome = replace_text(BODY, TOLD, TOLD.replace("'oak'", "'beech'"), hint=MatchHint(line=1))
    assert isinstance(outcome, EditRefused)


def test_blanks_at_the_ends_of_kept_lines_stay_the_files():
    body = BODY.replace("'elm')\n", "'elm')  \n")
    assert applied(TOLD, TOLD.replace("'oak'", "'beech'"), body).text == body.replace("'oak'", "'beech'")


def test_line_ends_of_windows_stay():
    body = BODY.replace("\n", "\r\n")
    assert applied(TOLD, TOLD.replace("'oak'", "'beech'"), body).text == body.replace("'oak'", "'beech'")


def test_a_misremembered_line_beside_the_change_is_refused():
    assert isinstance(replace_text(BODY, TOLD, TOLD.replace("'apple tree'", "'reed'")), EditRefused)
    assert isinstance(replace_text(BODY, TOLD, TOLD.replace("'lime'", "'reed'")), EditRefused)


def test_a_short_block_with_a_misremembered_line_may_be_another_place():
    short = "".join(BODY.splitlines(keepends=True)[8:])
    told = short.replace("'pear'", "'apple tree'")
    assert isinstance(replace_text(BODY, told, told.replace("'nut'", "'beech'")), EditRefused)


def test_two_places_that_are_equally_near_are_refused():
    assert isinstance(
        replace_text(BODY + "\n\n" + BODY, TOLD, TOLD.replace("'oak'", "'beech'")), EditRefused
    )


OLD = "def admit(visitor):\n    queue.put(visitor)\n    return visitor.ticket\n"
NEW = OLD.replace(
    "    queue",
    "    if visitor.quota_left(today(), zone) > 0:\n        note_arrival(visitor)\n        queue",
)


def test_an_earlier_version_of_the_change_is_replaced():
    body = OLD.replace(
        "    queue", "    if visitor.quota_left(today()) > 0:\n        note_arrival(visitor)\n        queue"
    )
    outcome = applied(OLD, NEW, body)
    assert outcome.text == NEW
    assert outcome.tier == "an earlier version of the change"


def test_what_someone_else_put_there_is_not_replaced():
    body = OLD.replace("    queue", "    if visitor.has_paid_entrance():\n        queue")
    assert isinstance(replace_text(body, OLD, NEW), EditRefused)


def test_a_version_that_holds_more_than_the_change_is_not_replaced():
    more = (
        "    if visitor.quota_left(today()) > 0:\n        note_arrival(visitor)\n"
        "        announce_arrival(speaker, visitor)\n        queue"
    )
    assert isinstance(replace_text(OLD.replace("    queue", more), OLD, NEW), EditRefused)


def test_a_line_that_shares_words_with_the_change_and_is_none_of_its_lines_is_no_version_of_it():
    body = "- the northern garden gate\nlantern(hallway)\n# what the evening needs\n"
    old = "- the northern garden gate\n\n# what the evening needs\n"
    new = "- the northern garden gate\n\nlight = 4\nlantern.size[2]\nhallway.width[3]\n"
    assert isinstance(replace_text(body, old, new), EditRefused)
