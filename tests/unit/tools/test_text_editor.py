"""Text editor: the vendor's tool, edition by edition."""

from datetime import UTC, datetime

import pytest

from handtools import Change, UsageError
from handtools.core.tool import json_schema
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.read import read
from handtools.tools.text_editor import text_editor

FIRST, SECOND, THIRD = "text_editor_20250124", "text_editor_20250429", "text_editor_20250728"
FILES = {"a.py": b"one\ntwo\nthree\n", "src/b/c/d.py": b"x\n", "src/e.py": b"y\n", ".hidden": b"z\n"}


async def ask(command, files=None, edition=THIRD, **args):
    tool = text_editor(edition)
    box = memory_toolbox(FILES if files is None else files, tools=[tool, read])
    result = await box.call(tool.name, {"command": command, "path": "a.py", **args})
    return result, box.workspace.files.files


@pytest.mark.parametrize(
    ("edition", "name", "undoes"),
    [
        (FIRST, "str_replace_editor", True),
        (SECOND, "str_replace_based_edit_tool", False),
        (THIRD, "str_replace_based_edit_tool", False),
    ],
)
def test_each_edition_has_its_name_and_its_commands(edition, name, undoes):
    tool = text_editor(edition)
    assert tool.name == name
    commands = json_schema(tool.params)["properties"]["command"]["enum"]
    assert ("undo_edit" in commands) == undoes
    assert tool.prompt.startswith("View, create and edit")


@pytest.mark.claim("text_editor.view")
async def test_a_file_is_viewed_with_line_numbers_whole_or_in_part():
    whole, _ = await ask("view")
    assert "1\tone\n2\ttwo\n3\tthree\n" in whole.text
    part, _ = await ask("view", view_range=[2, 2])
    assert "\ttwo" in part.text
    assert "one" not in part.text
    rest, _ = await ask("view", view_range=[2, -1])
    assert "3\tthree" in rest.text


@pytest.mark.claim("text_editor.view")
async def test_a_folder_is_viewed_two_levels_deep_without_hidden_items():
    shown, _ = await ask("view", path=".")
    rows = shown.text.splitlines()[1:]
    assert rows == [".", "./a.py", "./src/", "./src/b/", "./src/e.py"]


@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert"])
async def test_an_empty_path_is_an_error(command):
    refused, _ = await ask(command, path="")
    assert refused.fault.code == "invalid_input"
    assert "`path` is empty" in refused.text


@pytest.mark.parametrize("view_range", [[0, 2], [4, 4], [2, 1], [1, 9], [1], [1, 2, 3]])
async def test_a_range_outside_the_file_is_refused(view_range):
    refused, _ = await ask("view", view_range=view_range)
    assert refused.fault.code == "invalid_input"
    assert "view_range" in refused.text


async def test_a_range_of_a_folder_is_refused():
    refused, _ = await ask("view", path="src", view_range=[1, 2])
    assert refused.fault.code == "invalid_input"


async def test_a_view_is_cut_at_max_characters_and_says_so():
    tool = text_editor(THIRD, max_characters=12)
    box = memory_toolbox(FILES, tools=[tool])
    shown = await box.call(tool.name, {"command": "view", "path": "a.py"})
    assert "one" in shown.text
    assert "three" not in shown.text
    assert "view_range" in shown.text


@pytest.mark.parametrize("edition", [FIRST, SECOND])
def test_max_characters_is_refused_where_the_edition_lacks_it(edition):
    with pytest.raises(UsageError):
        text_editor(edition, max_characters=100)


@pytest.mark.claim("text_editor.create")
async def test_create_makes_a_file_and_never_overwrites_one():
    done, files = await ask("create", path="new/f.py", file_text="hi\n")
    assert done.ok, done.text
    assert files["new/f.py"] == b"hi\n"
    refused, files = await ask("create", file_text="hi\n")
    assert refused.fault.code == "already_exists"
    assert "File already exists at: a.py" in refused.text
    assert files == FILES


