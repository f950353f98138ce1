"""Web pages as text: any page in any encoding is converted, titled and cut into sections, in bounded time."""

from handtools.host.web.page_text import (
    UnconvertiblePage,
    convert_html,
    decode_page,
    html_title,
    looks_like_html,
    without_tags,
)
from handtools.text.encoding import without_surrogates
from handtools.tools.web.page_sections import (
    page_cursor,
    parse_page_cursor,
    passages_mentioning,
    portion_that_fits,
    section_titled,
    sections,
    table_of_contents,
)
from tests.fuzz.drawn_values import DrawnValues

LABELS = ["", "utf-8", "latin-1", "utf-16", "shift_jis", "utf-7", "hex", "x", "idna"]
SEEDS = [
    b"\x00<!doctype html><title>T &amp; x</title><h1 id=a>A</h1><p>b <a href='/c'>c</a><pre>d\n e</pre><h2>B</h2>f",
    b"\x02<table class=highlighttable><tr><td class=linenos>1\n2</td><td><pre>a\nb</pre></td></tr></table>",
    b"\x01<ul><li>a<ul><li>b</ul></ul><table><tr><th>x<td>y</table><script>z</script><svg><!-- --></svg>\xe9",
]
WORDS = ["<table>", "<td class=linenos>", "</td>", "<title>", "</title", "<pre>", "<h1>", "<a href=", "&#x", "<!--", "-->",
         "<script>", "<ul><li>", "<blockquote>", "<math>", "<img src=data:,x>", "# ", "```"]  # fmt: skip
PARSERS = ["handtools.text.web", "handtools.text.encoding"]
FOUND = {
    "many NULs ended in InvalidInputError": b"\x02<ul>\x03\x00\x00\x00\x00\x00\x00\x00li>b</ul>",
    "a zip that a server calls HTML ended in InvalidInputError": b"\x00PK\x03\x04 and so on",
}


def fuzz(data):
    drawn = DrawnValues(data)
    label = drawn.pick(LABELS)
    page = without_surrogates(decode_page(drawn.rest(), label).body)
    html_title(page)
    looks_like_html(page)
    without_tags(page)
    for form in ("markdown", "text"):
        try:
            text = convert_html(page, form, "https://example.org/a")
        except UnconvertiblePage:
            continue
        found = sections(text)
        table_of_contents(text, found, most=20)
        for section in found[:3]:
            section_titled(found, section.title)
        passages_mentioning(text, "a")
        start, seen = 0, 0
        while start < len(text) and seen < 50:
            portion = portion_that_fits(text, start, 50)
            assert portion.end > start
            offset, fresh = parse_page_cursor(text, page_cursor(text, portion.end))
            assert (offset, fresh) == (portion.end, True)
            start, seen = portion.end, seen + 1
