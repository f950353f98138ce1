"""Headers of web answers: media type, charset, pause and target of a redirect, whatever a server writes there."""

from handtools.host.web.http_client import (
    RawHttpResponse,
    content_type_of,
    is_bot_challenge,
    redirect_location,
    retry_after_seconds,
)
from handtools.host.web.page_text import decode_page
from tests.fuzz.drawn_values import DrawnValues

SEEDS = [
    b"text/html; charset=utf-8\xff120\xff/a",
    b"text/html;charset*=utf-8''x;a=\"b\xffWed, 21 Oct 2015 07:28:00 GMT\xffhttps://a.example/\xc3\xa9",
]
WORDS = [
    "charset=",
    "charset*=",
    "charset*0*=",
    "text/html",
    ";",
    "''",
    "GMT",
    "+0000",
    "99999999",
    "Jan 2020",
]
PARSERS = ["email", "handtools.host.web.http_client", "handtools.text.web", "handtools.text.encoding"]
FOUND = {
    "a time out of range in Retry-After ended in OverflowError": b"\xffWed, 10 Oct 2015 07:2999999998:00 GMT\xff",
    "a parameter in numbered and other parts ended in TypeError": b"txml;charset*=utf-6/html;ch''x;charset*0*=8''x;a=\"ba=\xe9",
}


def fuzz(data):
    drawn = DrawnValues(data)
    names = ("content-type", "retry-after", "location")
    # As a client gives them: bytes as Latin-1.
    headers = {name: drawn.text().encode("utf-8", "surrogateescape").decode("latin-1") for name in names}
    received = RawHttpResponse(status=302, headers=headers)
    kind, charset = content_type_of(received)
    assert isinstance(kind, str)
    decode_page(b"caf\xe9", charset)
    pause = retry_after_seconds(received)
    assert pause is None or pause >= 0
    assert isinstance(redirect_location(received), str)
    is_bot_challenge(received)
