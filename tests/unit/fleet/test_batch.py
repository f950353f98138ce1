import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from handtools.core.call import Call
from handtools.core.errors import UsageError
from handtools.core.events import Progressed
from handtools.fleet.batch_agent import BatchAgent, WorkspaceRelay, load_agent
from handtools.fleet.batch_runner import BatchProgress, BatchRunner, BatchSettings, parse_template_source
from handtools.fleet.batch_tasks import RESULTS_NAME, BatchFolder, BatchTask, TaskResult, read_tasks
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.fleets_for_batches import open_local_fleet
from handtools.fleet.host_client import HostClient
from handtools.local_journal import open_local_journal
from handtools.runtime.policy import Policy
from tests.unit.fleet.test_oci_image import FIRST, SECOND
from tests.unit.fleet.test_oci_image import layout as image_layout

PATIENCE = 120.0


@pytest.fixture
def template(tmp_path: Path) -> str:
    source = tmp_path / "template"
    source.mkdir()
    (source / "a.txt").write_text("a\n")
    return str(source)


def tasks(*names: str, **fields: Any) -> list[BatchTask]:
    return [BatchTask(id=name, prompt=f"prompt of {name}", **fields) for name in names]


async def writes_its_prompt(toolbox: FleetToolbox, task: BatchTask, _folder: Path) -> dict[str, Any]:
    written = await toolbox.call("write", {"path": "out.txt", "content": task.prompt})
    return {"status": written.status}


async def batch(
    out: Path,
    template: str,
    wanted: Sequence[BatchTask],
    agent: BatchAgent,
    *,
    on_progress: Callable[[BatchProgress], None] = lambda _: None,
    **settings: Any,
) -> dict[str, TaskResult]:
    with BatchFolder(out, {"template": template}) as folder:
        async with open_local_fleet(out / "workspaces", policy=Policy(unattended="deny")) as fleet:
            runner = BatchRunner(
                wanted,
                fleet=fleet,
                agent=agent,
                folder=folder,
                settings=BatchSettings(template=template, **settings),
                on_progress=on_progress,
            )
            await runner.run()
        assert not (out / "workspaces").exists()
        return dict(folder.results)


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_task_gets_a_workspace_a_score_and_a_journal(tmp_path: Path, template: str) -> None:
    out = tmp_path / "out"
    results = await batch(out, template, tasks("t1", "x/2"), writes_its_prompt, score="grep -q t1 out.txt")
    assert {name: result.score for name, result in results.items()} == {"t1": 1.0, "x/2": 0.0}
    one = results["t1"]
    assert (one.calls, one.changed, one.error, one.agent) == (1, ["out.txt"], "", {"status": "ok"})
    assert one.tokens > 0
    lines = (out / RESULTS_NAME).read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"t1", "x/2"}
    place = out / results["x/2"].journal
    journal = open_local_journal(place, place).journal
    assert {call.tool for call in journal.calls.page()} == {"write", "bash"}
    journal.close()


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_the_last_line_of_a_score_that_is_a_number_is_the_score(
    tmp_path: Path, template: str
) -> None:
    wanted = [
        *tasks("number", score="echo of 4 | tee report.txt; echo 0.25"),
        *tasks("long", score="seq 3000 | tee report.txt; echo 0.5"),
        *tasks("words", score="echo well done"),
        *tasks("failed", score="echo 0.9; exit 1"),
        *tasks("nan", score="echo nan"),
    ]
    results = await batch(tmp_path / "out", template, wanted, writes_its_prompt, retries=0)
    assert {name: result.score for name, result in results.items()} == {
        "number": 0.25, "long": 0.5, "words": 1.0, "failed": 0.0, "nan": None,
    }  # fmt: skip
    assert "nan" in results["nan"].error


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_failing_task_is_tried_again_so_often_and_ends_no_other(
    tmp_path: Path, template: str
) -> None:
    tried: list[str] = []

    async def fails(toolbox: FleetToolbox, task: BatchTask, folder: Path) -> dict[str, Any]:
        tried.append(task.id)
        if task.id == "always" or (task.id == "once" and tried.count("once") == 1):
            await toolbox.call("write", {"path": "half.txt", "content": "x"})
            raise KeyError("an agent's own bug")
        return await writes_its_prompt(toolbox, task, folder)

    out = tmp_path / "out"
    wanted = tasks("always", "once", "never")
    results = await batch(out, template, wanted, fails, score="test ! -e half.txt", retries=2)
    assert {name: result.attempts for name, result in results.items()} == {
        "always": 3, "once": 2, "never": 1,
    }  # fmt: skip
    assert {name: result.score for name, result in results.items()} == {
        "always": None, "once": 1.0, "never": 1.0,
    }  # fmt: skip
    failed = results["always"]
    assert (failed.error, failed.changed) == ('KeyError("an agent\'s own bug")', ["half.txt"])
    assert "Traceback" in (out / "tasks" / "always" / "agent.log").read_text()


