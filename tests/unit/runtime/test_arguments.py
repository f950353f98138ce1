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
