"""Strict parsing and normalization of URLs, so that no later parser finds another host in the same text."""

import re
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from urllib.parse import quote, urljoin

from handtools.text.web.host_access import ip_literal, normalized_host

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_CHARS = 8_000
_SHAPE = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?:(?P<slashes>//)(?P<authority>[^/?#]*))?"
    r"(?P<rest>[^#]*)(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*")
_NUMERIC_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_UNFIT = re.compile(
    r"[\x00-\x20\x7f\\\u0080-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
)
_MAX_NAME = 253
_KEPT = "!#$%&'()*+,/:;=?@[]~-._|^{}`\"<>"
"""Characters after the host that are not percent-encoded again: ASCII stays as the server wrote it."""


class BadUrl(ValueError):
    """Raised for text that is not a URL that can be fetched; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed http or https URL in normal form: a lower-case ASCII host or IP address, no credentials."""

    scheme: str
    host: str
    port: int
    rest: str
    """Path and query of the URL, as they are sent to the server."""
    fragment: str = ""

    @property
    def authority(self) -> str:
        """Host and port as in the `Host` header, without the default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """The URL as text, without its fragment."""
        return f"{self.scheme}://{self.authority}{self.rest}"

    def joined(self, reference: str) -> "Url":
        """Resolve a link or redirect found at this URL; raises `BadUrl`."""
        if _UNFIT.search(reference):
            raise BadUrl("It redirects to a URL with spaces, backslashes or invisible characters.")
        try:
            return parse_url(urljoin(str(self), reference))
        except BadUrl:
            raise
        except ValueError:
            raise BadUrl("It redirects to an invalid URL.") from None

    def at(self, rest: str) -> "Url":
        """Return the URL of another path on the same server."""
        return replace(self, rest=rest, fragment="")


def parse_url(text: str) -> Url:
    """Parse a URL from a user or a server; raises `BadUrl`."""
    if len(text) > MAX_URL_CHARS:
        raise BadUrl(f"It is longer than {MAX_URL_CHARS:,} characters.")
    if _UNFIT.search(text.strip(" ")):
        raise BadUrl("It contains spaces, backslashes or invisible characters.")
    found = _SHAPE.fullmatch(text.strip(" "))
    if found is None:
        raise BadUrl("It has no scheme: it must begin with https:// or http://.")
    scheme = found["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise BadUrl(f"`{scheme[:20]}:` is not supported. Use https or http.")
    if not found["slashes"]:
        raise BadUrl(f"`{scheme}:` must be followed by two slashes and a host.")
    host, port = _host_and_port(found["authority"], DEFAULT_PORTS[scheme])
    rest = quote(found["rest"], safe=_KEPT)
    return Url(scheme, host, port, rest if rest.startswith("/") else f"/{rest}", found["fragment"] or "")


def _host_and_port(text: str, usual: int) -> tuple[str, int]:
    if "@" in text:
        raise BadUrl("It contains a user name or a password, which is not allowed.")
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        raise BadUrl("Its host and port can't be parsed.")
    port = int(found["port"]) if found["port"] else usual
    if not 0 < port < 1 << 16:
        raise BadUrl(f"{port} is not a valid port.")
    return _validated_host(found["host"]), port


def _validated_host(text: str) -> str:
    if text.startswith("["):
        address = ip_literal(text)
        if not isinstance(address, IPv6Address) or "%" in text:
            raise BadUrl("The text in brackets is not an IPv6 address.")
        return str(address)
    # Normalize to lower case and ASCII digits before the check: otherwise a resolver would turn `１２７` into
    # 127 after it.
    name = normalized_host(text)
    address = ip_literal(name)
    if address is not None:
        return str(address)
    if not name or len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise BadUrl(f"`{text[:80]}` is not a valid host name.")
    if _NUMERIC_END.fullmatch(name):
        raise BadUrl(f"`{text[:80]}` looks like an address, but is not a valid one.")
    return name