async def test_an_agent_that_takes_too_long_is_ended(tmp_path: Path, template: str) -> None:
    async def waits(_toolbox: FleetToolbox, _task: BatchTask, _folder: Path) -> None:
        await asyncio.Event().wait()

    wanted = [*tasks("slow", timeout=0.2)]
    result = (await batch(tmp_path / "out", template, wanted, waits, retries=0))["slow"]
    assert (result.score, result.error) == (None, "The agent took longer than 0.2 s.")


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_setup_is_not_the_agents_work_and_the_score_has_its_own_files(
    tmp_path: Path, template: str
) -> None:
    async def cheats(toolbox: FleetToolbox, _task: BatchTask, _folder: Path) -> None:
        read = await toolbox.call("bash", {"command": "cat deep/made.txt; echo true > check.sh"})
        assert "it's made" in read.text

    [task] = tasks(
        "t",
        files={"deep/in.txt": "it's", "check.sh": "false\n"},
        setup='printf %s "$(cat deep/in.txt) made" > deep/made.txt',
        score="sh check.sh",
        score_files={"check.sh": "false\n"},
    )
    result = (await batch(tmp_path / "out", template, [task], cheats))["t"]
    assert (result.error, result.score, result.calls, result.changed) == ("", 0.0, 1, ["check.sh"])
    broken = [task.model_copy(update={"id": "broken", "setup": "echo no; exit 3"})]
    result = (await batch(tmp_path / "other", template, broken, cheats, retries=0))["broken"]
    assert "The setup failed: no" in result.error


async def test_no_more_tasks_run_at_a_time_than_is_said(tmp_path: Path, template: str) -> None:
    now: set[str] = set()
    most = 0
    both = asyncio.Event()

    async def meets(_toolbox: FleetToolbox, task: BatchTask, _folder: Path) -> None:
        nonlocal most
        now.add(task.id)
        most = max(most, len(now))
        if len(now) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), PATIENCE)
        now.remove(task.id)

    results = await batch(tmp_path / "out", template, tasks(*"abcd"), meets, concurrency=2)
    assert (len(results), most) == (4, 2)
    assert not any(result.error for result in results.values())


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_an_interrupted_batch_goes_on_with_what_has_no_result(tmp_path: Path, template: str) -> None:
    out, begun, run = tmp_path / "out", asyncio.Event(), []

    async def hangs_at_b(toolbox: FleetToolbox, task: BatchTask, folder: Path) -> None:
        run.append(task.id)
        await writes_its_prompt(toolbox, task, folder)
        if task.id == "b" and run.count("b") == 1:
            begun.set()
            await asyncio.Event().wait()

    def started() -> "asyncio.Task[dict[str, TaskResult]]":
        return asyncio.create_task(
            batch(out, template, tasks("a", "b", "c"), hangs_at_b, concurrency=1, score="ls")
        )

    first = started()
    await asyncio.wait_for(begun.wait(), PATIENCE)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not (out / "workspaces").exists()
    # As if the run had been killed in the middle of a line.
    with (out / RESULTS_NAME).open("a") as file:
        file.write('{"id": "c", "sco')
    results = await asyncio.wait_for(started(), PATIENCE)
    assert run == ["a", "b", "b", "c"]
    assert {name: result.restarted for name, result in results.items()} == {
        "a": False, "b": True, "c": False,
    }  # fmt: skip
    assert all(result.score == 1.0 for result in results.values())


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_progress_counts_what_was_done_earlier(tmp_path: Path, template: str) -> None:
    out, seen = tmp_path / "out", []
    await batch(out, template, tasks("a"), writes_its_prompt, score="true")
    await batch(
        out,
        template,
        tasks("a", "b"),
        writes_its_prompt,
        score="false",
        on_progress=lambda now: seen.append(
            (now.finished_count, now.earlier, now.running, now.passed, now.failed)
        ),
    )
    assert seen == [(1, 1, 0, 1, 0), (1, 1, 1, 1, 0), (2, 1, 0, 1, 1)]


