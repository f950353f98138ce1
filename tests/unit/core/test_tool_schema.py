"""Schemas in the dialects that providers accept."""

from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from handtools.core.tool import json_schema


class Inner(BaseModel):
    title: str = Field(description="A field that is called like a keyword.")


class Outer(BaseModel):
    """Words that are not for the model."""

    path: str = Field(description="A path.", min_length=1)
    limit: int | None = Field(None, ge=1, description="At most.")
    kind: Literal["a", "b"] = Field("a", description="Which.")
    inner: list[Inner] = Field([], description="More.")


class Defaults(BaseModel):
    nothing: str = Field("", title="For people.")
    here: str = "."
    no: bool = False
    yes: bool = True
    first: Literal["a", "b"] = "a"
    second: Literal["a", "b"] = "b"
    count: int = Field(5, ge=1, le=9)
    named: dict[str, int] = {}
    either: Literal["a", "b"] | None = "b"


def test_plain_has_no_references_titles_or_nulls_and_keeps_a_field_called_title():
    plain = json_schema(Outer)
    assert plain["required"] == ["path"]
    assert plain["properties"]["limit"] == {"type": "integer", "description": "At most."}
    assert plain["properties"]["inner"]["items"]["properties"]["title"]["type"] == "string"
    assert "$" not in str(plain)
    assert "description" not in plain


def test_limits_and_evident_defaults_are_left_out_and_others_are_told():
    assert json_schema(Defaults)["properties"] == {
        "nothing": {"type": "string"},
        "here": {"type": "string"},
        "no": {"type": "boolean"},
        "yes": {"type": "boolean", "default": True},
        "first": {"type": "string", "enum": ["a", "b"]},
        "second": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "count": {"type": "integer", "default": 5},
        "named": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
        "either": {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}], "default": "b"},
    }


def test_parameters_called_like_keywords_stay():
    names = ("default", "enum", "minimum", "pattern", "title", "additionalProperties")
    called = create_model("Called", **dict.fromkeys(names, (Any, False)))
    assert set(json_schema(called)["properties"]) == set(names)


def test_strict_requires_everything_and_makes_the_optional_nullable():
    strict = json_schema(Outer, "strict")
    assert strict["required"] == ["path", "limit", "kind", "inner"]
    assert strict["additionalProperties"] is False
    assert {"type": "null"} in strict["properties"]["limit"]["anyOf"]
    assert "minLength" not in strict["properties"]["path"]
    assert strict["properties"]["inner"]["anyOf"][0]["items"]["additionalProperties"] is False


def test_gemini_keeps_only_its_own_keywords():
    gemini = json_schema(Outer, "gemini")
    assert "default" not in str(gemini)
    assert "minimum" not in str(gemini)
    assert gemini["properties"]["kind"]["enum"] == ["a", "b"]
