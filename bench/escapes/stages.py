"""Stages: the ways to run a script, from no protection at all to the strongest there is."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from bench.escapes.scripts import Script
from bench.escapes.transactions import transacting
from handtools.core.commands import CommandLimits
from handtools.host.sandbox.launch import Launch, Runner, confined_launch
from handtools.host.sandbox.processes.running_process import run_process
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.runner_selection import runners_by_strength
from handtools.text.search.glob import PathGlobs

BARE = "none"

Stage = Callable[[Script, Path, dict[str, str]], tuple[int | None, bytes]]
"""Runs a script in a workspace; gives back its code and what it printed."""


def stages() -> dict[str, Stage]:
    """Every way that works on this machine, by name."""
    found: dict[str, Stage] = {BARE: _bare}
    for runner in reversed(runners_by_strength()):
        if not runner.unavailable_reason():
            found[runner.name] = _under(runner)
    container = ContainerRunner()
    if not container.unavailable_reason():
        found[f"{container.name}-in-place"] = _under(container)
        found[container.name] = transacting(container)
    if "bubblewrap" in found:
        found["transaction"] = transacting()
    return found


def _argv(script: Script, environment: dict[str, str]) -> tuple[str, ...]:
    """The script by its text: the last argument marks its processes for those who look from outside."""
    mark = environment.get("NONCE", "")
    return (*script.interpreter.split(), "-c", script.text, mark)


def _bare(script: Script, workspace: Path, environment: dict[str, str]) -> tuple[int | None, bytes]:
    """As a careless program does it: everything is inherited, the process group is killed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            # A parent that attempts may kill: without it that would be this bench.
            ("/bin/sh", "-c", '"$@"; exit $?', "sh", *_argv(script, environment)),
            cwd=workspace,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[int(fd) for fd in environment.get("DESCRIPTORS", "").split()],
            process_group=0,
        )
        try:
            code: int | None = process.wait(script.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            code = None
        output.seek(0)
        found = output.read()
    return code, found


def _under(runner: Runner) -> Stage:
    def run(script: Script, workspace: Path, environment: dict[str, str]) -> tuple[int | None, bytes]:
        launch = Launch(
            argv=_argv(script, environment),
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": _home(environment)}
            | environment,
            cwd=str(workspace),
            root=str(workspace),
            private_globs=(PathGlobs((".env",)),),
            read_only_globs=() if script.open_git else (PathGlobs((".git",)),),
            limits=replace(
                _ALLOWED if environment.get("NONCE") else CommandLimits(), seconds=script.seconds
            ),
        )
        return anyio.run(_run, runner, launch)

    return run


_ALLOWED = CommandLimits(memory_bytes=1 << 30, processes=256, written_bytes=1 << 30)


def _home(environment: dict[str, str]) -> str:
    return environment.get("HOST_HOME") or os.environ.get("HOME", "/root")


async def _run(runner: Runner, launch: Launch) -> tuple[int | None, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        ended = await run_process(launch, Path(folder, "output"), None, partial(confined_launch, runner))
        return ended.code, ended.fault.encode() + ended.output.head + ended.output.tail
