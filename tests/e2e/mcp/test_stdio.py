"""The SDK's client against a server on stdio, in both eras of the protocol."""

import base64
import json
from pathlib import Path

import anyio
import jsonschema
import pytest
from mcp import MCPError
from mcp_types import ElicitResult, ListRootsResult, Root

from handtools.mcp.tool_and_result_json import DETAILS_META_KEY
from handtools.testing.memory_toolbox import memory_toolbox
from tests.e2e.mcp.conftest import CURRENT, text
from tests.e2e.mcp.workshop import PIXEL

pytestmark = pytest.mark.anyio
CALL_ID = "handtools/call_id"


def answering(decision, asked=None, message=""):
    """A person who answers every form the same."""

    async def answer(_context, params):
        if asked is not None:
            asked.append(params.message)
        if decision == "cancel":
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content={"decision": decision, "message": message})

    return answer


async def test_files_are_written_read_edited_and_undone(on_stdio, era, folder):
    async with on_stdio(era) as client:
        made = await client.call_tool("write", {"path": "a.txt", "content": "one\n"})
        assert not made.is_error, text(made)
        await client.call_tool("edit", {"path": "a.txt", "old_string": "one", "new_string": "two"})
        assert "two" in text(await client.call_tool("read", {"path": "a.txt"}))
        assert (folder / "a.txt").read_text() == "two\n"
        assert not (await client.call_tool("undo", {"name": "a.txt"})).is_error
        assert (folder / "a.txt").read_text() == "one\n"


async def test_every_tool_is_listed_with_schemas_and_hints(on_stdio, era):
    async with on_stdio(era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in listed.values():
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is None
    reads, bash = listed["read"].annotations, listed["bash"].annotations
    assert (reads.read_only_hint, reads.destructive_hint, reads.open_world_hint) == (True, None, None)
    assert (bash.read_only_hint, bash.destructive_hint, bash.open_world_hint) == (None, True, True)


async def test_no_result_has_structured_content_that_a_client_could_show_instead_of_the_text(on_stdio, era):
    async with on_stdio(era) as client:
        written = await client.call_tool("write", {"path": "a.py", "content": "def f():\n    pass\n"})
        read = await client.call_tool("read", {"path": "a.py"})
        grep = await client.call_tool("grep", {"pattern": "def"})
        refused = await client.call_tool("edit", {"path": "a.py", "old_string": "x", "new_string": "y"})
    assert "def f():" in text(read)
    for result in (written, read, grep, refused):
        assert result.structured_content is None
        assert {key for key in result.meta if key.startswith("handtools/")} == {CALL_ID}


async def test_a_program_that_asks_gets_details_that_fit_their_schema(on_stdio, era):
    schemas = {one.name: one.output_schema for one in memory_toolbox().definitions()}
    async with on_stdio(era) as client:
        await client.call_tool("write", {"path": "a.py", "content": "def f():\n    pass\n"})
        for name, args in {"read": {"path": "a.py"}, "list": {}, "grep": {"pattern": "def"}}.items():
            result = await client.call_tool(name, args, meta={DETAILS_META_KEY: True})
            assert not result.is_error, text(result)
            assert result.structured_content is None
            jsonschema.validate(result.meta[DETAILS_META_KEY], schemas[name])


async def test_a_wrong_argument_gets_our_words(on_stdio, era):
    async with on_stdio(era) as client:
        result = await client.call_tool("read", {"pth": "a.txt"})
    assert result.is_error
    assert "did you mean `path`?" in text(result)


async def test_an_unknown_tool_and_a_bug_are_results_that_the_model_can_read(on_stdio, era):
    async with on_stdio(era) as client:
        unknown = await client.call_tool("raed", {})
        assert unknown.is_error
        assert "Did you mean read" in text(unknown)
        bug = await client.call_tool("broken", {})
        assert bug.is_error
        assert "a bug in a tool" in text(bug)
        assert not (await client.call_tool("noop", {})).is_error


async def test_text_that_no_json_can_carry_is_shown(on_stdio, era):
    async with on_stdio(era) as client:
        result = await client.call_tool("odd", {}, meta={DETAILS_META_KEY: True})
    assert text(result) == "lone \ufffd surrogate"
    assert result.meta[DETAILS_META_KEY] == {"said": "lone \ufffd surrogate"}


async def test_pictures_arrive_as_pictures(on_stdio, era, folder):
    (folder / "dot.png").write_bytes(PIXEL)
    async with on_stdio(era) as client:
        result = await client.call_tool("picture", {})
        read = await client.call_tool("read", {"path": "dot.png"})
    assert [(block.type, block.mime_type) for block in result.content] == [("image", "image/png")]
    assert base64.b64decode(result.content[0].data) == PIXEL
    assert "image" in {block.type for block in read.content}


async def test_all_progress_arrives_before_the_result(on_stdio, era):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, message))

    async with on_stdio(era) as client:
        result = await client.call_tool("steps", {"steps": 20}, progress_callback=hear)
        assert text(result) == "all steps done"
        assert [message for _, message in heard] == [f"step {number}" for number in range(20)]
        amounts = [progress for progress, _ in heard]
        assert amounts == sorted(set(amounts))


