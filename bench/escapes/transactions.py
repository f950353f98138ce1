"""The whole: a command as an agent runs it, under the strongest runner, captured, judged and then landed."""

import shlex
import tempfile
from pathlib import Path

import anyio
from pydantic import BaseModel

from bench.escapes.scripts import Script
from handtools import Call, Context, Policy, Result, Toolbox, local_workspace, tool
from handtools.core.command import Allowance, Command
from handtools.runtime.rules import PRIVATE, PROTECTED


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
    allowance = Allowance(seconds=params.seconds)
    if params.bounded:
        allowance = Allowance(
            seconds=params.seconds, memory_bytes=1 << 30, processes=256, written_bytes=1 << 30
        )
    end = await ctx.commands.run(Command(script=params.text, env=params.env, allowance=allowance))
    output = end.output.head + end.output.tail + "\n".join(end.notes).encode()
    return Result("done", ScriptDetails(code=end.code, output=output))


def transact(given: Script, workspace: Path, environment: dict[str, str]) -> tuple[int | None, bytes]:
    """Nobody is there to be asked, so what needs a person's word does not land, unless the work has it already."""
    return anyio.run(_call, given, workspace, environment)


async def _call(given: Script, workspace: Path, environment: dict[str, str]) -> tuple[int | None, bytes]:
    rules = (PRIVATE,) if given.open_git else (PRIVATE, PROTECTED)
    policy = Policy(rules=rules, unattended="allow" if given.open_git else "deny")
    home = {"HOME": environment["HOST_HOME"]} if "HOST_HOME" in environment else {}
    text = shlex.join([*given.interpreter.split(), "-c", given.text, environment.get("NONCE", "")])
    args = {
        "text": f"exec {text}",
        "env": environment | home,
        "seconds": given.seconds,
        "bounded": bool(environment),
    }
    with tempfile.TemporaryDirectory(prefix="state-") as state:
        toolbox = Toolbox([script], workspace=local_workspace(workspace, state=state), policy=policy)
        async with toolbox:
            result = await toolbox.call(Call(tool="script", args=args))
    if isinstance(result.details, ScriptDetails):
        return result.details.code, result.details.output
    return None, str(result.fault or result.content).encode()
