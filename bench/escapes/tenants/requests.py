"""What a tenant asks of the host, with its own token, to get at the other's workspace; and calls of its own tools.

Each gives all that was answered; whether it shows something of the other's is judged by the secrets.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from bench.escapes.tenants.two_tenants import TwoTenants
from handtools import Call
from handtools.core.call import call_to_json
from handtools.core.errors import HandtoolsError
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_client import HostClient

Request = Callable[[TwoTenants, HostClient], Awaitable[str]]
ANSWERED = "ESCAPED"
"""Said by a request that was answered where it had to be refused."""


async def methods_on_the_others_workspace(both: TwoTenants, client: HostClient) -> str:
    """Every method, with the other's name and with other spellings of it."""
    said, name = "", both.theirs
    spelled = (
        name,
        f"{name}/",
        f"./{name}",
        f"{both.own}/../{name}",
        f"../workspaces/{name}",
        f"{name}\0",
        name.upper(),
    )
    call = call_to_json(Call(tool="read", args={"path": "written.txt"}))
    asked: dict[str, dict[str, Any]] = {
        "call": {"call": call}, "batch": {"calls": [call]}, "waiting": {}, "definitions": {}, "diff": {},
        "why": {"tool": "read", "args": {"path": "written.txt"}}, "withdraw": {"id": "x"}, "cancel": {"id": "x"},
        "resume": {"id": "x", "allow": True, "remember": "", "message": "", "fingerprint": ""},
        "fork": {"names": ["mine"]}, "merge": {}, "remove": {},
    }  # fmt: skip
    for each in spelled:
        for method, params in asked.items():
            answer = await _answer(client, method, {**params, "workspace": each})
            said += answer
            if '"error"' not in answer and '"not_found"' not in answer:
                said += f"{ANSWERED}: {method} {each!r}: {answer[:200]}\n"
    return said


async def taking_its_name(both: TwoTenants, client: HostClient) -> str:
    """Make a workspace, and forks, under the other's name."""
    params = {"template": both.template, "name": both.theirs}
    said = await _answer(client, "create", params)
    said += await _answer(client, "fork", {"workspace": both.own, "names": [both.theirs]})
    said += await _answer(client, "fork", {"workspace": both.own, "names": [f"../{both.theirs}", "a/b"]})
    return said + await _answer(client, "names", {}) + await _answer(client, "status", {})


async def more_than_there_is_room_for(both: TwoTenants, client: HostClient) -> str:
    """A number of forks that would take all of the host's memory to write down."""
    return await _answer(client, "fork", {"workspace": both.own, "count": 1 << 40})


async def templates(both: TwoTenants, client: HostClient) -> str:
    """Make the other's files a template; name templates by paths."""
    theirs = str(both.store.files_folder(both.theirs))
    said = await _answer(client, "add_template", {"kind": "folder", "source": theirs})
    for digest in (f"../workspaces/{both.theirs}/root", theirs, f"{both.template}/../../workspaces"):
        answer = await _answer(client, "create", {"template": digest, "name": "from-a-path"})
        said += answer if '"error"' in answer else f"{ANSWERED}: {answer}"
    return said


async def the_others_call_ids(both: TwoTenants, client: HostClient) -> str:
    """Ask again, under ids of the other's calls; undo and cancel them."""
    own, said = FleetToolbox(client, both.own), ""
    for each in both.their_calls:
        result = await own.call(Call(tool="list", args={}, id=each))
        said += repr(result) + repr(await own.call("undo", {"call": each}))
    return said


async def tools_at_paths_of_the_other(both: TwoTenants, client: HostClient) -> str:
    """Every tool that takes a path, at the other's files: absolute, relative, through links made by a command."""
    own, theirs = FleetToolbox(client, both.own), both.store.files_folder(both.theirs)
    link = f"ln -s {theirs} tree; ln -s {theirs}/out/file one; ln -s {theirs}/../state s"
    link += f"; ln -s ../../{both.theirs}/state state"
    said = repr(await own.call("bash", {"command": link}))
    up = f"../../{both.theirs}"
    for path in (
        f"{theirs}/out/file",
        f"{up}/root/out/file",
        "tree/out/file",
        "one",
        f"{up}/state",
        "state",
        "s",
        "tree",
    ):
        for tool, args in (
            ("read", {"path": path}),
            ("grep", {"pattern": "SECRET", "path": path, "include_ignored": True}),
            ("find", {"pattern": "**/*", "path": path}),
            ("list", {"path": path}),
            ("edit", {"path": path, "old_string": "SECRET", "new_string": "x"}),
            ("write", {"path": f"{path}", "content": "x"}),
            ("write", {"path": f"{path}/new", "content": "x"}),
            ("bash", {"command": "cat *", "cwd": path}),
        ):
            said += repr(await own.call(tool, args))
    return said


async def what_the_other_keeps(both: TwoTenants, client: HostClient) -> str:
    """Outputs, jobs and sessions of the other, by the names that they have there."""
    own, said = FleetToolbox(client, both.own), ""
    for kept in (both.store.state_folder(both.theirs)).rglob("outputs/*"):
        for path in (
            f"output:{kept.name}",
            f"output:../../../{both.theirs}/state/outputs/{kept.name}",
            f"output:{kept}",
        ):
            said += repr(await own.call("read", {"path": path}))
    for args in ({"action": "list"}, *({"action": "output", "job": f"{n}"} for n in ("1", "job-1", "j1"))):
        said += repr(await own.call("jobs", args))
    return said


REQUESTS: tuple[Request, ...] = (
    methods_on_the_others_workspace, taking_its_name, more_than_there_is_room_for, templates, the_others_call_ids,
    tools_at_paths_of_the_other, what_the_other_keeps,
)  # fmt: skip


async def requested(both: TwoTenants) -> AsyncIterator[tuple[str, list[str]]]:
    """Make every request; by name, what shows that it succeeded."""
    for request in REQUESTS:
        await both.renew()
        client = HostClient(both.server.address, "red-token")
        said = await request(both, client)
        for name in await client.workspace_names():
            if name != both.own:
                await client.remove(name)
        await client.aclose()
        found = ["it was answered"] if ANSWERED in said else []
        yield request.__name__, await both.verdicts(said.encode("utf-8", "replace"), found)


async def _answer(client: HostClient, method: str, params: dict[str, Any]) -> str:
    try:
        return json.dumps(await client.request(method, params)) + "\n"
    except HandtoolsError as problem:
        return f'"error" {problem!r}\n'
