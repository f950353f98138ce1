"""A fleet is looked after while it works: its state is shown, hosts are drained and replaced, metrics are read."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

import handtools
from handtools.cli.fleet import fleet_group
from handtools.core.call import Call
from handtools.core.errors import UsageError
from handtools.fleet import frames
from handtools.fleet.drain import drain_host
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.fleet_status import query_all_hosts
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import HostClient
from handtools.fleet.host_server import HostServer
from handtools.fleet.metrics import HostMetrics
from handtools.fleet.metrics_server import MetricsServer
from handtools.fleet.ray_fleet import Fleet, HostSettings
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspace_slots import HostLimits
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy
from handtools.text.prometheus import TextMetricRegistry

NEW_VERSION = "99.0.0"
SECRET = "a-secret-of-the-workspace"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    ray.init(made.address, logging_level="ERROR", log_to_driver=False)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture
async def fleet(cluster: Any, tmp_path: Path) -> AsyncIterator[Fleet]:
    settings = HostSettings(
        folder=str(tmp_path / "nodes"),
        limits=HostLimits(slots=20, turns=TurnLimits(running=64)),
        policy=Policy(defaults={"run": "allow"}),
        log_url=f"file://{tmp_path}/log",
    )
    made = await Fleet.start("operated", settings, hosts=2)
    yield made
    await made.stop()


def new_version(folder: Path) -> dict[str, Any]:
    """Ray's environment for processes that get another version of handtools than this one."""
    source = Path(handtools.__file__).parent
    shutil.copytree(source, folder / "handtools", ignore=shutil.ignore_patterns("__pycache__"))
    first = folder / "handtools" / "__init__.py"
    first.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{NEW_VERSION}"', first.read_text()))
    return {"env_vars": {"PYTHONPATH": str(folder)}}


async def test_hosts_are_replaced_one_after_another_and_every_call_is_there(
    fleet: Fleet, tmp_path: Path, source: Path
) -> None:
    template = await fleet.add_template("folder", str(source))
    boxes = [await fleet.create(template) for _ in range(4)]
    forked = (await fleet.fork(boxes[0].workspace_name))[0]
    upgraded = HostSettings(
        folder=str(tmp_path / "nodes"),
        limits=HostLimits(slots=20),
        policy=Policy(defaults={"run": "allow"}),
        log_url=f"file://{tmp_path}/log",
        runtime_env=new_version(tmp_path / "new"),
    )
    is_over = asyncio.Event()
    answered: dict[str, list[str]] = {box.workspace_name: [] for box in boxes}

    async def work(box: FleetToolbox) -> None:
        number = 0
        while not is_over.is_set():
            call = Call(tool="bash", args={"command": f"echo {number} >> log.txt"})
            result = await box.call(call)
            assert result.status == "ok", result.text
            answered[box.workspace_name].append(str(number))
            number += 1

    workers = [asyncio.create_task(work(box)) for box in boxes]
    for host in ("h0", "h1"):
        moves = await drain_host(fleet, host)
        assert moves and not [move for move in moves if move.problem]
        assert (await fleet.client_by_host_name(host).status()).workspaces == 0
        await fleet.restart_host(host, upgraded)
    is_over.set()
    await asyncio.gather(*workers)

    statuses = await query_all_hosts(fleet)
    assert {each.status.version for each in statuses if each.status} == {NEW_VERSION}
    # Another driver, which has followed none of the moves, finds the same.
    other = Fleet.connect("operated")
    for box in boxes:
        read = await other.toolbox(box.workspace_name).call("bash", {"command": "cat log.txt"})
        assert read.text.partition("\nExit")[0].split() == answered[box.workspace_name]
        assert len(answered[box.workspace_name]) > 2
    merged = await other.client_for_workspace(forked.workspace_name).merge(forked.workspace_name)
    assert merged.changed == ()
    await other.aclose()


async def test_the_commands_show_drain_and_start_anew(
    cluster: Any, fleet: Fleet, tmp_path: Path, source: Path
) -> None:
    box = await fleet.create(await fleet.add_template("folder", str(source)))
    await box.call("bash", {"command": "echo hi > a.txt"})

    async def command(*words: str) -> Any:
        # In this process, which is connected already: a connection of its own takes each command seconds.
        line = [*words, "--address", cluster.address, "--json"]
        ran = await asyncio.to_thread(CliRunner().invoke, fleet_group(), line)
        assert ran.exit_code == 0, ran.output
        return [json.loads(row) for row in ran.stdout.splitlines()]

    (shown,) = await command("status", "operated")
    assert [(each["host"], each["state"]) for each in shown["hosts"]] == [("h0", "ready"), ("h1", "ready")]
    assert shown["tenants"] == {"": 1}
    calls = await command("logs", "operated", box.workspace_name)
    assert [(call["tool"], call["status"]) for call in calls] == [("bash", "ok")]
    await command("logs", "operated", "h0")
    (drained,) = await command("drain", "operated", "h0", "--restart")
    assert [(move["workspace"], move["target"]) for move in drained["moves"]] == [
        (box.workspace_name, "h1")
    ]
    (shown,) = await command("status", "operated")
    assert [each["status"]["workspaces"] for each in shown["hosts"]] == [0, 1]
    assert [each["state"] for each in shown["hosts"]] == ["ready", "ready"]


