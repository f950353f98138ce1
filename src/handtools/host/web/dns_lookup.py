"""DNS lookup of a host, which returns only addresses that may be connected to. ADR 90, 91."""

import socket
from collections.abc import Callable, Sequence

from anyio import to_thread

from handtools.core.errors import Denied, Unreachable
from handtools.core.web import HostIsListed
from handtools.text.web.host_access import ip_address_refusal, ip_literal
from handtools.text.web.url import Url

LookUpHost = Callable[[str, int], Sequence[str]]
"""A function that looks up the IP addresses of a host and port; raises `OSError`."""
_LOOPBACK_REASON = "leads to this machine."


def system_lookup(host: str, port: int) -> list[str]:
    """Look up a host's addresses with the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


async def vetted_addresses(url: Url, look_up: LookUpHost, opens: HostIsListed) -> tuple[str, ...]:
    """Look up a URL's host and return the addresses that may be connected to; raises `Denied` without any."""
    if ip_literal(url.host) is not None:
        addresses: Sequence[str] = [url.host]
    else:
        try:
            addresses = await to_thread.run_sync(look_up, url.host, url.port, abandon_on_cancel=True)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "there is no such name"
            hint = "Check the name, or try another source."
            raise Unreachable(f"{url.host} can't be found: {reason}.", hint=hint) from error
    reasons = {each: _refusal_reason(each, url, opens) for each in addresses}
    fit = tuple(each for each, reason in reasons.items() if not reason)
    if not fit:
        told = " ".join(dict.fromkeys(reasons.values())) or "It has no address."
        hint = "A person can list such an address, with its port, in the policy's hosts."
        raise Denied(f"{url.host} leads where nobody may go. {told}", hint=hint)
    return fit


def _refusal_reason(address: str, url: Url, opens: HostIsListed) -> str:
    reason = ip_address_refusal(address)
    if not reason or opens(address, url.port):
        return ""
    # A name can be made to lead anywhere by whoever owns it; but `localhost` belongs to nobody else.
    own = url.host == "localhost" or url.host.endswith(".localhost")
    return "" if own and reason.endswith(_LOOPBACK_REASON) and opens(url.host, url.port) else reason
