"""Calls, results and approvals as plain JSON values: for the journal, for other processes, for logs."""

import json
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from handtools.core.approval import Approval
from handtools.core.call import Call
from handtools.core.changes import Changes, Touched
from handtools.core.content import block_from_json, block_to_json
from handtools.core.result import Fault, Result, Spill, Usage


def call_to_json(call: Call) -> dict[str, Any]:
    """A call as JSON values."""
    return asdict(call) | {"args": dict(call.args)}


def call_from_json(value: dict[str, Any]) -> Call:
    """The inverse of `call_to_json`."""
    return Call(**value)


def approval_to_json(approval: Approval) -> dict[str, Any]:
    """An approval as JSON values."""
    return asdict(approval)


def result_to_json(result: Result[Any]) -> dict[str, Any]:
    """A result as JSON values; what is empty is left out."""
    return _said(result) | {name: asdict(fact) for name, fact in _facts(result).items()}


def result_to_bytes(result: Result[Any]) -> bytes:
    """The same as one line of JSON, written straight from the values."""
    try:
        return to_json(_said(result) | _facts(result))
    except PydanticSerializationError:
        # Details may quote bytes that are no character; only the slower encoder can write those down.
        return json.dumps(result_to_json(result)).encode()


def _said(result: Result[Any]) -> dict[str, Any]:
    details = result.details
    return {
        "status": result.status,
        "content": [block_to_json(block) for block in result.content],
        "details": details.model_dump(mode="json") if isinstance(details, BaseModel) else details,
    }


def _facts(result: Result[Any]) -> dict[str, Any]:
    every = ("usage", "fault", "changes", "spill", "request")
    return {name: fact for name in every if (fact := getattr(result, name)) is not None}


def result_from_json(value: dict[str, Any], details: type[BaseModel] | None = None) -> Result[Any]:
    """The inverse of `result_to_json`; without a model the details stay JSON values."""
    given = value["details"]
    if details is not None and given is not None:
        given = details.model_validate(given)
    changes = value.get("changes")
    return Result(
        [block_from_json(block) for block in value["content"]],
        given,
        status=value["status"],
        fault=Fault(**value["fault"]) if "fault" in value else None,
        changes=_changes(changes) if changes else None,
        spill=Spill(**value["spill"]) if "spill" in value else None,
        usage=Usage(**value["usage"]),
        request=Approval(**value["request"]) if "request" in value else None,
    )


def _changes(value: dict[str, Any]) -> Changes:
    touched = tuple(Touched(**item) for item in value["touched"])
    return Changes(value["entry"], touched, value["coverage"], tuple(value["omitted"]))
