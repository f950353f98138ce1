"""The whole: a command as an agent runs it, under the strongest runner, captured, judged and then landed."""

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from bench.escapes.scripts import Script
from handtools import Call, Context, Policy, Result, Toolbox, local_workspace, tool
from handtools.core.commands import Command, CommandLimits
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.sandbox.capture_selection import BestCapture
from handtools.host.sandbox.launch import Runner
from handtools.host.workspace_folders import backups_folder
from handtools.runtime.policy.rules import BUILT_IN_RULES, PRIVATE_RULE


class ScriptParams(BaseModel):
    text: str
    env: dict[str, str]
    seconds: float
    bounded: bool


class ScriptDetails(BaseModel):
    code: int | None
    output: bytes


@tool(effects=("run", "change"))
async def script(ctx: Context, params: ScriptParams) -> Result[ScriptDetails]:
    """Run a script."""
    limits = CommandLimits(seconds=params.seconds)
    if params.bounded:
        limits = CommandLimits(
            seconds=params.seconds, memory_bytes=1 << 30, processes=256, written_bytes=1 << 30
        )
    end = await ctx.commands.run(Command(script=params.text, env=params.env, limits=limits))
    output = end.output.head + end.output.tail + "\n".join(end.notes).encode()
    return Result("done", ScriptDetails(code=end.code, output=output))


Ended = tuple[int | None, bytes]


def script_arguments(given: Script, environment: dict[str, str]) -> dict[str, Any]:
    """The arguments of a call that runs a script; its last argument marks its processes."""
    home = {"HOME": environment["HOST_HOME"]} if "HOST_HOME" in environment else {}
    text = shlex.join([*given.interpreter.split(), "-c", given.text, environment.get("NONCE", "")])
    return {
        "text": f"exec {text}",
        "env": environment | home,
        "seconds": given.seconds,
        "bounded": bool(environment),
    }


def transacting(runner: Runner | None = None) -> Callable[[Script, Path, dict[str, str]], Ended]:
    """Nobody is there to be asked, so what needs a person's word does not land, unless the work has it already."""

    def transact(given: Script, workspace: Path, environment: dict[str, str]) -> Ended:
        return anyio.run(_call, given, workspace, environment, runner)

    return transact


async def _call(
    given: Script, workspace: Path, environment: dict[str, str], runner: Runner | None
) -> Ended:
    rules = (PRIVATE_RULE,) if given.open_git else BUILT_IN_RULES
    policy = Policy(rules=rules, unattended="allow" if given.open_git else "deny")
    args = script_arguments(given, environment)
    with tempfile.TemporaryDirectory(prefix="state-") as state:
        place = local_workspace(workspace, state=state)
        if runner is not None:
            backups = FolderBackups(backups_folder(workspace, Path(state)))
            commands = LocalCommands(
                workspace,
                state=Path(state),
                output_blobs=FolderBlobStore(Path(state, "outputs")),
                runner=runner,
                capture=BestCapture(workspace, backups),
            )
            place = local_workspace(workspace, state=state, commands=commands)
        toolbox = Toolbox([script], workspace=place, policy=policy)
        async with toolbox:
            result = await toolbox.call(Call(tool="script", args=args))
    if isinstance(result.details, ScriptDetails):
        return result.details.code, result.details.output
    return None, str(result.fault or result.content).encode()
