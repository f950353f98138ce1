"""Guidance: notes for agents come with the first file they are about, once in a session."""

from handtools.core.call import Call
from handtools.core.changes import Node
from handtools.runtime.after_call import ALL_GUIDES_BYTES, GUIDE_BYTES
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING, Toolbox, local_workspace

FILES = {
    "AGENTS.md": b"root notes",
    "shop/AGENTS.md": b"shop notes",
    "shop/tea/AGENTS.md": b"tea notes",
    "shop/tea/leaf.py": b"leaf = 1\n",
    "shop/cup.py": b"cup = 1\n",
    "top.py": b"top = 1\n",
}
SKILL = b"---\nname: brew\ndescription: How to brew.\npaths: '*.tea'\n---\nBoil.\n"


async def read(box, path, **facts):
    return (await box.call(Call(tool="read", args={"path": path}, **facts))).text


async def test_notes_above_a_file_come_with_it_outermost_first_and_with_their_paths():
    text = await read(memory_toolbox(FILES), "shop/tea/leaf.py")
    assert text.index("leaf = 1") < text.index("== shop/AGENTS.md") < text.index("shop notes")
    assert text.index("shop notes") < text.index("== shop/tea/AGENTS.md") < text.index("tea notes")
    assert "root notes" not in text


async def test_notes_are_told_once_in_a_session():
    box = memory_toolbox(FILES)
    assert "shop notes" in await read(box, "shop/cup.py", session="one")
    assert "shop notes" not in await read(box, "shop/tea/leaf.py", session="one")
    assert "shop notes" in await read(box, "shop/cup.py", session="two")


async def test_another_agent_of_the_session_is_told_too():
    box = memory_toolbox(FILES)
    await read(box, "shop/cup.py", session="one", agent="a")
    assert "shop notes" in await read(box, "shop/cup.py", session="one", agent="b")


async def test_a_resumed_session_is_not_told_again_and_a_new_run_without_a_name_is(tmp_path):
    (tmp_path / "work" / "shop").mkdir(parents=True)
    (tmp_path / "work" / "shop" / "AGENTS.md").write_text("shop notes")
    (tmp_path / "work" / "shop" / "cup.py").write_text("cup = 1\n")

    async def run(session):
        workspace = local_workspace(tmp_path / "work", state=tmp_path / "state")
        async with Toolbox(CODING, workspace=workspace) as box:
            return await read(box, "shop/cup.py", session=session)

    assert "shop notes" in await run("one")
    assert "shop notes" not in await run("one")
    assert "shop notes" in await run("default")
    assert "shop notes" in await run("default")


async def test_a_file_at_the_root_brings_nothing():
    assert (await read(memory_toolbox(FILES), "top.py")).lstrip() == "1\ttop = 1"


async def test_a_file_that_is_written_brings_the_notes_too():
    result = await memory_toolbox(FILES).call("write", {"path": "shop/new.py", "content": "x"})
    assert "shop notes" in result.text


async def test_notes_that_the_agent_read_itself_are_not_told_again():
    box = memory_toolbox(FILES)
    assert (await read(box, "shop/AGENTS.md")).count("shop notes") == 1
    assert "shop notes" not in await read(box, "shop/cup.py")


async def test_long_notes_are_shortened_and_say_so():
    box = memory_toolbox({"a/AGENTS.md": b"word " * 10_000, "a/x.py": b""})
    text = await read(box, "a/x.py")
    assert len(text) < GUIDE_BYTES + 500
    assert "`read` the rest of `a/AGENTS.md`" in text


async def test_notes_that_no_longer_fit_are_named():
    deep = {f"{'a/' * depth}AGENTS.md": b"x" * 5_000 for depth in (1, 2, 3)}
    text = await read(memory_toolbox(deep | {"a/a/a/x.py": b""}), "a/a/a/x.py")
    assert len(text) < ALL_GUIDES_BYTES + 1_000
    assert "`a/a/AGENTS.md` contains notes" in text
    assert "`a/a/a/AGENTS.md` contains notes" in text


async def test_notes_that_rules_hide_or_ask_about_are_not_told():
    hidden = memory_toolbox(FILES, policy=Policy(excluded=("shop/AGENTS.md",)))
    assert "shop notes" not in await read(hidden, "shop/cup.py")
    ask = Rule("ask", "ask", "A test asks.", paths=("AGENTS.md",))
    asked = memory_toolbox(FILES, policy=Policy(rules=(ask,)))
    assert "shop notes" not in await read(asked, "shop/cup.py")


async def test_notes_behind_a_link_to_a_private_file_are_not_told():
    files = {"a/AGENTS.md": Node("link", b"../.env"), ".env": b"KEY=secret", "a/x.py": b"x\n"}
    text = await read(memory_toolbox(files), "a/x.py")
    assert "secret" not in text


async def test_a_skill_about_a_file_is_mentioned_once():
    box = memory_toolbox({".agents/skills/brew/SKILL.md": SKILL, "a.tea": b"x\n", "b.tea": b"y\n"})
    first = await read(box, "a.tea", session="one")
    assert "(The skill `brew` is for files like `a.tea`: How to brew." in first
    assert ".agents/skills/brew/SKILL.md" in first
    assert "brew" not in await read(box, "b.tea", session="one")


async def test_a_call_that_failed_has_no_notes():
    box = memory_toolbox(FILES)
    result = await box.call("edit", {"path": "shop/cup.py", "old_string": "none", "new_string": "x"})
    assert "shop notes" not in result.text
    assert "shop notes" in await read(box, "shop/cup.py")


async def test_the_same_call_id_has_the_same_notes():
    box = memory_toolbox(FILES)
    assert await read(box, "shop/cup.py", id="x") == await read(box, "shop/cup.py", id="x")
