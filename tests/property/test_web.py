"""Whatever is written on the web: read in one way, cut without loss, and never our undoing."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from handtools.host.web.page_text import decode_page, html_title, looks_like_html, without_tags
from handtools.runtime.guards.web import robots_allow
from handtools.text.token_estimate import estimate_tokens
from handtools.text.web.host_access import ip_literal
from handtools.text.web.url import DEFAULT_PORTS, BadUrl, parse_url
from handtools.tools.web.page_sections import passages_mentioning, portion_that_fits, sections

HOSTISH = st.text(st.sampled_from("0123456789abcxf.:[]%@/\\#?-_１。ⓛ\u00ad "), max_size=24)
MARKDOWN = st.lists(
    st.sampled_from(["# One", "## Two", "### x # y", "```", "````", "~~~", "text", "", "#no", "word " * 30])
).map("\n".join)


@given(
    st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "HTTP"]), HOSTISH, st.text(max_size=20))
)
def test_a_url_that_is_read_is_read_the_same_again_and_its_host_is_plain(written):
    try:
        url = parse_url(written)
    except BadUrl:
        return
    assert parse_url(str(url)).host == url.host
    assert parse_url(str(url)).port == url.port
    assert url.scheme in DEFAULT_PORTS
    assert url.host.isascii()
    assert not set(url.host) & set("/\\?#@%[] ")
    address = ip_literal(url.host)
    assert address is None or str(address) == url.host
    assert str(url).isascii()
    assert not set(str(url)) & set("\r\n\t \\")


@given(st.text(), st.text())
def test_a_reference_is_read_strictly_or_not_at_all(base, reference):
    place = parse_url("https://docs.example/a/b?c")
    for text in (base, reference, f"//{reference}"):
        with suppress(BadUrl):
            assert place.joined(text).host.isascii()


@given(
    st.binary(),
    st.sampled_from(["", "utf-8", "latin-1", "gbk", "utf-16", "utf-7", "rot13", "zlib", "x\0y"]),
)
def test_any_bytes_under_any_label_are_text(data, label):
    assert isinstance(decode_page(data, label).body, str)


@given(MARKDOWN)
def test_sections_begin_with_their_headings_and_nest(text):
    found = sections(text)
    for section in found:
        assert text[section.start : section.end].startswith("#" * section.level + " ")
        for other in found:
            assert other.start >= section.end or other.end <= section.start or (
                section.start <= other.start and other.end <= section.end
            ) or (other.start <= section.start and section.end <= other.end)  # fmt: skip


@given(st.one_of(MARKDOWN, st.text()), st.integers(1, 60))
def test_portions_one_after_the_other_are_the_whole(text, tokens):
    at, seen = 0, ""
    while at < len(text):
        part = portion_that_fits(text, at, tokens)
        assert part.end > at
        assert estimate_tokens(part.text) <= tokens or len(part.text) == 1
        seen += part.text
        at = part.end
    assert seen == text


@given(MARKDOWN, st.sampled_from(["text", "ONE", "zebra"]))
def test_every_mention_is_shown(text, wanted):
    shown = "\n".join(passages_mentioning(text, wanted)).casefold()
    lines = [line for line in text.split("\n") if wanted.casefold() in line.casefold()]
    assert all(line.casefold() in shown for line in lines)
    assert bool(passages_mentioning(text, wanted)) == bool(lines)


@given(st.text(), st.text(), st.text(st.sampled_from("/a*$.")))
def test_any_robots_file_gives_an_answer(text, agent, path):
    assert robots_allow(text, agent, path) in {True, False}
    assert robots_allow(
        f"User-agent: *\nDisallow: {path}", "x", path.replace("*", "").replace("$", "") or "/"
    ) in {True, False}


@given(st.text())
def test_any_text_has_a_title_or_none(text):
    assert "\n" not in html_title(f"<title>{text}</title>")
    assert isinstance(looks_like_html(text), bool)
    assert isinstance(without_tags(text), str)
