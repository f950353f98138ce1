"""The report in a real browser, opened from disk."""

import pytest

from handtools.cli.html_report import ReportedCall, ReportedFile, html_report

HOSTILE = (
    '</pre></script></style><img src="http://127.0.0.1:9/x" onerror=alert(1)><script>alert(2)</script>'
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/"><iframe src="http://127.0.0.1:9/">'
    "\x1b[2J\u202etxt.exe\u200b"
)
SMOOTH_MS = 10_000
"""A generous bound on one screenful, for a busy machine; a bad style took minutes."""


def call(**given) -> ReportedCall:
    known = {
        "id": "abc1234", "tool": "edit", "subject": "~a.py", "at": "10:00:00", "seconds": 0.5, "tokens": 12,
        "status": "ok", "code": "", "undone": "", "agent": "", "arguments": "path: a.py", "answer": "Done.",
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n",
        "files": (ReportedFile("a.py", 1, 1),), "match": "exact",
    }  # fmt: skip
    return ReportedCall(**(known | given))


@pytest.fixture
def show(browser, tmp_path):
    """A page from disk, in a window of its own."""

    def show(text, **options):
        (tmp_path / "report.html").write_text(text, "utf-8")
        page = browser.open(**options)
        page.goto(f"file://{tmp_path}/report.html")
        return page

    return show


@pytest.fixture(scope="module")
def worked(tea_session):
    """The report on a session of edits, a deletion taken back, a refusal, a failure and questions."""
    ran = tea_session.run("report", "-o", "report.html")
    assert ran.code == 0, ran.err
    return (tea_session.folder / "report.html").read_text()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_session_opens_from_disk_with_nothing_to_mend(show, worked, dark):
    page = show(worked, dark=dark)
    for row in range(page.evaluate("document.querySelectorAll('ol>li').length")):
        page.click(f"ol>li:nth-child({row + 1}) summary")
    assert page.axe() == []
    assert page.evaluate(
        "[...document.querySelectorAll('rect')].some(bar => bar.getBoundingClientRect().width > 20)"
    )
    assert [each for each in page.seen["requests"] if not each.startswith("file:")] == []
    assert page.seen["errors"] == page.seen["dialogs"] == []


@pytest.mark.parametrize("width", [1100, 420])
def test_nothing_is_wider_than_the_window(show, worked, width):
    page = show(worked, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.overflow() == 0


def test_hostile_content_runs_nothing_and_calls_nobody(show):
    texts = dict.fromkeys(
        ("tool", "subject", "agent", "arguments", "answer", "diff", "status", "code"), HOSTILE
    )
    page = show(html_report(HOSTILE, [call(**texts, files=(ReportedFile(HOSTILE, 1, 1),))] * 3), width=420)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.overflow() == 0
    assert len(page.seen["requests"]) == 1, page.seen
    assert page.seen["dialogs"] == page.seen["errors"] == []
    assert page.evaluate("document.scripts.length + document.images.length") == 1
    assert "<img src=" in page.textContent("ol>li pre")


def test_five_thousand_calls_are_smooth(show):
    calls = [call(id=f"c{number}", answer=f"line {number}\n" * 60) for number in range(5_000)]
    page = show(html_report("Long", calls))
    assert page.scroll(20) < SMOOTH_MS
    page.fill("#search", "4999")
    assert page.innerText("#count") == "1 of 5000 calls"


def test_it_is_readable_where_scripts_are_off(show, worked):
    page = show(worked, scripts=False)
    page.click("ol>li:nth-child(2) summary")
    assert '+    return f"{leaves} tea after {minutes} minutes"' in page.innerText("ol>li:nth-child(2)")


def test_it_tells_what_was_asked_and_how_edits_fared(show, worked):
    text = show(worked).innerText("main")
    for told in ("Timeline", "1 allowed, 1 denied", "refused: no_match", "exact"):
        assert told in text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_picture_of_the_report(show, worked, picture, dark):
    page = show(worked, dark=dark, height=1000)
    page.click("ol>li:nth-child(2) summary")
    picture(page, f"report-{'dark' if dark else 'light'}")
