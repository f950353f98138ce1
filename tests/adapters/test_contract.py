"""One contract for every adapter: what a model reads, what a person is asked, what is left behind."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel

from handtools import Context, Result, Toolbox, coding, tool
from handtools.core.events import Progressed
from handtools.core.result import Document
from handtools.toolbox import CODING, local_workspace
from tests.adapters.drivers import CELLS, Wanted
from tests.adapters.new_process import ASK, RUN

pytestmark = pytest.mark.anyio
driver = import_module(f"tests.adapters.driver_{os.environ['HANDTOOLS_ADAPTER']}").Driver()
cell = pytest.mark.cell
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005050202"
    "5fc8f1d20000000049454e44ae426082"
)
WRITE = {"path": "made.txt", "content": "x\n"}


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "p.png").write_bytes(PNG)
    return folder


class NoParams(BaseModel):
    pass


class NoDetails(BaseModel):
    pass


PDF = b"%PDF-1.4\n%%EOF\n"


@tool(effects=())
async def brochure(ctx: Context, params: NoParams) -> Result[NoDetails]:
    """A brochure."""
    return Result([Document(PDF, "application/pdf", "b.pdf")], NoDetails())


def meeting(count: int):
    """Make a tool whose calls end only when so many of them run at the same time."""
    come: list[str] = []
    all_here = anyio.Event()

    @tool(effects=())
    async def meet(ctx: Context, params: NoParams) -> Result[NoDetails]:
        """Wait for the others."""
        come.append(ctx.call.id)
        if len(come) == count:
            all_here.set()
        with anyio.move_on_after(10):
            await all_here.wait()
        return Result("met" if all_here.is_set() else "alone", NoDetails())

    return meet


def with_tools(root: Path, *tools) -> Toolbox:
    return Toolbox([*CODING, *tools], workspace=local_workspace(root))


def call(tool: str, args, known: str = "") -> Wanted:
    return Wanted(tool, args, known or f"call_{secrets.token_hex(6)}")


@cell("every tool")
async def test_every_tool_can_be_called(root):
    async with coding(root, policy=RUN) as box:
        args = {
            "read": {"path": "a.txt"},
            "grep": {"pattern": "one"},
            "find": {"pattern": "*.txt"},
            "list": {},
            "edit": {"path": "a.txt", "old_string": "one", "new_string": "1"},
            "multi_edit": {"path": "a.txt", "edits": [{"old_string": "two", "new_string": "2"}]},
            "patch": {"patch": "*** Begin Patch\n*** Add File: n.txt\n+new\n*** End Patch\n"},
            "write": {"path": "w.txt", "content": "w\n"},
            "bash": {"command": "echo hi"},
            "jobs": {},
            "undo": {"name": "w.txt"},
            "think": {"thought": "Hm."},
            "now": {},
        }
        assert set(args) == {one.name for one in box.definitions()}
        for name, given in args.items():
            [said] = await driver.run(box, call(name, given))
            assert not said.error, (name, said.text)


@cell("text")
async def test_text_reaches_the_model_and_odd_text_is_made_safe(root):
    (root / os.fsdecode(b"odd\xff.txt")).write_text("x")
    async with coding(root) as box:
        text, odd = await driver.run(box, call("read", {"path": "a.txt"}), call("list", {}))
    assert "two" in text.text
    assert json.dumps(odd.text, ensure_ascii=False).encode()


@cell("image")
async def test_an_image_reaches_the_model_as_one(root):
    async with coding(root) as box:
        [image] = await driver.run(box, call("read", {"path": "p.png"}))
    assert image.media == ["image/png"]


@cell("document")
async def test_a_document_reaches_the_model_as_one(root):
    async with with_tools(root, brochure) as box:
        [document] = await driver.run(box, call("brochure", {}))
    assert not document.error
    assert document.media == ["application/pdf"]


@cell("tool error")
async def test_an_error_is_read_by_the_model_in_our_words_and_the_run_goes_on(root):
    async with coding(root) as box:
        [missing] = await driver.run(box, call("read", {"path": "nowhere.txt"}))
    assert missing.error
    assert "nowhere.txt" in missing.text


@cell("bad arguments")
async def test_wrong_arguments_are_named_in_our_words(root):
    async with coding(root) as box:
        [wrong] = await driver.run(box, call("edit", {"pth": "a.txt"}))
    assert wrong.error
    assert "did you mean `path`?" in wrong.text


@cell("malformed JSON")
async def test_arguments_that_are_no_json_are_explained_in_our_words_and_the_run_goes_on(root):
    async with coding(root) as box:
        [broken] = await driver.run(box, call("write", '{"path": "made.txt", "content": "x'))
        assert await box.waiting() == []
    assert broken.error
    assert "not a JSON object" in broken.text
    assert not (root / "made.txt").exists()


@cell("unknown tool")
async def test_a_tool_that_is_not_there_is_said_and_the_run_goes_on(root):
    async with coding(root) as box:
        [unknown] = await driver.run(box, call("raed", {"path": "a.txt"}))
    assert unknown.error
    assert "raed" in unknown.text


@cell("same id runs once")
async def test_the_same_call_of_a_conversation_runs_once_and_of_another_again(root):
    command = call("bash", {"command": "echo x >> count.txt"}, "call_1")
    async with coding(root, policy=RUN) as box:
        for _ in range(2):
            [said] = await driver.run(box, command, conversation="one")
            assert not said.error
        assert (root / "count.txt").read_text() == "x\n"
        await driver.run(box, command, conversation="two")
    assert (root / "count.txt").read_text() == "x\nx\n"


@cell("ask, yes in a new process")
async def test_a_yes_runs_the_call_in_a_new_process(root, tmp_path):
    async with coding(root, policy=ASK) as box:
        paused, question = await driver.ask(box, call("write", WRITE))
        assert "made.txt" in question["title"]
        assert not (root / "made.txt").exists()
    (tmp_path / "paused").write_bytes(driver.dump(paused))
    later = subprocess.run(
        [sys.executable, "-m", "tests.adapters.new_process", str(root), str(tmp_path / "paused")],
        capture_output=True,
        check=False,
        timeout=240,
    )
    assert later.returncode == 0, later.stderr.decode()
    told = json.loads(later.stdout)
    assert [one["error"] for one in told["said"]] == [False]
    assert told["waiting"] == 0
    assert (root / "made.txt").read_text() == "x\n"


@cell("ask, no")
async def test_a_no_changes_nothing_and_leaves_nothing_waiting(root):
    async with coding(root, policy=ASK) as box:
        paused, _ = await driver.ask(box, call("write", WRITE))
        [said] = await driver.answer(box, paused, allow=False)
        assert said.text
        assert await box.waiting() == []
    assert not (root / "made.txt").exists()


@cell("edited arguments")
async def test_arguments_that_a_person_edited_are_those_that_run(root):
    async with coding(root, policy=ASK) as box:
        paused, _ = await driver.ask(box, call("write", WRITE))
        edited = {"path": "other.txt", "content": "y\n"}
        [said] = await driver.answer(box, paused, allow=True, args=edited)
        assert not said.error
        assert await box.waiting() == []
    assert (root / "other.txt").read_text() == "y\n"
    assert not (root / "made.txt").exists()


@cell("parallel calls")
async def test_calls_of_one_turn_run_at_the_same_time_and_are_answered_in_order(root):
    async with with_tools(root, meeting(3)) as box:
        *met, text = await driver.run(
            box, *(call("meet", {}) for _ in range(3)), call("read", {"path": "a.txt"})
        )
    assert [one.text for one in met] == ["met"] * 3
    assert "two" in text.text


@cell("parallel calls")
async def test_edits_of_one_file_in_one_turn_all_land(root):
    (root / "many.txt").write_text("".join(f"line {n}.\n" for n in range(8)))
    edits = [{"path": "many.txt", "old_string": f"line {n}.", "new_string": f"row {n}."} for n in range(8)]
    async with coding(root) as box:
        said = await driver.run(box, *(call("edit", one) for one in edits))
    assert [one.error for one in said] == [False] * 8
    assert (root / "many.txt").read_text() == "".join(f"row {n}.\n" for n in range(8))


class Sleeper:
    """A command that begins, and sleeps unless the file `go` is there; it can be found among the processes."""

    def __init__(self) -> None:
        self.marker = f"7{secrets.randbelow(10**6)}.5"
        self.command = f"echo begun; test -e go || sleep {self.marker}; echo x >> count.txt"
        self.begun = anyio.Event()
        self._loop = asyncio.get_running_loop()

    def hear(self, event) -> None:
        if isinstance(event, Progressed) and "begun" in event.text:
            self._loop.call_soon_threadsafe(self.begun.set)

    def processes(self) -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.marker in (entry / "cmdline").read_text():
                    found.append(entry.name)
            except OSError:
                continue
        return found

    async def cancel_while_it_sleeps(self, run) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            with anyio.fail_after(60):
                await self.begun.wait()
                while not self.processes():
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        # An SDK may end its run before the tool's task has ended; the command would sleep for months.
        with anyio.fail_after(60):
            while self.processes():
                await anyio.lowlevel.checkpoint()


@cell("cancel")
async def test_a_cancelled_run_leaves_no_process(root):
    sleeper = Sleeper()
    async with coding(root, policy=RUN, listeners=[sleeper.hear]) as box:
        wanted = call("bash", {"command": sleeper.command})
        await sleeper.cancel_while_it_sleeps(lambda: driver.run(box, wanted))
        assert not sleeper.processes()
    assert not (root / "count.txt").exists()


@cell("cancel, then go on")
async def test_a_cancelled_run_goes_on_with_the_call_that_was_cancelled(root):
    sleeper = Sleeper()
    async with coding(root, policy=RUN, listeners=[sleeper.hear]) as box:
        wanted = call("bash", {"command": sleeper.command})
        await sleeper.cancel_while_it_sleeps(lambda: driver.run(box, wanted, conversation="one"))
        (root / "go").touch()
        [said] = await driver.go_on(box, wanted, conversation="one")
    assert not said.error
    assert "begun" in said.text
    assert (root / "count.txt").read_text() == "x\n"


@cell("2 MB of output")
async def test_two_megabytes_of_output_are_bounded(root):
    async with coding(root, policy=RUN) as box:
        [said] = await driver.run(box, call("bash", {"command": "head -c 2000000 /dev/zero | tr '\\0' x"}))
    assert len(said.text) < 40_000


@cell("prefix")
async def test_tools_under_a_prefix_are_called_by_it(root):
    async with coding(root) as box:
        prefixed = box.renamed(lambda name: f"ht_{name}")
        [said] = await driver.run(prefixed, call("ht_read", {"path": "a.txt"}))
    assert "two" in said.text


def test_every_limit_is_one_of_a_cell():
    assert set(getattr(driver, "limits", {})) <= set(CELLS)