@pytest.mark.claim("text_editor.unique")
async def test_text_is_replaced_where_it_stands_verbatim_and_once():
    done, files = await ask("str_replace", old_str="two", new_str="2")
    assert done.ok, done.text
    assert files["a.py"] == b"one\n2\nthree\n"
    assert "2\t2\n" in done.text
    gone, files = await ask("str_replace", old_str="two\n")
    assert gone.ok
    assert files["a.py"] == b"one\nthree\n"


@pytest.mark.claim("text_editor.unique")
async def test_text_that_is_there_twice_or_not_at_all_is_refused():
    many, files = await ask("str_replace", {"a.py": b"x\nx\n"}, old_str="x", new_str="y")
    assert many.fault.code == "many_matches"
    assert many.text.startswith("No replacement was performed.")
    assert files["a.py"] == b"x\nx\n"
    none, _ = await ask("str_replace", old_str="four", new_str="y")
    assert none.fault.code == "no_match"
    assert "old_string" not in none.text


async def test_text_that_differs_in_white_space_is_refused_with_the_text_to_send():
    files = {"a.py": b"if ready:\n\tvalue = compute(1)\n"}
    refused, after = await ask(
        "str_replace", files, old_str="if ready:\n    value = compute(1)", new_str="x"
    )
    assert refused.fault.code == "no_match"
    assert "verbatim" in refused.text
    assert "```\nif ready:\n\tvalue = compute(1)\n```" in refused.text
    assert after == files


async def test_a_part_of_a_word_is_replaced_as_the_vendor_means_it():
    done, files = await ask(
        "str_replace", {"a.py": b"timeout=10\n"}, old_str="timeout=1", new_str="timeout=2"
    )
    assert done.ok, done.text
    assert files["a.py"] == b"timeout=20\n"


@pytest.mark.claim("text_editor.insert")
@pytest.mark.parametrize(
    ("line", "after"),
    [(0, b"new\none\ntwo\nthree\n"), (1, b"one\nnew\ntwo\nthree\n"), (3, b"one\ntwo\nthree\nnew\n")],
)
@pytest.mark.parametrize("name", ["new_str", "insert_text"])
@pytest.mark.parametrize("edition", [FIRST, SECOND, THIRD])
async def test_text_is_inserted_after_the_line(line, after, name, edition):
    done, files = await ask("insert", edition=edition, insert_line=line, **{name: "new"})
    assert done.ok, done.text
    assert files["a.py"] == after


@pytest.mark.parametrize("line", [-1, 4])
async def test_an_insertion_outside_the_file_is_refused(line):
    refused, files = await ask("insert", insert_line=line, insert_text="new")
    assert refused.fault.code == "invalid_input"
    assert "[0, 3]" in refused.text
    assert files == FILES


@pytest.mark.parametrize(
    ("command", "missing"), [("create", "file_text"), ("str_replace", "old_str"), ("insert", "insert_line")]
)
async def test_a_missing_parameter_is_named(command, missing):
    refused, _ = await ask(command)
    assert refused.fault.code == "invalid_input"
    assert f"`{missing}`" in refused.text


async def test_undo_edit_takes_back_one_edit_after_the_other():
    tool = text_editor(FIRST)
    box = memory_toolbox({"a.py": b"one\n"}, tools=[tool])

    async def run(command, **args):
        return await box.call(tool.name, {"command": command, "path": "a.py", **args})

    began = datetime.now(UTC)
    assert (await run("str_replace", old_str="one", new_str="two")).ok
    between = datetime.now(UTC)
    assert (await run("insert", insert_line=0, new_str="top")).ok
    back = await run("undo_edit")
    assert box.workspace.files.files["a.py"] == b"two\n"
    assert "1\ttwo\n" in back.text
    assert (back.details.file_content, back.details.changes_made) == ("two\n", True)
    assert between <= back.details.edited_at <= datetime.now(UTC)
    assert f"{back.details.edited_at:%Y-%m-%d %H:%M:%S} UTC" in back.text
    assert began <= (await run("undo_edit")).details.edited_at <= between
    assert box.workspace.files.files["a.py"] == b"one\n"
    nothing = await run("undo_edit")
    assert nothing.fault.code == "nothing_to_undo"
    assert "No edit history found" in nothing.text


