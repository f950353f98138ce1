"""A session as one HTML page: what calls contain is shown as text, within its size, with nothing fetched."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handtools.cli.html_report import ReportedCall, ReportedFile, ReportedQuestion, html_report

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "h1", "p", "main", "section", "table"),
    *("caption", "tbody", "tr", "th", "td", "svg", "rect", "path", "label", "input", "output", "ol"),
    *("li", "details", "summary", "ul", "b", "code", "span", "small", "h3", "pre", "ins", "del", "em", "script"),
}  # fmt: skip
HOSTILE = '</pre></script><img src="http://evil.example/x" onerror=alert(1)>\x1b[2J\u202etxt.exe\u200b&lt;'


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open, self.texts = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "input"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def call(**given) -> ReportedCall:
    known = {
        "id": "abc1234", "tool": "edit", "subject": "~a.py", "at": "10:00:00", "seconds": 0.5, "tokens": 12,
        "status": "ok", "code": "", "undone": "", "agent": "", "arguments": "path: a.py", "answer": "Done.",
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n",
    }  # fmt: skip
    return ReportedCall(**(known | given))


def test_a_call_is_told_with_its_change_and_how_to_take_it_back():
    files = (ReportedFile("a.py", 1, 1),)
    page = html_report(
        "Session one", [call(files=files, match="exact", undo_command="handtools undo abc1234")]
    )
    text = "".join(read(page).texts)
    assert "1 call · 0 failed · 1 file changed · 12 result tokens" in text
    assert "✓ ok" in text
    assert "handtools undo abc1234" in text
    assert "<del>-one</del>\n<ins>+two</ins>" in page
    for heading in ("Time by tool", "Files by lines changed", "Edits by how the old text was found"):
        assert heading in text


@pytest.mark.parametrize(
    ("status", "mark"), [("ok", "✓"), ("pending", "?"), ("denied", "⊘"), ("timeout", "✗")]
)
def test_every_status_has_a_sign_beside_its_colour(status, mark):
    assert f"{mark} {status}" in "".join(read(html_report("s", [call(status=status)])).texts)


def bars(page: str) -> list[str]:
    return re.findall('<path class="([a-z]+)"', page)


def test_the_timeline_tells_what_went_wrong_by_height_and_cuts_a_night_short():
    day = [call(began=0.0, ended=10.0), call(began=10.0, ended=20.0, status="error")]
    page = html_report("s", [*day, call(tool="bash", began=90_000.0, ended=90_060.0)])
    assert bars(page) == ["good", "bad", "good"]
    # Of 200 seconds drawn (20 of work, 120 of the night, 60 of work) the first call has a twentieth.
    assert "M0 3h50v4h-50z" in page
    assert "M50 0h50v10h-50z" in page
    assert "M700 3h300v4h-300z" in page


def test_a_timeline_of_many_calls_stays_small():
    calls = [call(began=float(n), ended=n + 0.5) for n in range(5_000)]
    page = html_report("s", [*calls, *calls])
    assert len(page) - len(html_report("s", [call()] * 10_000)) < 40_000


def test_questions_are_told_with_the_call_and_counted_by_rule():
    asked = [
        ReportedQuestion("Run make", "rule ask", "allowed once"),
        ReportedQuestion("Run rm", "rule ask", "denied", "Keep it."),
    ]
    page = html_report("s", [call(questions=tuple(asked))])
    text = "".join(read(page).texts)
    assert "Run rm rule ask denied: Keep it." in text
    assert "rule ask1 allowed, 1 denied" in text


@given(st.lists(st.text() | st.just(HOSTILE), min_size=7, max_size=7))
@settings(max_examples=60)
def test_whatever_a_call_contains_is_text(texts):
    names = ("tool", "subject", "agent", "arguments", "answer", "diff", "undo_command")
    given_call = call(
        **dict(zip(names, texts, strict=True)),
        files=(ReportedFile(texts[0], 1, None),),
        questions=(ReportedQuestion(*texts[:4]),),
        ended=1.0,
    )
    page = html_report(texts[1], [given_call])
    reader = read(page)
    assert set(reader.tags) <= TAGS
    assert reader.tags.count("script") == 1
    assert reader.open == []
    assert not {name for name in reader.attributes if name.startswith("on")} | (
        {"src", "href"} & reader.attributes
    )
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\u200b]", page)


def test_nothing_is_fetched_and_only_our_own_script_may_run():
    page = html_report("s", [call()])
    policy = re.search('Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "http" not in page.replace("http-equiv", "")


def test_five_thousand_calls_of_much_text_stay_below_ten_megabytes():
    wide = call(arguments="<" * 50_000, answer="\x1b" * 50_000, diff="+\u4e2d\n" * 50_000)
    page = html_report("s", [wide] * 5_000)
    assert len(page.encode()) < 10_000_000
    assert "characters more</em>" in page


def test_a_short_session_is_shown_whole():
    page = html_report("s", [call(answer="x" * 9_000)] * 20)
    assert "characters more" not in page
