"""Addresses: a URL in its normal form, which reads as itself, or a refusal; hosts, ports and robots.txt, too."""

from handtools.runtime.guards.web import robots_allow
from handtools.text.web.host_access import (
    BadHostEntry,
    BadPort,
    ip_address_refusal,
    parse_host_list,
    parse_port_ranges,
    split_host_port,
)
from handtools.text.web.url import BadUrl, parse_url
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"https://Example.org:443/a%20b?c#d\xff../e?f\xff*.example.org:8443\xff8000-8999\xffUser-agent: *\nDisallow: /a*b$\n",
    b"http://[::1]:80\xff//x\xff10.0.0.0/8\xff1\xffuser-agent: bot/2\nallow: /\n",
    b"http://0x7f.1/\xffhttp://\xff[::ffff:1.2.3.4]:*\xff\xff",
    "http://b\u00fccher.de/\u00e9".encode(),
]
WORDS = ["https://", "http://", "[::", "]", "@", "0x7f", "\u3002", "\uff11", "xn--", "%00", ":0", ":65535", "User-agent: ",
         "Disallow: ", "*", "$"]  # fmt: skip
PARSERS = ["handtools.text.web"]
FOUND = {
    "half a character ended in UnicodeEncodeError": b"http://b.de/\x86",
    "a port of thousands of digits in a list of hosts ended in ValueError": b"\xff\xffa:" + b"9" * 5000,
}


def fuzz(data):
    address, reference, entry, ports, robots = texts_of(data, 5)
    for text in (address, reference):
        try:
            url = parse_url(text)
            assert parse_url(str(url)) == url.at(url.rest)
            assert url.host.isascii()
            again = url.joined(reference)
            assert parse_url(str(again)) == again.at(again.rest)
        except BadUrl as refused:
            assert str(refused)
    try:
        hosts = parse_host_list((entry,))
        assert hosts.entries
    except BadHostEntry:
        pass
    ip_address_refusal(address)
    split_host_port(entry)
    try:
        parse_port_ranges([ports])
    except BadPort:
        pass
    robots_allow(robots, "bot", reference)
