"""HTML as Markdown: nothing of a page's content is lost."""

import time

import pytest

from bench.web import ADDRESS, corpus
from bench.web.judging import lost
from bench.web.styles import STYLES
from handtools.host.web.page_text import convert_html, html_title, looks_like_html, without_tags

PAGES = corpus()


def names(number: int) -> str:
    return f"{number}-{STYLES[number % len(STYLES)].name}"


@pytest.mark.parametrize("number", range(len(PAGES)), ids=names)
def test_every_heading_fence_and_table_of_a_documentation_page_is_kept(number):
    document, html = PAGES[number]
    assert not lost(document, convert_html(html, "markdown", ADDRESS))


def test_the_corpus_is_hard_enough_to_be_lost():
    from html_to_markdown import convert

    gone = [lost(document, convert(html).content) for document, html in PAGES]
    assert sum(len(each.headings) for each in gone) > 0
    assert sum(len(each.fences) for each in gone) > 0


def test_menus_and_scripts_are_left_out():
    text = convert_html(PAGES[0][1], "markdown", ADDRESS)
    assert "Page 17" not in text
    assert "no heading" not in text
    assert "¶" not in text


def test_links_lead_where_they_led():
    assert "(https://docs.example/other.html#x)" in convert_html(PAGES[0][1], "markdown", ADDRESS)


def test_pictures_in_the_page_itself_leave_only_their_words():
    text = convert_html('<p><img alt="a chart" src="data:image/png;base64,AAAA"></p>', "markdown")
    assert "base64" not in text
    assert "a chart" in text


@pytest.mark.parametrize(
    "table",
    [
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td><td class="code">{}</td></tr>',
        '<table><tbody><tr><td class="gutter"><pre>1\n2</pre></td>\n<td class="rouge-code">{}</td></tr></tbody>',
        '<table class="lntable"><tr><td class="lntd"><pre>1\n2</pre></td><td class="lntd">{}</td></tr>',
    ],
)  # fmt: skip
def test_a_sample_beside_its_line_numbers_is_a_sample(table):
    text = convert_html(table.format("<pre>if a:\n    b &lt; 1\n</pre>") + "</table>", "markdown")
    assert text.strip() == "```\nif a:\n    b < 1\n```"


def test_a_page_made_to_keep_us_busy_does_not():
    began = time.process_time()
    for bait in (
        '<table><tr><td class="linenos">',
        '<td class="linenos',
        "<table>",
        '<table><tr><td class="gutter"><',
    ):
        convert_html(bait * (100_000 // len(bait)), "markdown")
    assert time.process_time() - began < 20


def test_the_title_is_one_line_without_references():
    assert html_title("<head><TITLE id=a>\n A &amp;\n B</TITLE>") == "A & B"
    assert html_title("<p>none</p>") == ""


def test_what_nobody_calls_a_page_is_one_by_its_beginning():
    assert looks_like_html("\n<!-- a --><!DOCTYPE html><p>")
    assert not looks_like_html("A text about <html>")


def test_marks_of_engines_go_and_signs_stay():
    assert without_tags("a <strong>b</strong> &lt;c&gt; 1 < 2") == "a b <c> 1 < 2"


def test_a_title_may_hold_what_looks_like_a_tag():
    assert html_title("<head><title lang=en>List<T> &amp; co</title>") == "List<T> & co"


@pytest.mark.parametrize("text", ["<!---->" * 580, "<!--" * 1_000, "<!-- -- -->\n" * 300])
def test_no_heap_of_comments_takes_long_to_tell_from_a_page(text):
    started = time.process_time()
    assert not looks_like_html(text)
    assert time.process_time() - started < 4


@pytest.mark.parametrize("text", ["<title " * 9_000, "<title>" * 9_000, "<title>" + "<" * 60_000])
def test_no_heap_of_titles_takes_long(text):
    started = time.process_time()
    assert html_title(text) == ""
    assert time.process_time() - started < 4


def test_no_cell_takes_long_to_tell_from_line_numbers():
    started = time.process_time()
    convert_html("<table><tr><td " + "linenos " * 20_000, "markdown")
    assert time.process_time() - started < 8
