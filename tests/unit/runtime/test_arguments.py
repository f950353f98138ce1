"""Arguments under the names that other tools have for them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from handtools import Context, Result, tool
from handtools.core.errors import InvalidInput
from handtools.core.tool import json_schema
from handtools.runtime.arguments import (
    PARAMETER_ALIASES,
    TOOL_ALIASES,
    resolve_aliases,
    validate_arguments,
    without_nulls,
)
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.edit import edit
from handtools.tools.multi_edit import multi_edit
from tests.shape.test_aliases import all_tools

pytestmark = pytest.mark.anyio
TOOLS = all_tools()
ROWS = [
    (name, parameter, alias)
    for name, row in PARAMETER_ALIASES.items()
    for parameter, aliases in row.items()
    for alias in aliases
]


class FarParams(BaseModel):
    """Of a tool that is not ours."""

    from_: str = Field(alias="from")
    file_path: str = ""


@tool
async def far(ctx: Context, params: FarParams) -> Result[FarParams]:
    """Go far."""
    return Result("gone", params)


@pytest.mark.parametrize(("name", "parameter", "alias"), ROWS)
def test_each_name_means_its_parameter_in_any_spelling(name, parameter, alias):
    params = TOOLS[name].params
    if parameter not in params.model_fields:  # of an edit inside `multi_edit`
        params = params.model_fields["edits"].annotation.__args__[0]
    head, *rest = alias.split("_")
    camel = head + "".join(word.capitalize() for word in rest)
    for spelling in (alias, camel, alias.replace("_", "-")):
        assert resolve_aliases(name, params, {spelling: "x"}) == {parameter: "x"}


async def test_a_call_in_another_tools_words_is_answered_as_in_ours():
    box = memory_toolbox({"a.py": b"one\n"})
    theirs = await box.call("edit", {"filePath": "a.py", "oldString": "one", "newString": "two"})
    assert theirs.ok, theirs.text
    back = await memory_toolbox({"a.py": b"one\n"}).call(
        "edit", {"path": "a.py", "old_string": "one", "new_string": "two"}
    )
    assert theirs.text == back.text
    assert "filePath" not in theirs.text


def test_the_edits_of_a_list_are_understood_too_also_as_json_text():
    edits = [{"oldText": "a", "newText": "b"}, {"file_path": "b.py", "old_str": "c", "new_str": "d"}]
    for given_edits in (edits, json.dumps(edits)):
        params = validate_arguments(multi_edit, {"file_path": "a.py", "edits": given_edits})
        assert [(one.path, one.old_string, one.new_string) for one in params.edits] == [
            (None, "a", "b"),
            ("b.py", "c", "d"),
        ]


def test_two_names_for_one_thing_must_agree():
    same = {"path": "a", "file_path": "a", "old_string": "x", "new_string": "y"}
    assert validate_arguments(edit, same).path == "a"
    with pytest.raises(InvalidInput, match="`file_path` is not a parameter"):
        validate_arguments(edit, same | {"file_path": "b"})


def test_a_tools_own_names_come_first():
    params = validate_arguments(far, {"from": "here", "file_path": "a"})
    assert (params.from_, params.file_path) == ("here", "a")


def test_no_alias_is_advertised():
    told = json.dumps([one.input_schema for one in memory_toolbox().definitions()])
    assert '"file_path"' not in told
    assert '"cmd"' not in told


@given(st.dictionaries(st.sampled_from([*TOOLS["read"].params.model_fields, "x", "y"]), st.integers()))
def test_arguments_in_our_words_stay_as_they_are(args):
    assert resolve_aliases("read", TOOLS["read"].params, args) == args


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_null_for_what_may_be_left_out_is_taken_as_left_out(name):
    """As the strict dialect has it: each property is there, and null stands for none."""
    offered = json_schema(TOOLS[name].params, "strict")["properties"]
    optional = {key for key, schema in offered.items() if {"type": "null"} in schema.get("anyOf", ())}
    nulls = dict.fromkeys(optional)
    assert without_nulls(TOOLS[name].params, nulls) == {}


def test_nulls_inside_of_a_list_are_left_out_too_and_a_required_one_is_an_error():
    edits = [{"old_string": "a", "new_string": "b", "replace_all": None, "path": None}]
    taken = validate_arguments(multi_edit, {"path": "a.py", "edits": edits})
    assert taken == validate_arguments(
        multi_edit, {"path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}]}
    )
    with pytest.raises(InvalidInput, match="old_string"):
        validate_arguments(edit, {"path": "a.py", "old_string": None, "new_string": "b"})


@pytest.mark.parametrize("flag", ["ignore_case", "ignoreCase", "case_insensitive", "-i"])
async def test_grep_takes_the_flag_of_other_tools_for_any_case(flag):
    box = memory_toolbox({"a": b"Total\n"})
    found, not_found = [
        await box.call("grep", {"pattern": "total", flag: value}) for value in (True, False)
    ]
    assert found.details.hits, found.text
    assert not not_found.details.hits


@pytest.mark.parametrize("flag", ["literal", "fixed_strings", "fixedStrings"])
async def test_grep_takes_the_flag_of_other_tools_for_literal_text(flag):
    box = memory_toolbox({"a": b"f(x\n"})
    found = await box.call("grep", {"pattern": "f(x", flag: True})
    assert found.details.hits, found.text
    assert (await box.call("grep", {"pattern": "f.x", flag: False})).details.hits


async def test_a_flag_that_contradicts_our_own_is_refused():
    box = memory_toolbox({"a": b"x\n"})
    refused = await box.call("grep", {"pattern": "x", "case_sensitive": True, "ignore_case": True})
    assert "`ignore_case` is not a parameter" in refused.text


async def test_edit_takes_the_names_of_the_documents_and_names_write_for_a_whole_file():
    box = memory_toolbox({"a": b"one\n"})
    args = {"path": "a", "display_description": "why", "old_string": "one", "new_string": "two"}
    assert (await box.call("edit", {**args, "mode": "edit"})).ok
    refused = await box.call("edit", {"path": "a", "mode": "overwrite", "content": "three\n"})
    assert "`mode` is not a parameter; use `write` for a whole file." in refused.text
    assert "`content` is not a parameter; use `write` for a whole file." in refused.text
    wrote = await box.call("write", {"path": "a", "mode": "overwrite", "content": "three\n"})
    assert wrote.ok


@pytest.mark.parametrize("paths", [{"paths": "a.txt"}, {"file_path": "a.txt"}, {"path": "a.txt"}])
def test_one_string_is_a_list_of_one_string(paths):
    assert validate_arguments(TOOLS["attach"], paths).paths == ["a.txt"]
    assert validate_arguments(TOOLS["attach"], {"paths": '["a", "b"]'}).paths == ["a", "b"]


@pytest.mark.parametrize("names", [("old_string", "new_string"), ("oldText", "newText")])
def test_one_edit_may_come_without_its_list(names):
    params = validate_arguments(multi_edit, {"path": "a", **dict(zip(names, "xy", strict=True))})
    assert [(one.old_string, one.new_string) for one in params.edits] == [("x", "y")]


async def test_the_edit_of_pi_takes_its_texts_without_the_list_too():
    box = memory_toolbox({"a": b"one\n"})
    done = await box.in_dialect("pi").call("edit", {"path": "a", "oldText": "one", "newText": "two"})
    assert done.ok, done.text
    assert box.workspace.files.files["a"] == b"two\n"


def test_an_argument_with_alternatives_is_told_once_and_without_their_types():
    for name, args, told in (
        ("write", {"path": "a", "content": "", "mode": "edit"}, "`mode`: Input should be 'create' or"),
        ("grep", {"pattern": ""}, "`pattern`: String should have at least 1 character"),
        (
            "multi_edit",
            {"path": "a", "edits": [{"old_string": 1, "new_string": "x"}]},
            "`edits.0.old_string`",
        ),
    ):
        with pytest.raises(InvalidInput) as failure:
            validate_arguments(TOOLS[name], args)
        assert failure.value.message.startswith(told)
        assert failure.value.message.count("(given") == 1


@pytest.mark.parametrize(
    ("name", "ours"),
    [("ls", "list"), ("glob", "find"), ("view", "read"), ("View", "read"), ("redo", "undo")],
)
async def test_a_tool_of_another_product_is_answered_with_the_name_of_ours(name, ours):
    refused = await memory_toolbox().call(name, {})
    assert refused.fault.code == "unknown_tool"
    assert f"Did you mean {ours}?" in refused.text


async def test_a_foreign_name_of_a_tool_that_is_not_offered_lists_those_that_are():
    refused = await memory_toolbox().call("terminal", {})
    assert "Tools: read, grep," in refused.text
    assert "terminal" in TOOL_ALIASES["bash"]


def test_each_name_of_a_foreign_tool_means_one_of_ours_and_is_none_of_ours():
    names = [alias for aliases in TOOL_ALIASES.values() for alias in aliases]
    assert TOOL_ALIASES.keys() <= TOOLS.keys()
    assert len(names) == len(set(names))
    assert not TOOLS.keys() & set(names)
