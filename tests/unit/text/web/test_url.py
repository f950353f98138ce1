"""URLs are read in one way, or not at all."""

import pytest

from handtools.text.web.url import BadUrl, parse_url


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://docs.example", "https://docs.example/"),
        (" HTTPS://Docs.Example.:443/A?b=C#d ", "https://docs.example/A?b=C"),
        ("http://docs.example:8080?x=1", "http://docs.example:8080/?x=1"),
        ("https://bücher.example/ü?q=ä", "https://xn--bcher-kva.example/%C3%BC?q=%C3%A4"),
        ("https://docs.example/a%20b?c=%2F", "https://docs.example/a%20b?c=%2F"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[::FFFF:7F00:1]:81/", "http://[::ffff:7f00:1]:81/"),
        ("http://１２７.１/", "http://127.0.0.1/"),
        ("https://docs.example:/", "https://docs.example/"),
        ("https://a_b.docs-1.example/~x/(y)", "https://a_b.docs-1.example/~x/(y)"),
    ],
)
def test_a_url_has_one_spelling(written, read):
    assert str(parse_url(written)) == read
    assert parse_url(str(parse_url(written))) == parse_url(read)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("docs.example", "no scheme"),
        ("ftp://docs.example/", "Use https or http"),
        ("http:docs.example", "two slashes"),
        ("http://", "not a valid host name"),
        ("http://a@b/", "password"),
        ("http://:p@b/", "password"),
        ("http://a b/", "spaces"),
        ("http://a\\b/", "backslashes"),
        ("http://a\u200bb/", "invisible"),
        ("http://docs.example:65536/", "not a valid port"),
        ("http://docs.example:0/", "not a valid port"),
        ("http://docs.example:８０/", "host and port"),
        ("http://docs.example:a/", "host and port"),
        ("http://1.2.3.256/", "looks like an address"),
        ("http://1.2.3.4.5/", "looks like an address"),
        ("http://[1.2.3.4]/", "not an IPv6 address"),
        ("http://[::1%25eth0]/", "not an IPv6 address"),
        ("http://a%2eb/", "not a valid host name"),
        ("http://-a/", "not a valid host name"),
        ("http://a..b/", "not a valid host name"),
        (f"http://{'a' * 64}/", "not a valid host name"),
        (f"http://a/{'a' * 9000}", "longer than"),
    ],
)
def test_what_could_be_read_in_two_ways_is_not_read(written, said):
    with pytest.raises(BadUrl, match=said):
        parse_url(written)


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("c", "https://docs.example/a/c"),
        ("/c", "https://docs.example/c"),
        ("../c?d", "https://docs.example/c?d"),
        ("?d", "https://docs.example/a/b?d"),
        ("//other.example/x", "https://other.example/x"),
        ("http://10.1/", "http://10.0.0.1/"),
    ],
)
def test_a_reference_leads_on_from_where_it_was_found(reference, leads):
    assert str(parse_url("https://docs.example/a/b").joined(reference)) == leads


@pytest.mark.parametrize("reference", ["http://a@b/", "javascript:x", "\\\\evil.example/", "a b", "//["])
def test_a_reference_is_read_as_strictly(reference):
    with pytest.raises(BadUrl):
        parse_url("https://docs.example/").joined(reference)
