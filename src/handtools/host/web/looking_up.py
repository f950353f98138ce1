"""Looking up: where a host is, and which of its addresses are fit to go to."""

import socket
from collections.abc import Callable, Sequence

from anyio import to_thread

from handtools.core.errors import Denied, Unreachable
from handtools.core.web import Opens
from handtools.text.addresses import literal, refusal
from handtools.text.urls import Url

LookUp = Callable[[str, int], Sequence[str]]
"""The addresses of a name; raises `OSError`."""
_LOOPBACK = "leads to this machine."


def looked_up(host: str, port: int) -> list[str]:
    """Ask the system, once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


async def vetted(url: Url, look_up: LookUp, opens: Opens) -> tuple[str, ...]:
    """The addresses of a host that may be gone to; from here on nobody asks for its name again."""
    if literal(url.host) is not None:
        addresses: Sequence[str] = [url.host]
    else:
        try:
            addresses = await to_thread.run_sync(look_up, url.host, url.port, abandon_on_cancel=True)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "there is no such name"
            hint = "Check the name, or try another source."
            raise Unreachable(f"{url.host} can't be found: {reason}.", hint=hint) from error
    reasons = {each: _reason(each, url, opens) for each in addresses}
    fit = tuple(each for each, reason in reasons.items() if not reason)
    if not fit:
        told = " ".join(dict.fromkeys(reasons.values())) or "It has no address."
        hint = "A person can list such an address, with its port, in the policy's hosts."
        raise Denied(f"{url.host} leads where nobody may go. {told}", hint=hint)
    return fit


def _reason(address: str, url: Url, opens: Opens) -> str:
    reason = refusal(address)
    if not reason or opens(address, url.port):
        return ""
    # A name can be made to lead anywhere by whoever owns it; but `localhost` belongs to nobody else.
    own = url.host == "localhost" or url.host.endswith(".localhost")
    return "" if own and reason.endswith(_LOOPBACK) and opens(url.host, url.port) else reason
