"""Look up a host in DNS and return only the addresses that we may connect to."""

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
    """Return the addresses of a URL's host that we may connect to; raises `Denied` if there are none."""
    if ip_literal(url.host) is not None:
        addresses: Sequence[str] = [url.host]
    else:
        try:
            addresses = await to_thread.run_sync(look_up, url.host, url.port, abandon_on_cancel=True)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "no such host name"
            hint = "Check the host name, or try another source."
            raise Unreachable(f"Can't resolve {url.host}: {reason}.", hint=hint) from error
    reasons = {each: _refusal_reason(each, url, opens) for each in addresses}
    fit = tuple(each for each, reason in reasons.items() if not reason)
    if not fit:
        told = " ".join(dict.fromkeys(reasons.values())) or "It has no address."
        hint = "The user can allow an address and port in `hosts` of the policy."
        raise Denied(f"Access to {url.host} is not allowed. {told}", hint=hint)
    return fit


def _refusal_reason(address: str, url: Url, opens: HostIsListed) -> str:
    reason = ip_address_refusal(address)
    if not reason or opens(address, url.port):
        return ""
    # The owner of a name can point it to any address, except for `localhost`, which is always this machine.
    own = url.host == "localhost" or url.host.endswith(".localhost")
    return "" if own and reason.endswith(_LOOPBACK_REASON) and opens(url.host, url.port) else reason
