"""Policies: several folders, and configuration that lies behind a link."""

import contextlib
from typing import Any

from bench.escapes.host.place import Place
from bench.escapes.host.project_files import LOOK, begin_person, deny, load
from bench.escapes.host.server import serve
from handtools.configuration import load_configuration
from handtools.core.errors import HandtoolsError
from handtools.toolbox import everything


async def project_beside_another(place: Place) -> None:
    """Of two folders of a workspace, the one has a file that speaks of the other's private files."""
    begin_person(place)
    other = place.base / "beside"
    other.mkdir()
    (other / ".env").write_text(f"KEY={place.secrets['OTHER']}\n")
    folders, name = [place.workspace, other], other.name
    place.begin()
    globs = (
        "!**",
        f"!{name}/**",
        f"!../{name}/**",
        f"!/{name}/.env",
        f"../{name}/**",
        f"!{other}/.env",
        f"{{a,!../{name}/.env}}",
        "!../**",
    )
    for text in (
        *(deny(glob) for glob in globs),
        deny("zzz", but=[f"../{name}/**", "**"]),
        f'excluded = ["!../{name}/.env", "!**"]\n',
    ):
        place.put(".handtools.toml", text)
        try:
            policy = load_configuration(folders).policy
        except HandtoolsError:
            continue
        async with everything(folders, policy=policy) as box:
            command = f"cat {place.workspace.name}/.env {name}/.env; cat {other}/.env {place.workspace}/.env; grep -r CANARY ."
            place.heard("bash", await box.call("bash", {"command": command}))


async def configuration_behind_a_link(place: Place) -> str | None:
    """The project's file is a link to an ordinary file of the workspace, which a command changes unasked."""
    place.put("conf/ours.toml", "block = []\n")
    place.link(".handtools.toml", "conf/ours.toml")
    begin_person(place, "")
    first = load(place)
    await place.bash("printf 'excluded = [\"**\"]\\n' > conf/ours.toml")
    await place.call("write", path="conf/ours.toml", content='block = ["bash", "edit"]\n', mode="overwrite")
    after = load(place)
    same = first is None or (after is not None and first.policy == after.policy)
    return None if same else "changed without a question: our configuration, behind a link"


async def odd_policy_of_a_remote_call(place: Place) -> None:
    """A policy that comes with a call has values of other kinds, fields of its own, and patterns without end."""
    site = await serve(place)
    rule = {"name": "x", "verdict": "deny", "reason": "r"}
    sent: tuple[Any, ...] = (
        {"excluded": "!**"}, {"excluded": ["{" * 500 + "a" + "}" * 500]}, {"excluded": ["*a" * 2000]}, {"rules": [{**rule, "paths": "!**"}]},
        {"rules": [{**rule, "paths": ["!**"], "effects": ["read"], "hides": False}]}, {"rules": None}, {"rules": [rule] * 3}, {"hidden_globs": [], "rules": []},
        {"rules": [{**rule, "paths": ["a", "!**"], "match": [], "not_match": [".env"]}]}, {"rules": [{**rule, "paths": [f"!{place.workspace}/.env"]}]}, [], "x", 1,
    )  # fmt: skip
    for policy in sent:
        with contextlib.suppress(TimeoutError):
            site.attacker.ask("handtools/call", tool="bash", args={"command": LOOK}, policy=policy)
