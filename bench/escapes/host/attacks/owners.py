"""Owners: what one token's calls made is looked for with another token of the same workspace."""

import json
import re

from bench.escapes.host.place import Place
from bench.escapes.host.server import Site, serve

LONG = "for i in $(seq 9000); do echo {secret}; done"
SESSION, CALL_ID = "handtools/session", "handtools/call_id"


async def _site(place: Place) -> tuple[Site, str]:
    """A server, and a secret that only the victim's calls know: nothing of the workspace holds it."""
    return await serve(place), place.secrets["VICTIM"]


def _uris(site: Site) -> list[str]:
    listed = re.findall(r'handtools://[^"\\]+', site.attacker.ask("resources/list"))
    return [*listed, "handtools://journal", "handtools://pending"]


async def outputs_of_another_token(place: Place) -> None:
    """A long output of the victim is kept; the attacker looks for it among the resources, and by its name."""
    site, secret = await _site(place)
    said = site.victim.call("bash", command=LONG.format(secret=secret))
    names = set(re.findall(r"output:([\w.-]+)", said)) | set(re.findall(r"/output/([\w.%-]+)", said))
    for uri in [*_uris(site), *(f"handtools://output/{name}" for name in names)]:
        site.attacker.ask("resources/read", uri=uri)
    for name in names:
        site.attacker.call("read", path=f"output:{name}")
        site.attacker.call("grep", pattern="CANARY", path=f"output:{name}")
    site.attacker.call("list", path="output:")
    site.attacker.call("grep", pattern="CANARY", path="output:")


async def calls_of_another_token(place: Place) -> None:
    """The record of calls, and a call sent again under the victim's id."""
    site, secret = await _site(place)
    site.victim.call("bash", {CALL_ID: "victims-call"}, command=f"echo {secret}")
    for uri in _uris(site):
        site.attacker.ask("resources/read", uri=uri)
    site.attacker.call("bash", {CALL_ID: "victims-call"}, command="echo mine")
    site.attacker.ask("handtools/call", id="victims-call", tool="bash", args={"command": "echo mine"})


async def questions_of_another_token(place: Place) -> str | None:
    """A question of the victim is open; the attacker reads it, and answers it."""
    site, secret = await _site(place)
    said = site.victim.call("write", path=".vscode/a.json", content=secret)
    for uri in ("handtools://pending", "handtools://journal"):
        site.attacker.ask("resources/read", uri=uri)
    site.attacker.ask("handtools/waiting")
    for name in set(re.findall(r"[0-9a-f]{16,64}|approve (\S+?)`", said)) - {""}:
        site.attacker.ask("handtools/resume", id=name, allow=True)
    return None


async def session_of_another_token(place: Place) -> None:
    """The attacker names the victim's session: in the header, and in its calls."""
    site, secret = await _site(place)
    site.victim.call(
        "bash", {SESSION: "theirs"}, command=f"export MINE={secret}; f() {{ echo {secret}; }}; cd src"
    )
    site.victim.call("bash", command=f"export MINE={secret}; f() {{ echo {secret}; }}")
    for name in ("theirs", "mcp-victim", "victim", site.victim.session):
        site.attacker.call("bash", {SESSION: name}, command="echo $MINE; f; declare -f; env; pwd")
    own, site.attacker.session = site.attacker.session, site.victim.session
    site.attacker.call("bash", command="echo $MINE; f; env")
    site.attacker.ask("tools/list")
    site.attacker.session = own


async def answers_remembered_for_another_token(place: Place) -> str | None:
    """A person agrees for the victim's session; the attacker names that session."""
    site, _ = await _site(place)
    place.allow(".idea")
    said = site.victim.call("write", {SESSION: "theirs"}, path=".idea/x.xml", content="one\n")
    name = re.search(r"approve (\w+)", said)
    if name is None:
        return f"the victim was not asked: {said[:80]}"
    place.cli("approve", name[1], "--remember", "session", "-C", str(place.workspace))
    for session in ("theirs", site.victim.session, "mcp-victim"):
        site.attacker.call(
            "write", {SESSION: session}, path=".idea/x.xml", content="two\n", mode="overwrite"
        )
    file = place.workspace / ".idea" / "x.xml"
    evil = file.exists() and file.read_text() == "two\n"
    return "another token: a remembered answer was used" if evil else None


async def changes_of_another_token(place: Place) -> None:
    """The attacker asks for the versions of a file that the victim made and removed, and takes back its changes."""
    site, secret = await _site(place)
    made = site.victim.call("write", {SESSION: "theirs"}, path="gone.txt", content=secret)
    site.victim.call("bash", {SESSION: "theirs"}, command="rm gone.txt")
    names = set(re.findall(r"[0-9a-f]{16,64}", made))
    for scope, name in [("path", "gone.txt"), ("session", "theirs"), *(("call", each) for each in names)]:
        for action in ("versions", "undo", "redo"):
            site.attacker.call("undo", scope=scope, name=name, action=action)


async def jobs_of_another_token(place: Place) -> str | None:
    """A job of the victim runs; the attacker lists it, reads it, types into it and ends it."""
    site, secret = await _site(place)
    said = site.victim.call("bash", command=f"echo {secret}; exec sleep 30", background=True)
    names = set(re.findall(r"job[- :`]*([\w-]+)", said)) | set(re.findall(r"\bj[\w-]*\d+\b", said))
    site.attacker.call("jobs", action="list")
    for name in names:
        for action in ("output", "screen", "wait", "send", "kill"):
            site.attacker.call("jobs", action=action, job=name, timeout=0.1, text="x")
    after = json.dumps(site.victim.call("jobs", action="list"))
    return "another token: the victim's job was ended" if names and "running" not in after else None


async def progress_of_another_token(place: Place) -> None:
    """The attacker listens to the server's stream, and cancels requests by the victim's ids."""
    site, secret = await _site(place)
    for number in range(1, 8):
        site.attacker.post(
            json.dumps(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            ).encode()
        )
        site.attacker.ask("handtools/cancel", id=str(number))
    site.victim.call("bash", command=f"echo {secret}")
    site.attacker.ask(
        "completion/complete",
        ref={"type": "ref/resource", "uri": "handtools://output/"},
        argument={"name": "name", "value": ""},
    )
    site.attacker.ask("prompts/list")
