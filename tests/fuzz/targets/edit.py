"""`old_string` and `new_string` in any text: an edit in a known place or a refusal, and merges of three texts."""

from handtools.text.diffs.three_way_merge import three_way_merge
from handtools.text.lines import convert_line_ends
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"def f():\n    return 1\n\ndef g():\n    return 1\n\xffdef f():\n    return 1\xffdef f():\n    return 2\xff",
    b"\tif x:\r\n\t\ty\r\n\xff  if x:\n    y\n\xff  if x:\n    z\n\xff\tif x:\r\n\t\tq\r\n",
    b"a\nb\nc\nd\ne\xffa\n...\ne\xffA\n...\nE\xff",
    '\u201cx\u201d \u2014 y\n\xff"x" - y\xffz\xff'.encode("latin-1", "ignore"),
    b"3\tabc\n4\tdef\n\xff     3\tabc\xffxyz\xff",
]
WORDS = [
    "...",
    "# ... existing code ...",
    "\\n",
    '\\"',
    "&lt;",
    "\t",
    "    ",
    "\r\n",
    "```\n",
    "1\t",
    "\u00a0",
    "\u201c",
    "\u2014",
]
PARSERS = ["handtools.text"]
FOUND = {
    "a line feed in a file of CRLF": b"\tif x:\r\n\t\t exiz\xff\n\xff\tif x:\r\n\t\tq\r\n",
    "blanks after omitted lines, and no other change": b"a\nc\n\ne\xffa\n...\n\xffa\n...\n\xc2\xa0\xff",
}


def fuzz(data):
    body, old, new, seen = texts_of(data, 4)
    for every, remembered in ((False, None), (True, None), (False, seen)):
        outcome = replace_text(body, old, new, every=every, seen=remembered)
        assert isinstance(outcome, EditApplied | AlreadyApplied | EditRefused)
        if isinstance(outcome, EditApplied):
            assert outcome.text != body
            assert all(0 <= span.start <= span.end <= len(body) for span in outcome.spans)
            if every:
                # New lines end as those of the file do, and a line feed in `old` stands for the file's line ends.
                texts = [convert_line_ends(each, "\n") for each in (body, old, new)]
                expected = (convert_line_ends(body.replace(old, new), "\n"), texts[0].replace(*texts[1:]))
                assert convert_line_ends(outcome.text, "\n") in expected or outcome.tier != "exact"
        if isinstance(outcome, EditRefused):
            assert outcome.message
    merged = three_way_merge(body, old, new)
    assert three_way_merge(body, body, new).text == new
    assert three_way_merge(body, old, body).text == old
    assert merged.conflicts or three_way_merge(body, new, old).conflicts == []
