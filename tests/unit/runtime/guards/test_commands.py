"""Guarded commands: what rules come to in a sandbox, where a command runs, and what becomes of its changes."""

import random
from dataclasses import dataclass, replace

import pytest
from pydantic import BaseModel

from handtools import Call, Change, Context, Policy, Result, Rule, Toolbox, tool
from handtools.core.commands import InheritedShellState
from handtools.runtime.journal import Journal
from handtools.runtime.policy.rules import PRIVATE_RULE
from handtools.testing.memory_toolbox import MemoryStore, memory_toolbox, memory_workspace
from handtools.testing.stubs import CannedOutput, MemoryCommands
from handtools.text.search.glob import any_covers
from handtools.toolbox import CODING


def secret(name, *paths, but=()):
    return Rule(name, "deny", "Secret.", effects=frozenset({"read"}), paths=paths, but=but)


def test_what_a_rule_excepts_is_not_hidden_from_commands():
    hidden = Policy(rules=(secret("keys", "*.key", ".env*", but=(".env.example",)),)).hidden_globs
    assert any_covers(hidden, "a/.env")
    assert not any_covers(hidden, "a/.env.example")


def test_an_exception_of_one_rule_opens_nothing_that_another_hides():
    rules = (secret("folder", "vault/**"), secret("keys", "*.key", but=("*.pub.key",)))
    hidden = Policy(rules=rules).hidden_globs
    assert any_covers(hidden, "vault/x.pub.key")
    assert not any_covers(hidden, "x.pub.key")


def test_what_may_not_be_changed_has_its_exceptions_too():
    rule = Rule(
        "settings",
        "ask",
        "It runs.",
        effects=frozenset({"change"}),
        paths=(".vscode/**",),
        but=(".vscode/launch.json",),
    )
    read_only = Policy(rules=(rule,)).read_only_globs
    assert any_covers(read_only, ".vscode/tasks.json")
    assert not any_covers(read_only, ".vscode/launch.json")


@pytest.mark.parametrize(
    ("verdict", "effects"), [("allow", {"change"}), ("deny", {"read"}), ("ask", {"read", "visit"})]
)
def test_a_rule_that_forbids_no_change_makes_nothing_read_only(verdict, effects):
    rule = Rule("build", verdict, "Ours.", effects=frozenset(effects), paths=("build/**",))
    assert Policy(rules=(rule,)).read_only_globs == ()


@dataclass
class ChangingCommands(MemoryCommands):
    """Commands that change files, and look which paths they were told are open."""

    delta: tuple[Change, ...] = ()
    coverage: str = "overlay"
    is_open: object = None

    async def run(self, command, *, is_open, **given):
        self.is_open = is_open
        ran = await super().run(command, is_open=is_open, **given)
        return replace(ran, delta=self.delta, coverage=self.coverage)


def changing(files, *delta, **options):
    commands = ChangingCommands({"make": CannedOutput(b"built\n")}, delta=delta)
    return memory_toolbox(files, commands=commands, **options), commands


@pytest.mark.parametrize(("cwd", "folder"), [("d", "d"), (".", "."), (None, "left")])
async def test_a_command_runs_in_the_folder_that_was_named_else_where_the_last_one_ended(cwd, folder):
    box, commands = changing({"d/x": b""})
    commands.shell_states["default"] = InheritedShellState(cwd="left")
    assert (await box.call("bash", {"command": "make", "cwd": cwd})).ok
    assert [command.cwd for command in commands.commands] == [folder]


@pytest.mark.parametrize("cwd", ["d/x", "gone"])
async def test_nothing_runs_in_what_is_not_a_folder(cwd):
    box, commands = changing({"d/x": b""})
    result = await box.call("bash", {"command": "make", "cwd": cwd})
    assert f"`{cwd}` is not a folder." in result.text
    assert commands.commands == []


async def test_a_command_of_which_every_change_is_forbidden_still_tells_its_output_and_why():
    box, _ = changing({".env": b"TOKEN=1\n"}, Change.of(".env", before=b"TOKEN=1\n", after=b""))
    result = await box.call("bash", {"command": "make"})
    assert result.text.startswith("built\nExit code 0")
    assert "Not applied because of rule `private`: `.env`." in result.text
    assert box.workspace.files.files[".env"] == b"TOKEN=1\n"


