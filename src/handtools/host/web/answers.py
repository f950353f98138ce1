"""Answers: what the headers of a server's answer mean to us."""

from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime

from handtools.core.web import Form
from handtools.host.web.connecting import Received
from handtools.host.web.unpacking import accepted

ACCEPTS: dict[Form, str] = {
    "markdown": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain, text/markdown;q=0.9, text/html;q=0.8, application/xhtml+xml;q=0.8, */*;q=0.1",
    "html": "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.8, text/markdown;q=0.7, */*;q=0.1",
}
AGENT = "Mozilla/5.0 (compatible; handtools/0.1)"
PLAIN_AGENT = "handtools"
"""Some guards stop whatever looks like a browser and is none, and let through what says what it is."""
_ONWARD = frozenset({301, 302, 303, 307, 308})


def asked(form: Form, *, plain: bool = False) -> dict[str, str]:
    """The headers of a request for a page."""
    return {
        "User-Agent": PLAIN_AGENT if plain else AGENT,
        "Accept": ACCEPTS[form],
        "Accept-Encoding": accepted(),
        "Accept-Language": "en;q=0.9, *;q=0.5",
    }


def media_type(received: Received) -> tuple[str, str]:
    """What the server says the body is, and its charset."""
    message = Message()
    message["Content-Type"] = received.headers.get("content-type", "").replace("\n", " ") or "x-unsaid/x"
    kind = message.get_content_type()
    charset = message.get_param("charset", "")
    return ("" if kind == "x-unsaid/x" else kind), charset if isinstance(charset, str) else ""


def location(received: Received) -> str:
    """Where the server sends us on to; headers are bytes, and some servers put UTF-8 into them."""
    if received.status not in _ONWARD:
        return ""
    written = received.headers.get("location", "")
    try:
        return written.encode("latin-1").decode()
    except UnicodeDecodeError:
        return written


def retry_after(received: Received) -> float | None:
    """Seconds that the server wants us to wait."""
    written = received.headers.get("retry-after", "").strip()
    if written.isdecimal():
        return float(written)
    try:
        when = parsedate_to_datetime(written)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def is_challenge(received: Received) -> bool:
    """Whether a guard wants to see a browser before it lets us to the page."""
    return received.status == 403 and received.headers.get("cf-mitigated", "").lower() == "challenge"