def test_a_folder_is_of_one_batch_and_one_run(tmp_path: Path) -> None:
    with (
        BatchFolder(tmp_path, {"agent": "a", "score": "s"}),
        pytest.raises(UsageError, match="Another run"),
        BatchFolder(tmp_path, {}),
    ):
        pass
    with (
        pytest.raises(UsageError, match="another batch, whose agent was different"),
        BatchFolder(tmp_path, {"agent": "b", "score": "s"}),
    ):
        pass
    with BatchFolder(tmp_path, {"agent": "a", "score": "s"}) as folder:
        assert {folder.task_folder(name).parent for name in ("..", ".", "a/../b")} == {tmp_path / "tasks"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "no id"}', "2 is not a valid task: id"),
        ('{"id": "a", "promt": "x"}', "2 is not a valid task: promt"),
        ('{"id": "first"}', "duplicate id"),
        ("{", "2 is not a valid task"),
    ],
)
def test_a_line_that_is_no_task_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "first"}\n' + line + "\n")
    with pytest.raises(UsageError, match=said):
        read_tasks(file)


def test_a_template_is_a_folder_an_archive_or_a_commit(tmp_path: Path) -> None:
    (tmp_path / "a@b").mkdir()
    (tmp_path / "a.tar").touch()
    assert parse_template_source(f"{tmp_path}/a@b").kind == "folder"
    assert parse_template_source(f"{tmp_path}/a.tar").kind == "tarball"
    assert parse_template_source(f"{tmp_path}/a@b@HEAD") == ("git", f"{tmp_path}/a@b", "HEAD", "")
    assert parse_template_source(f"image:{tmp_path}/a.tar#/app") == (
        "image",
        f"{tmp_path}/a.tar",
        "",
        "/app",
    )
    for wrong in ("", f"{tmp_path}/none", f"{tmp_path}/none@HEAD", f"image:{tmp_path}/none"):
        with pytest.raises(UsageError):
            parse_template_source(wrong)


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_task_begins_with_a_folder_of_a_container_image(tmp_path: Path, template: str) -> None:
    image_layout(tmp_path / "images" / "python", [FIRST, SECOND])
    lines = [
        {"id": "whole", "template": "image:images/python", "score": "grep -q two app/main.py"},
        {"id": "part", "template": "image:images/python#/app", "score": "grep -q two main.py"},
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    wanted = read_tasks(tmp_path / "tasks.jsonl")
    results = await batch(tmp_path / "out", template, wanted, writes_its_prompt)
    assert {name: result.score for name, result in results.items()} == {"whole": 1.0, "part": 1.0}


def test_an_agent_is_an_async_function() -> None:
    with pytest.raises(UsageError, match="not an async function"):
        load_agent("json:dumps")
    with pytest.raises(UsageError, match="Can't import"):
        load_agent("json:nothing")


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_relays_token_opens_one_workspace_for_as_long_as_it_is_good(
    tmp_path: Path, template: str
) -> None:
    relay = WorkspaceRelay()
    await relay.start("tcp:127.0.0.1:0")
    async with open_local_fleet(tmp_path / "workspaces", policy=Policy()) as fleet:
        digest = await fleet.add_template("folder", template)
        own, other = await fleet.create(digest), await fleet.create(digest)
        async with relay.token_for_workspace(own) as token:
            client = HostClient(relay.address, token)
            box = FleetToolbox(client, own.workspace_name)
            assert "a.txt" in (await box.call("list", {})).text
            with pytest.raises(UsageError, match="does not allow"):
                await FleetToolbox(client, other.workspace_name).call("list", {})
            for method in ("remove", "resume", "create", "names"):
                with pytest.raises(UsageError, match="does not allow"):
                    await client.request(method, {"workspace": own.workspace_name})
            begun = threading.Event()
            call = Call(tool="bash", args={"command": "echo begun; sleep 600", "timeout": 600})
            waiting = asyncio.create_task(
                box.call(call, listener=lambda event: isinstance(event, Progressed) and begun.set())
            )
            assert await asyncio.to_thread(begun.wait, PATIENCE)
        # The agent is gone, and with it what it had left running.
        assert (await asyncio.wait_for(waiting, PATIENCE)).status != "ok"
        with pytest.raises(UsageError, match="has ended"):
            await box.call("list", {})
        await client.aclose()
    await relay.aclose()
