"""What `@tool` makes of a function."""

import pytest
from pydantic import BaseModel

from handtools import Context, Result, UsageError, tool
from handtools.tools.edit import EditDetails, EditParams, edit
from handtools.tools.read import MAX_BYTES, MAX_LINES, read


def test_name_types_and_prompt_come_from_the_function_and_its_page():
    assert (edit.name, edit.params, edit.details) == ("edit", EditParams, EditDetails)
    assert "exactly once" in edit.prompt
    assert "claim" not in edit.prompt
    assert "edit.unique" in edit.claims


def test_limits_are_filled_into_the_prompt():
    assert f"{MAX_LINES:,} lines" in read.prompt
    assert "{" not in read.prompt


def test_what_the_answers_tell_is_promised_but_not_in_the_prompt():
    assert "edit.bytes" in edit.claims
    assert "byte for byte" in edit.told_by_answers
    assert "byte for byte" not in edit.prompt
    assert "told by the result" not in edit.prompt + edit.told_by_answers
    assert f"{MAX_BYTES:,} bytes" in read.told_by_answers


def test_the_docstring_is_the_prompt_where_there_is_no_page():
    class Params(BaseModel):
        pass

    @tool(effects=("read",))
    async def ping(ctx: Context, params: Params) -> Result[Params]:
        """Say pong."""
        return Result("pong", params)

    assert ping.prompt == "Say pong."
    assert ping.reads_only


def test_a_function_without_models_is_refused_when_it_is_made():
    with pytest.raises(UsageError, match="pydantic"):

        @tool
        async def bad(ctx: Context, params: dict) -> Result[EditDetails]:
            """No model."""