async def test_undo_edit_keeps_a_file_that_somebody_changed_elsewhere_since():
    tool = text_editor(FIRST)
    box = memory_toolbox({"a.py": b"one\n\n\n\n\nlast\n"}, tools=[tool])
    args = {"command": "str_replace", "path": "a.py", "old_str": "one", "new_str": "two"}
    assert (await box.call(tool.name, args)).ok
    files, theirs = box.workspace.files, b"two\n\n\n\n\nmine\n"
    files.perform(files.plan([Change.of("a.py", before=files.files["a.py"], after=theirs)]))
    refused = await box.call(tool.name, {"command": "undo_edit", "path": "a.py"})
    assert "changed since" in refused.text
    assert files.files["a.py"] == theirs


async def test_undo_edit_of_a_creation_says_that_the_file_is_gone():
    tool = text_editor(FIRST)
    box = memory_toolbox({}, tools=[tool])
    await box.call(tool.name, {"command": "create", "path": "new/a.py", "file_text": "x\n"})
    back = await box.call(tool.name, {"command": "undo_edit", "path": "new/a.py"})
    assert "it had created the file" in back.text
    assert back.details.file_content is None
    assert box.workspace.files.facts("new") is None


@pytest.mark.parametrize("edition", [FIRST, SECOND, THIRD])
async def test_the_details_hold_the_file_and_the_lengths_while_the_text_stays_short(edition):
    files = {"a.py": b"".join(b"line %d\n" % n for n in range(100))}
    done, after = await ask("str_replace", files, edition, old_str="line 50\n", new_str="fifty\n")
    assert done.details.file_content == after["a.py"].decode()
    assert (done.details.old_length, done.details.new_length, done.details.changes_made) == (8, 6, True)
    assert "line 99" not in done.text
    made, _ = await ask("create", {}, edition, path="b.py", file_text="x\n")
    assert (made.details.file_content, made.details.new_length) == ("x\n", 2)
    put, after = await ask("insert", files, edition, insert_line=1, insert_text="new")
    assert put.details.file_content == after["a.py"].decode()
    seen, _ = await ask("view", files, edition, view_range=[2, 3])
    assert (seen.details.file_content, seen.details.changes_made) == ("line 1\nline 2\n", False)


@pytest.mark.parametrize("edition", [FIRST, SECOND, THIRD])
def test_a_definition_names_the_vendors_type(edition):
    box = memory_toolbox({}, tools=[text_editor(edition), read])
    types = {definition.name: definition.type for definition in box.definitions()}
    assert types == {text_editor(edition).name: edition, "read": ""}


@pytest.mark.parametrize("edition", [SECOND, THIRD])
async def test_undo_edit_is_refused_by_the_editions_that_lack_it(edition):
    refused, _ = await ask("undo_edit", edition=edition)
    assert refused.fault.code == "invalid_input"
    assert "command" in refused.text


async def test_a_missing_file_is_refused():
    refused, _ = await ask("view", path="nowhere.py")
    assert refused.fault.code == "not_found"


def test_an_edition_that_does_not_exist_is_named_to_the_programmer():
    with pytest.raises(UsageError, match="text_editor_2099"):
        text_editor("text_editor_2099")


@pytest.mark.parametrize(("old", "said"), [("one", "Add surrounding text"), ("", "use create")])
async def test_hints_name_only_what_the_edition_has(old, said):
    refused, _ = await ask("str_replace", {"a.py": b"one\none\n"}, old_str=old, new_str="x")
    assert said in refused.text
    assert "replace all" not in refused.text
    assert "write it" not in refused.text
