"""Calls and results survive JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from handtools import Approval, Call, Result
from handtools.core.call import call_from_json, call_to_json
from handtools.core.changes import RecordedChanges, TouchedPath
from handtools.core.result import (
    CallFailure,
    CallUsage,
    Document,
    Image,
    SpilledOutput,
    Text,
    result_from_json,
    result_to_json,
)

text = st.text(max_size=20)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), text),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=8,
)
metadata = st.dictionaries(text, json_values, max_size=3)


class Details(BaseModel):
    words: list[str]


blocks = st.one_of(
    st.builds(Text, text),
    st.builds(Image, st.binary(max_size=9), text),
    st.builds(Document, st.binary(), text, text),
)
approvals = st.builds(
    Approval, call_id=text, title=text, preview=text, rule=text, fingerprint=text, remembered=text, agent=text,
    session=text, metadata=metadata,
)  # fmt: skip
changes = st.builds(
    RecordedChanges,
    st.integers(0, 9),
    st.lists(st.builds(TouchedPath, text, st.sampled_from(["created", "changed", "deleted"]))).map(tuple),
    st.sampled_from(["declared", "overlay", "scan", "none"]),
    st.lists(text).map(tuple),
)
results = st.builds(
    Result,
    st.lists(blocks, max_size=3),
    st.one_of(st.none(), st.builds(Details)),
    status=st.sampled_from(["ok", "error", "denied", "cancelled", "timeout", "pending"]),
    fault=st.one_of(st.none(), st.builds(CallFailure, text, text, text)),
    changes=st.one_of(st.none(), changes),
    spill=st.one_of(st.none(), st.builds(SpilledOutput, text, st.integers(), st.integers())),
    usage=st.builds(CallUsage, st.floats(0, 9), st.integers(), st.integers()),
    request=st.one_of(st.none(), approvals),
)


@given(results)
def test_a_result_survives_json(result):
    assert result_from_json(json.loads(json.dumps(result_to_json(result))), Details) == result


variables = st.dictionaries(st.from_regex("[A-Z_]{1,9}", fullmatch=True), st.text("ab\n'\"$ é"), max_size=3)


@given(
    st.builds(
        Call,
        tool=text,
        args=st.dictionaries(text, json_values, max_size=3),
        id=text.filter(bool),
        turn=text,
        metadata=metadata,
        env=variables,
    )
)
def test_a_call_survives_json(call):
    assert call_from_json(json.loads(json.dumps(call_to_json(call)))) == call
