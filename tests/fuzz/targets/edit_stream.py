"""The edit model's answers as they stream in: the same events however they are cut."""

from handtools.tools.editing.edit_agent_messages import AnswerTags, EditStreamParser
from tests.fuzz.drawn_values import text_of

MARKS = AnswerTags("_1")
SEEDS = [
    (
        MARKS.render_edit("a\n", "b") + MARKS.show(1, 20) + MARKS.render_edit("", "<old>") + MARKS.done
    ).encode(),
    ("so " + MARKS.cannot("why") + MARKS.done).encode(),
    b"<old_1>\r\na\r\n</old_1><old_1>x</old_1><new_1><done_1/></new_1><show_1 lines=1-2>",
]
WORDS = [
    "<old_1>",
    "</old_1>",
    "<new_1>",
    "</new_1>",
    "<cannot_1>",
    "</cannot_1>",
    "<done_1/>",
    '<show_1 lines="1-2"/>',
]
PARSERS = ["handtools.tools.editing.edit_agent_messages"]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    text = text_of(data)
    whole = EditStreamParser(MARKS)
    events = whole.feed(text)
    step = 1 + len(data) % 7
    for size in {1, step}:
        cut = EditStreamParser(MARKS)
        found = [event for at in range(0, len(text), size) for event in cut.feed(text[at : at + size])]
        assert found == events
        assert cut.why_incomplete() == whole.why_incomplete()
