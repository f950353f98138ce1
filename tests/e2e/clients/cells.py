"""One row of the table: what each capability came to, in a word; what a model could not read fails."""

from collections.abc import Callable

from tests.e2e.clients.client import Client
from tests.e2e.clients.reference import Reference, normal
from tests.e2e.clients.session import MIGRATION, TWELVE, Session, png
from tests.e2e.clients.session import text as raw_text

MAX_CHARS = 20_000
"""What a model may be given of an output of 2 MB."""


def row(client: Client, session: Session, reference: Reference) -> dict[str, Callable[[], str]]:
    """The cells of a client, each measured when it is called."""
    same = Same(client, session, reference)
    return {
        "version": lambda: client.version,
        "tools": lambda: tools(client, session, reference),
        "file": lambda: same("read"),
        "command": lambda: same("bash"),
        "diff": lambda: same("edit"),
        "error": lambda: same("failing edit"),
        "image": lambda: image(session),
        "approval": lambda: approval(client, session),
        "cancelled": lambda: cancelled(session),
        "progress": lambda: progress(client, session),
        "2 MB": lambda: bounded(client, session),
        "12 steps": lambda: "the same" if all(same(step) == "text" for step in TWELVE) else "",
    }


class Same:
    """Compares what the model saw with what our server answered to a plain client, byte for byte."""

    def __init__(self, client: Client, session: Session, reference: Reference) -> None:
        self._client, self._session, self._reference = client, session, reference

    def __call__(self, step: str) -> str:
        seen = self._client.unframed(self._session.returned[step])
        assert normal(seen, self._session.place) == self._reference.texts[step], step
        return "text"


def tools(client: Client, session: Session, reference: Reference) -> str:
    ours = {name.removeprefix(client.prefix) for name in session.offered if name.startswith(client.prefix)}
    assert reference.tools <= ours
    return f"all {len(reference.tools)}"


def image(session: Session) -> str:
    returned = session.returned["image"]
    assert "(PNG image, 32 x 32 pixels.)" in raw_text(returned)
    if png() in returned.images:
        return "image"
    assert not returned.images
    return "as text" if "iVBORw0KGgo" in raw_text(returned) else "only named"


def approval(client: Client, session: Session) -> str:
    said, then = (client.unframed(session.returned[step]) for step in ("ask", "asked"))
    asked = any(
        message.get("method") == "elicitation/create"
        or (message.get("result") or {}).get("resultType") == "input_required"
        for message in session.answers
    )
    if "was denied" in said:
        assert asked
        return "declined by the client"
    assert MIGRATION in then
    if asked and "Created migrations/1.sql" in said:
        return "asked and answered"
    assert "Needs the user's approval" in said
    assert "handtools approve" in said
    return "waits for `handtools approve`"


def cancelled(session: Session) -> str:
    assert session.left == []
    newest = session.record[0]
    assert (newest["tool"], newest["status"]) == ("bash", "cancelled"), newest
    return "stopped" if session.ended == "SIGINT" else "stopped when killed"


def progress(client: Client, session: Session) -> str:
    assert client.unframed(session.returned["progress"]).startswith("step 1\nstep 2\nstep 3\nExit code 0")
    tokens = {
        (message["params"].get("_meta") or {}).get("progressToken")
        for message in session.sent
        if message.get("method") == "tools/call"
    } - {None}
    noted = {
        message["params"]["progressToken"]
        for message in session.answers
        if message.get("method") == "notifications/progress"
    }
    assert noted <= tokens
    assert bool(noted) == bool(tokens)
    return "asked for" if tokens else "not asked for"


def bounded(client: Client, session: Session) -> str:
    much, more = session.returned["much"], session.returned["read on"]
    assert len(raw_text(much)) <= MAX_CHARS
    seen = client.unframed(much)
    assert "300,000 lines, 1,988,895 bytes in total; `read` or `grep` `output:" in seen
    assert seen.startswith("1\n2\n3\n")
    assert "\n300000\n" in seen
    assert "150000\t150000\n150001\t150001\n" in client.unframed(more)
    return "bounded"