async def test_a_megabyte_is_cut_and_can_be_paged(on_stdio, era):
    async with on_stdio(era) as client:
        result = await client.call_tool("large", {"bytes": 1_000_000}, meta={DETAILS_META_KEY: True})
        assert len(text(result).encode()) < 80_000
        path = result.meta["handtools/output"]
        assert path in text(result)
        page = await client.call_tool("read", {"path": path, "start_line": 5_000, "limit": 3})
        assert "5000\t0123456789" in text(page)
        name = path.removeprefix("output:")
        assert f"handtools://output/{name}" in {r.uri for r in (await client.list_resources()).resources}
        whole = (await client.read_resource(f"handtools://output/{name}")).contents[0].text
        assert len(whole) > 990_000


async def test_cancelling_kills_what_the_command_started(on_stdio, era, folder):
    begun = anyio.Event()

    async def hear(*_):
        begun.set()

    script = "echo begun; (sleep 3; echo late > late.txt) & echo $! > pid.txt; wait"
    async with on_stdio(era) as client:
        with anyio.move_on_after(60) as scope:

            async def stop():
                await begun.wait()
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                await client.call_tool("bash", {"command": script}, progress_callback=hear)
        assert scope.cancelled_caught
        journal = json.loads((await client.read_resource("handtools://journal")).contents[0].text)
        while not journal or journal[0]["tool"] != "bash":
            journal = json.loads((await client.read_resource("handtools://journal")).contents[0].text)
        assert journal[0]["status"] == "cancelled"
        alive = await client.call_tool("bash", {"command": "sleep 4; ls; pgrep -f 'sleep 3' || true"})
    assert "late.txt" not in text(alive)


@pytest.mark.parametrize("decision", ["once", "no"])
async def test_a_question_goes_to_the_client_and_its_answer_decides(on_stdio, era, folder, decision):
    asked = []
    person = answering(decision, asked, "use config.sh")
    async with on_stdio(era, elicitation_callback=person) as client:
        result = await client.call_tool("write", {"path": ".envrc", "content": "export A=1\n"})
    assert len(asked) == 1
    assert "+export A=1" in asked[0]
    assert "protected" in asked[0]
    if decision == "once":
        assert not result.is_error, text(result)
        assert (folder / ".envrc").read_text() == "export A=1\n"
    else:
        assert result.is_error
        assert "use config.sh" in text(result)
        assert not (folder / ".envrc").exists()


async def test_an_answer_for_the_session_is_remembered(on_stdio, era, folder):
    asked = []
    async with on_stdio(era, elicitation_callback=answering("session", asked)) as client:
        for mode in ("create", "overwrite"):
            args = {"path": ".envrc", "content": f"# {mode}\n", "mode": mode}
            assert not (await client.call_tool("write", args)).is_error
    assert len(asked) == 1


async def test_a_question_left_open_changes_nothing_and_waits(on_stdio, era, folder):
    asked = []
    async with on_stdio(era, elicitation_callback=answering("cancel", asked)) as client:
        result = await client.call_tool("write", {"path": ".envrc", "content": "x\n"})
        assert len(asked) == 1
        assert result.is_error
        assert "handtools approve" in text(result)
        pending = (await client.read_resource("handtools://pending")).contents[0].text
    assert json.loads(pending)[0]["call_id"] == result.meta[CALL_ID]
    assert not (folder / ".envrc").exists()


@pytest.mark.parametrize(
    ("unattended", "said"), [("ask", "handtools approve"), ("deny", "No user is available"), ("allow", "")]
)
async def test_without_anyone_to_ask_the_policy_answers(on_stdio, era, folder, unattended, said):
    async with on_stdio(era, f"unattended={unattended}") as client:
        result = await client.call_tool("write", {"path": ".envrc", "content": "x\n"})
    assert result.is_error == (unattended != "allow")
    assert said in text(result)
    assert (folder / ".envrc").exists() == (unattended == "allow")