async def test_a_client_of_mcp_works_in_a_workspace_and_goes_on_where_that_is_moved(
    cluster: Any, fleet: Fleet, source: Path
) -> None:
    from mcp import Client, StdioServerParameters

    box = await fleet.create(await fleet.add_template("folder", str(source)))
    words = ["fleet", "mcp", "operated", box.workspace_name, "--address", cluster.address]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "handtools", *words], env=dict(os.environ)
    )
    async with Client(server) as client:
        assert "edit" in [tool.name for tool in (await client.list_tools()).tools]
        wrote = await client.call_tool("write", {"path": "n.txt", "content": "over MCP\n"})
        assert not wrote.is_error, wrote
        await drain_host(fleet, box.workspace_name.partition("-")[0])
        read = await client.call_tool("bash", {"command": "cat n.txt"})
        assert "over MCP" in read.content[0].text


async def test_a_host_without_another_is_not_drained(cluster: Any, tmp_path: Path) -> None:
    settings = HostSettings(folder=str(tmp_path / "nodes"), log_url=f"file://{tmp_path}/log")
    alone = await Fleet.start("alone", settings, hosts=1)
    try:
        with pytest.raises(UsageError, match="no other host"):
            await drain_host(alone, "h0")
        assert not (await alone.client_by_host_name("h0").status()).draining
        with pytest.raises(UsageError, match="has no host 'h7'"):
            await drain_host(alone, "h7")
    finally:
        await alone.stop()


async def test_prometheus_reads_what_a_host_counts_and_nothing_of_a_workspace(
    tmp_path: Path, source: Path
) -> None:
    registry = TextMetricRegistry()
    host = WorkspaceHost(
        WorkspaceStore(tmp_path / "host"),
        log=LogStore(f"file://{tmp_path}/log"),
        metrics=HostMetrics(registry, ["bash", "read"]),
        policy=Policy(defaults={"run": "allow"}),
    )
    server = MetricsServer(host, registry)
    port = await server.start()
    try:
        name = await host.create(await host.add_template("folder", str(source)), name=SECRET, tenant=SECRET)
        await host.call(name, Call(tool="bash", args={"command": f"echo {SECRET} > {SECRET}"}))
        await host.call(name, Call(tool="read", args={"path": f"{SECRET}/nothing"}))
        await host.call(name, Call(tool=SECRET, args={}))
        status, text = await _get(port, "/metrics")
        assert status == 200
        assert SECRET not in text
        samples = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert samples["handtools_calls_total", ("outcome", "ok"), ("tool", "bash")] == 1
        assert samples["handtools_calls_total", ("outcome", "not_found"), ("tool", "read")] == 1
        assert samples["handtools_calls_total", ("outcome", "unknown_tool"), ("tool", "other")] == 1
        assert samples["handtools_call_seconds_count", ("tool", "bash")] == 1
        assert samples["handtools_call_seconds_bucket", ("le", "+Inf"), ("tool", "bash")] == 1
        assert samples["handtools_workspaces",] == 1
        assert samples["handtools_stored_bytes_total",] > 0
        assert samples["handtools_memory_bytes",] > 1e6
        assert (await _get(port, "/"))[0] == 404
        with pytest.raises(UsageError, match="loopback"):
            await MetricsServer(host, registry).start("0.0.0.0")
    finally:
        await server.aclose()
        await host.aclose()


async def _get(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


@pytest.mark.parametrize("spoken", [None, 0, 99])
async def test_who_speaks_another_protocol_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoken: int | None
) -> None:
    host = WorkspaceHost(WorkspaceStore(tmp_path / "host"))
    server = HostServer(host, {"token": ""})
    address = await server.start(f"unix:{tmp_path}/socket")
    try:
        reader, writer = await asyncio.open_unix_connection(f"{tmp_path}/socket")
        writer.write(frames.encode_frame({"token": "token", "protocol": spoken}))
        answer = json.loads((await reader.read())[4:])
        writer.close()
        assert "with protocol version 1; your handtools uses another. Next:" in answer["error"]["message"]
        await HostClient(address, "token").ping()
        monkeypatch.setattr("handtools.fleet.host_client.PROTOCOL", 2)
        with pytest.raises(UsageError, match="with protocol version 1; your handtools uses another"):
            await HostClient(address, "token").ping()
    finally:
        await server.aclose()
        await host.aclose()
