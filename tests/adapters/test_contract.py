"""One contract for every adapter: what a model reads, what a person is asked, what is left behind."""

import json
import os
import secrets
from importlib import import_module
from pathlib import Path

import anyio
import pytest

from handtools import Policy, Rule, coding
from handtools.core.events import Progressed
from tests.adapters.drivers import Wanted

pytestmark = pytest.mark.anyio
driver = import_module(f"tests.adapters.driver_{os.environ['HANDTOOLS_ADAPTER']}").Driver()
ASK = Policy(rules=(Rule("ask", "ask", "Look first.", effects=frozenset({"change"})),))
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005050202"
    "5fc8f1d20000000049454e44ae426082"
)
WRITE = {"path": "made.txt", "content": "x\n"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "p.png").write_bytes(PNG)
    return folder


def call(tool: str, args, known: str = "") -> Wanted:
    return Wanted(tool, args, known or f"call_{secrets.token_hex(6)}")


async def test_every_tool_can_be_called(root):
    async with coding(root) as box:
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


async def test_text_and_an_image_reach_the_model_and_odd_text_is_made_safe(root):
    (root / os.fsdecode(b"odd\xff.txt")).write_text("x")
    async with coding(root) as box:
        text, image, odd = await driver.run(
            box, call("read", {"path": "a.txt"}), call("read", {"path": "p.png"}), call("list", {})
        )
    assert "two" in text.text
    assert image.media == ["image/png"]
    assert json.dumps(odd.text, ensure_ascii=False).encode()


async def test_an_error_is_read_by_the_model_in_our_words_and_the_run_goes_on(root):
    async with coding(root) as box:
        missing, wrong = await driver.run(
            box, call("read", {"path": "nowhere.txt"}), call("edit", {"pth": "a.txt"})
        )
        assert missing.error
        assert "nowhere.txt" in missing.text
        assert wrong.error
        assert "did you mean `path`?" in wrong.text
        [unknown] = await driver.run(box, call("raed", {"path": "a.txt"}))
    assert unknown.error
    assert "raed" in unknown.text


async def test_the_same_call_of_a_conversation_runs_once_and_of_another_again(root):
    command = call("bash", {"command": "echo x >> count.txt"}, "call_1")
    async with coding(root) as box:
        for _ in range(2):
            [said] = await driver.run(box, command, conversation="one")
            assert not said.error
        assert (root / "count.txt").read_text() == "x\n"
        await driver.run(box, command, conversation="two")
    assert (root / "count.txt").read_text() == "x\nx\n"


async def test_a_yes_runs_the_call_also_in_a_new_process(root):
    async with coding(root, policy=ASK) as box:
        paused, question = await driver.ask(box, call("write", WRITE))
        assert "made.txt" in question["title"]
        assert not (root / "made.txt").exists()
    async with coding(root, policy=ASK) as later:
        [said] = await driver.answer(later, paused, allow=True)
        assert not said.error
        assert await later.waiting() == []
    assert (root / "made.txt").read_text() == "x\n"


async def test_a_no_changes_nothing_and_leaves_nothing_waiting(root):
    async with coding(root, policy=ASK) as box:
        paused, _ = await driver.ask(box, call("write", WRITE))
        await driver.answer(box, paused, allow=False)
        assert await box.waiting() == []
    assert not (root / "made.txt").exists()


async def test_arguments_that_a_person_edited_are_those_that_run(root):
    async with coding(root, policy=ASK) as box:
        paused, _ = await driver.ask(box, call("write", WRITE))
        edited = {"path": "other.txt", "content": "y\n"}
        [said] = await driver.answer(box, paused, allow=True, args=edited)
        assert not said.error
        assert await box.waiting() == []
    assert (root / "other.txt").read_text() == "y\n"
    assert not (root / "made.txt").exists()


async def test_a_cancelled_run_leaves_no_process(root):
    started = anyio.Event()
    loop = anyio.lowlevel.current_token()

    def hear(event) -> None:
        if isinstance(event, Progressed) and "begun" in event.text:
            anyio.from_thread.run_sync(started.set, token=loop)

    marker = f"7{secrets.randbelow(10**6)}.5"
    async with coding(root, listeners=[hear]) as box:
        async with anyio.create_task_group() as group:
            group.start_soon(driver.run, box, call("bash", {"command": f"echo begun; sleep {marker}"}))
            with anyio.fail_after(60):
                await started.wait()
            with anyio.fail_after(60):
                while not processes(marker):
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert not processes(marker)


def processes(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "cmdline").read_text():
                found.append(entry.name)
        except OSError:
            continue
    return found


async def test_two_megabytes_of_output_are_bounded(root):
    async with coding(root) as box:
        [said] = await driver.run(box, call("bash", {"command": "head -c 2000000 /dev/zero | tr '\\0' x"}))
    assert len(said.text) < 40_000


async def test_tools_under_a_prefix_are_called_by_it(root):
    async with coding(root) as box:
        prefixed = box.renamed(lambda name: f"ht_{name}")
        [said] = await driver.run(prefixed, call("ht_read", {"path": "a.txt"}))
    assert "two" in said.text