async def test_a_forged_answer_to_another_call_runs_nothing(on_stdio, folder):
    async with on_stdio(CURRENT, elicitation_callback=answering("once")) as client:
        raw = await client.session.call_tool(
            "write", {"path": ".envrc", "content": "x\n"}, allow_input_required=True
        )
        yes = {"approval": ElicitResult(action="accept", content={"decision": "once"})}
        for name, args in (("write", {"path": ".envrc", "content": "y\n"}), ("edit", {})):
            forged = await client.session.call_tool(
                name, args, input_responses=yes, request_state=raw.request_state
            )
            assert forged.is_error
            assert "another call" in text(forged)
        unknown = await client.session.call_tool(
            "write", {"path": "b", "content": ""}, input_responses=yes, request_state="../../etc"
        )
        assert unknown.is_error
    assert not (folder / ".envrc").exists()


async def test_the_same_id_never_runs_twice(on_stdio, era, folder, tmp_path):
    marks = tmp_path / "marks"
    async with on_stdio(era) as client, anyio.create_task_group() as group:
        for _ in range(5):
            meta = {CALL_ID: "the-one-call"}
            args = {"path": str(marks), "seconds": 0.2}

            async def call(meta=meta, args=args):
                assert text(await client.call_tool("mark", args, meta=meta)) == "marked"

            group.start_soon(call)
    async with on_stdio(era) as client:  # another process: what was recorded is given back
        assert text(await client.call_tool("mark", args, meta=meta)) == "marked"
    assert marks.read_text() == "ran\n"


async def test_request_ids_of_another_process_are_other_calls(on_stdio, era, tmp_path):
    marks = tmp_path / "marks"
    for _ in range(2):
        async with on_stdio(era) as client:
            await client.call_tool("mark", {"path": str(marks)})
    assert marks.read_text() == "ran\nran\n"


async def test_files_are_resources_and_rules_hold_for_them(on_stdio, era, folder):
    (folder / "a b.txt").write_text("text\n")
    (folder / ".env").write_text("SECRET=1\n")
    async with on_stdio(era) as client:
        read = await client.read_resource("handtools://file/a%20b.txt")
        assert read.contents[0].text == "text\n"
        for path in (".env", "../state/x", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "none.txt"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"handtools://file/{path}")
            assert "SECRET" not in str(refused.value)


async def test_prompts_are_filled_from_the_record(on_stdio, era):
    async with on_stdio(era) as client:
        await client.call_tool("write", {"path": "new.txt", "content": "x\n"})
        await client.call_tool("write", {"path": "gone.txt", "content": "x\n"})
        await client.call_tool("undo", {})
        await client.call_tool("write", {"path": ".envrc", "content": "x\n"})
        await client.call_tool("edit", {"path": "new.txt", "old_string": "none", "new_string": "x"})
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"review", "pending"}
        review = await client.get_prompt("review")
    listed = [
        line.split(" ", 2)[2]
        for line in review.messages[0].content.text.splitlines()
        if line.startswith("- ")
    ]
    assert listed == ["undo -gone.txt (ok)", "write +gone.txt (ok, undone)", "write +new.txt (ok)"]


async def test_tools_keep_to_the_roots_of_the_client(on_stdio, folder, era):
    for name in ("app", "other"):
        (folder / name).mkdir()
        (folder / name / "f.txt").write_text("text\n")

    async def roots(_context):
        return ListRootsResult(roots=[Root(uri=(folder / "app").as_uri())])

    async with on_stdio(era, list_roots_callback=roots) as client:
        assert not (await client.call_tool("read", {"path": "app/f.txt"})).is_error
        outside = await client.call_tool("read", {"path": "other/f.txt"})
    assert outside.is_error
    assert "app" in text(outside)


async def test_a_root_deep_in_the_workspace_opens_nothing_beside_it(on_stdio, folder, era):
    for name in (
        "packages/app/f.txt",
        "packages/other/f.txt",
        "packages/f.txt",
        "packages/packages/app/f.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")

    async def roots(_context):
        return ListRootsResult(roots=[Root(uri=(folder / "packages" / "app").as_uri())])

    async with on_stdio(era, list_roots_callback=roots) as client:
        assert not (await client.call_tool("read", {"path": "packages/app/f.txt"})).is_error
        assert "app" in text(await client.call_tool("list", {"path": "packages"}))
        assert text(await client.call_tool("list", {})).startswith("packages/")
        found = text(await client.call_tool("grep", {"pattern": "text"}))
        assert "packages/app/f.txt" in found
        assert "1 of 1 match" in found
        for path in ("packages/other/f.txt", "packages/f.txt", "packages/packages/app/f.txt"):
            assert (await client.call_tool("read", {"path": path})).is_error, path


async def test_the_workspace_of_the_command_line_holds_when_roots_are_elsewhere(on_stdio, folder, era):
    (folder / "f.txt").write_text("text\n")

    async def roots(_context):
        return ListRootsResult(roots=[Root(uri=Path("/somewhere/else").as_uri())])

    async with on_stdio(era, list_roots_callback=roots) as client:
        assert not (await client.call_tool("read", {"path": "f.txt"})).is_error