async def test_changes_that_were_only_seen_afterwards_are_told_recorded_and_undone():
    change = Change.of("a", before=b"old\n", after=b"new\n")
    box, commands = changing({"a": b"new\n"}, change)
    commands.coverage = "scan"
    result = await box.call(Call(tool="bash", args={"command": "make"}, id="c"))
    assert result.ok
    assert [touched.path for touched in result.changes.touched] == ["a"]
    await box.call("undo", {"scope": "call", "name": "c"})
    assert box.workspace.files.files["a"] == b"old\n"


async def test_a_private_name_is_open_to_commands_while_it_holds_what_a_call_wrote():
    box, commands = changing({"old/.env": b"TOKEN=1\n"}, Change.of(".env", before=None, after=b"PORT=1\n"))
    await box.call("bash", {"command": "make"})
    assert box.workspace.files.files[".env"] == b"PORT=1\n"
    assert [commands.is_open(path) for path in (".env", "old/.env", "../.env")] == [True, False, False]
    mine = box.workspace.files.plan([Change.of(".env", before=b"PORT=1\n", after=b"TOKEN=2\n")])
    box.workspace.files.perform(mine)
    assert not commands.is_open(".env")


async def test_a_private_name_is_not_open_where_nobody_knows_any_more_what_a_call_wrote():
    store, large = MemoryStore(), random.Random(1).randbytes(2 << 20)
    commands = ChangingCommands(delta=(Change.of(".env", before=None, after=large),))
    workspace = replace(memory_workspace(commands=commands), journal=Journal(":memory:", store))
    await Toolbox(CODING, workspace=workspace).call("bash", {"command": "make"})
    assert commands.is_open(".env")
    store.kept.clear()
    assert not commands.is_open(".env")


async def test_what_a_rule_of_ones_own_hides_is_not_open_though_a_call_wrote_it():
    policy = Policy(rules=(PRIVATE_RULE, secret("mine", "notes", "x/.env")))
    changes = [Change.of(path, before=None, after=b"mine\n") for path in ("notes", "x/.env", "plain")]
    box, commands = changing({"x/a": b""}, *changes, policy=policy)
    await box.call("bash", {"command": "make"})
    assert {"notes", "x/.env", "plain"} <= box.workspace.files.files.keys()
    assert [commands.is_open(path) for path in ("notes", "x/.env", "plain")] == [False, False, False]


class NotedCommands(MemoryCommands):
    """Commands that note how long somebody would wait for the end of a job."""

    async def job(self, job_id, session, *, timeout):
        self.shell_states.setdefault("waits", []).append(timeout)
        return await super().job(job_id, session, timeout=timeout)


class NoParams(BaseModel):
    """Nothing is asked for."""


@tool(effects=("run", "publish"))
async def glance(ctx: Context, params: NoParams) -> Result[NoParams]:
    """Look at a job and publish its port."""
    await ctx.commands.job("job1")
    await ctx.commands.publish("job1", 3000)
    return Result("done", params)


async def test_who_looks_at_a_job_or_publishes_its_port_does_not_wait_for_its_end():
    commands = NotedCommands({"serve": CannedOutput(ports=(3000,))})
    box = memory_toolbox(commands=commands, tools=[*CODING, glance], policy=Policy(ports=("3000",)))
    await box.call("bash", {"command": "serve", "background": True})
    assert (await box.call("glance", {})).ok
    assert commands.shell_states["waits"] == [0.0, 0.0]


@pytest.mark.parametrize("is_over", [False, True])
async def test_the_stored_output_of_a_job_has_one_path_while_it_runs_and_when_it_is_over(is_over):
    @tool(effects=("run", "read"))
    async def whole(ctx: Context, params: NoParams) -> Result[NoParams]:
        """Name where the output of a job is."""
        job = await (ctx.commands.kill("job1") if is_over else ctx.commands.job("job1"))
        return Result(" ".join(each.output.kept for each in (job, job.exit) if each), params)

    commands = MemoryCommands({"count": CannedOutput(b"line\n" * 10_000)})
    box = memory_toolbox(commands=commands, tools=[*CODING, whole])
    await box.call(Call(tool="bash", args={"command": "count", "background": True}, id="c"))
    assert (await box.call("whole", {})).text.split() == ["output:c.log"] * (1 + is_over)
