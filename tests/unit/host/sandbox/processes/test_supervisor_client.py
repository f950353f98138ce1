"""Supervisors: hired once, used again, gone with their line."""

import math
import os
import resource
from functools import partial

import pytest

from handtools.core.commands import CommandLimits
from handtools.host import programs
from handtools.host.sandbox.launch import Launch, confined_launch
from handtools.host.sandbox.processes import running_process
from handtools.host.sandbox.processes import supervisor_client as pools
from handtools.host.sandbox.processes.supervisor_client import SupervisorPool
from handtools.host.sandbox.runners.runner_selection import UnconfinedRunner


@pytest.fixture
def pool():
    made = SupervisorPool()
    yield made
    made.close()


def launch(tmp_path, script, **facts):
    env = {"PATH": "/usr/bin:/bin"}
    return Launch(argv=("bash", "-c", script), env=env, cwd=str(tmp_path), root=str(tmp_path), **facts)


async def run_process(launch, kept):
    return await running_process.run_process(
        launch, kept, None, partial(confined_launch, UnconfinedRunner())
    )


def test_a_supervisor_is_used_again(pool):
    first = pool.take()
    pool.give_back(first)
    assert pool.take() is first
    first.dismiss()


def test_a_supervisor_imports_neither_dataclasses_nor_the_rest_of_the_project():
    module = "handtools.host.sandbox.processes.supervisor"
    say = "import sys; print(*sys.modules)"
    line = programs.python_arguments(module, "main", [])
    line[line.index("-c") + 1] = line[line.index("-c") + 1].partition("; run(")[0] + f"; {say}"
    ran = programs.run_program(programs.python_interpreter(), line, programs.ProgramLimits(seconds=60))
    modules = ran.output.decode().split()
    assert module in modules
    assert not {"dataclasses", "inspect", "subprocess", "asyncio"} & set(modules)
    ours = [each for each in modules if each.startswith("handtools.")]
    assert all(each.startswith("handtools.host") for each in ours), ours
    assert len(ours) <= 12


def test_one_that_was_started_ahead_is_the_one_that_is_taken(pool):
    pool.start_ahead()
    pool.start_ahead()
    (ready,) = pool._idle
    assert pool.take() is ready
    ready.dismiss()


def test_only_a_few_are_kept_idle(pool):
    hired = [pool.take() for _ in range(pools.IDLE_SUPERVISORS + 1)]
    for each in hired:
        pool.give_back(each)
    assert sum(each.process.poll() is None for each in hired) == pools.IDLE_SUPERVISORS


def test_one_that_died_while_idle_is_replaced(pool):
    first = pool.take()
    pool.give_back(first)
    first.process.kill()
    first.process.wait()
    second = pool.take()
    assert second.process.poll() is None
    second.dismiss()


def test_a_dismissed_supervisor_leaves_no_control_group(pool):
    hired = pool.take()
    hired.dismiss()
    assert not any(os.path.exists(folder) for folder in hired.folders)


async def test_a_program_that_is_not_there_is_named(tmp_path):
    ended = await run_process(
        Launch(argv=("no_such_program_",), env={"PATH": "/bin"}, cwd=str(tmp_path), root=str(tmp_path)),
        tmp_path / "kept",
    )
    assert ended.code == 127
    assert "No such file" in ended.fault


async def test_a_folder_that_is_not_there_is_named(tmp_path):
    ended = await run_process(launch(tmp_path / "gone", "true"), tmp_path / "kept")
    assert "gone" in ended.fault


async def test_an_order_is_carried_out_once(tmp_path):
    for _ in range(40):
        assert (await run_process(launch(tmp_path, "echo x >> done"), tmp_path / "kept")).code == 0
    assert (tmp_path / "done").read_text() == "x\n" * 40


async def test_descriptors_come_under_their_own_numbers(tmp_path):
    reading, writing = os.pipe()
    try:
        ended = await run_process(
            launch(tmp_path, f"echo through >&{writing}", pass_fds=(writing,)), tmp_path / "kept"
        )
        assert ended.code == 0
        assert os.read(reading, 100) == b"through\n"
    finally:
        os.close(reading)
        os.close(writing)


async def test_signals_are_as_a_command_expects_them(tmp_path):
    script = "trap; kill -PIPE $$; echo survived"
    ended = await run_process(launch(tmp_path, script), tmp_path / "kept")
    assert ended.signal == 13
    assert ended.output.bytes == 0


@pytest.mark.linux("supervisors")
async def test_memory_is_measured(tmp_path):
    script = "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo ${#x}"
    ended = await run_process(launch(tmp_path, script), tmp_path / "kept")
    assert ended.peak_bytes is not None
    assert 50_000_000 < ended.peak_bytes < 600_000_000


@pytest.mark.linux("supervisors")
@pytest.mark.parametrize(("limit", "code"), [(None, 0), (100 << 20, 1)])
async def test_a_limit_on_memory_holds(tmp_path, limit, code):
    script = "python3 -c 'bytearray(300 << 20)' 2>/dev/null || exit 1"
    limits = CommandLimits(memory_bytes=limit)
    ended = await run_process(launch(tmp_path, script, limits=limits), tmp_path / "kept")
    assert ended.code == code


async def test_a_limit_on_file_size_holds(tmp_path):
    script = "exec head -c 9000000 /dev/zero > big"
    limits = CommandLimits(written_bytes=1_000_000)
    ended = await run_process(launch(tmp_path, script, limits=limits), tmp_path / "kept")
    assert ended.ended == "limit"
    # Without supervisors the shell sets it, in whole blocks.
    assert 1_000_000 - 512 < (tmp_path / "big").stat().st_size <= 1_000_000


async def test_a_process_that_prints_nothing_is_waited_for_without_waking_up(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    stage = partial(confined_launch, UnconfinedRunner())
    silent = launch(tmp_path, "sleep 0.6", limits=CommandLimits(seconds=math.inf))
    ended = await running_process.run_process(silent, tmp_path / "kept", lambda _: None, stage)
    woken = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
    assert ended.code == 0
    assert woken < 100
