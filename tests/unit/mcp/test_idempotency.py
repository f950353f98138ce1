"""Which call a request is."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.mcp.idempotency import SAFE_CALL_ID_PATTERN, TOOL_USE_ID_KEY, derive_call_id
from handtools.mcp.tool_and_result_json import CALL_ID_META_KEY

ARGS = {"path": "a"}


def test_the_clients_own_id_is_kept():
    assert derive_call_id({CALL_ID_META_KEY: "my-call_1"}, 7, "s", "read", ARGS) == ("my-call_1", True)


@given(st.text(min_size=1))
def test_no_id_of_a_client_leaves_the_folder_of_outputs(named):
    call_id, chosen = derive_call_id({CALL_ID_META_KEY: named}, 7, "s", "read", ARGS)
    assert chosen
    assert SAFE_CALL_ID_PATTERN.fullmatch(call_id)
    assert derive_call_id({CALL_ID_META_KEY: named}, 8, "t", "edit", {}).call_id == call_id


def test_a_request_sent_again_in_its_session_is_the_same_call():
    first = derive_call_id(None, 7, "s", "read", ARGS)
    assert derive_call_id({}, 7, "s", "read", dict(ARGS)) == first
    others = [
        (8, "s", "read", ARGS),
        (7, "t", "read", ARGS),
        (7, "s", "edit", ARGS),
        (7, "s", "read", {}),
        ("7", "s", "read", ARGS),
    ]
    assert first not in [derive_call_id(None, *other) for other in others]


def test_the_models_own_id_counts_across_sessions():
    meta = {TOOL_USE_ID_KEY: "toolu_1"}
    assert derive_call_id(meta, 1, "s", "read", ARGS) == derive_call_id(meta, 2, "t", "read", ARGS)


def test_without_a_session_every_request_is_a_call_of_its_own():
    assert derive_call_id(None, 7, "", "read", ARGS) != derive_call_id(None, 7, "", "read", ARGS)
    assert derive_call_id(None, None, "s", "read", ARGS) != derive_call_id(None, None, "s", "read", ARGS)
