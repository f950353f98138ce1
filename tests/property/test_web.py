"""Whatever is written on the web: read in one way, cut without loss, and never our undoing."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.addresses import literal
from handtools.text.charsets import read_page
from handtools.text.markup import looks_like_html, title_of, without_tags
from handtools.text.robots import allows
from handtools.text.sections import mentions, portion, sections
from handtools.text.tokens import estimate
from handtools.text.urls import PORTS, BadUrl, read_url

HOSTISH = st.text(st.sampled_from("0123456789abcxf.:[]%@/\\#?-_１。ⓛ\u00ad "), max_size=24)
MARKDOWN = st.lists(
    st.sampled_from(["# One", "## Two", "### x # y", "```", "````", "~~~", "text", "", "#no", "word " * 30])
).map("\n".join)


@given(
    st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "HTTP"]), HOSTISH, st.text(max_size=20))
)
def test_a_url_that_is_read_is_read_the_same_again_and_its_host_is_plain(written):
    try:
        url = read_url(written)
    except BadUrl:
        return
    assert read_url(str(url)).host == url.host
    assert read_url(str(url)).port == url.port
    assert url.scheme in PORTS
    assert url.host.isascii()
    assert not set(url.host) & set("/\\?#@%[] ")
    address = literal(url.host)
    assert address is None or str(address) == url.host
    assert str(url).isascii()
    assert not set(str(url)) & set("\r\n\t \\")


@given(st.text(), st.text())
def test_a_reference_is_read_strictly_or_not_at_all(base, reference):
    place = read_url("https://docs.example/a/b?c")
    for text in (base, reference, f"//{reference}"):
        with suppress(BadUrl):
            assert place.joined(text).host.isascii()


@given(
    st.binary(),
    st.sampled_from(["", "utf-8", "latin-1", "gbk", "utf-16", "utf-7", "rot13", "zlib", "x\0y"]),
)
def test_any_bytes_under_any_label_are_text(data, label):
    assert isinstance(read_page(data, label).body, str)


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
        part = portion(text, at, tokens)
        assert part.end > at
        assert estimate(part.text) <= tokens or len(part.text) == 1
        seen += part.text
        at = part.end
    assert seen == text


@given(MARKDOWN, st.sampled_from(["text", "ONE", "zebra"]))
def test_every_mention_is_shown(text, wanted):
    shown = "\n".join(mentions(text, wanted)).casefold()
    lines = [line for line in text.split("\n") if wanted.casefold() in line.casefold()]
    assert all(line.casefold() in shown for line in lines)
    assert bool(mentions(text, wanted)) == bool(lines)


@given(st.text(), st.text(), st.text(st.sampled_from("/a*$.")))
def test_any_robots_file_gives_an_answer(text, agent, path):
    assert allows(text, agent, path) in {True, False}
    assert allows(
        f"User-agent: *\nDisallow: {path}", "x", path.replace("*", "").replace("$", "") or "/"
    ) in {True, False}


@given(st.text())
def test_any_text_has_a_title_or_none(text):
    assert "\n" not in title_of(f"<title>{text}</title>")
    assert isinstance(looks_like_html(text), bool)
    assert isinstance(without_tags(text), str)
