"""The handle that takes a call back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Call, CancelToken, UsageError
from handtools.core.call import derived_call_id
from handtools.core.errors import Cancelled


def test_cancelling_calls_back_once_and_stays_cancelled():
    token, heard = CancelToken(), []
    token.on_cancel(lambda: heard.append("a"))
    token.cancel()
    token.cancel()
    assert heard == ["a"]
    assert token.cancelled
    with pytest.raises(Cancelled):
        token.check()


def test_registering_on_a_cancelled_token_fires_at_once():
    token, heard = CancelToken(), []
    token.cancel()
    token.on_cancel(lambda: heard.append("late"))
    assert heard == ["late"]


def test_a_failing_callback_stops_neither_the_others_nor_the_caller_and_is_logged(caplog):
    token, heard = CancelToken(), []

    def bad():
        raise RuntimeError("mine")

    token.on_cancel(bad)
    token.on_cancel(lambda: heard.append("b"))
    token.cancel()
    assert heard == ["b"]
    token.on_cancel(bad)
    assert [record.exc_info[1].args for record in caplog.records] == [("mine",), ("mine",)]


def test_an_unregistered_callback_is_not_called():
    token, heard = CancelToken(), []
    forget = token.on_cancel(lambda: heard.append("x"))
    forget()
    forget()
    token.cancel()
    assert heard == []
    token_two = CancelToken()
    token_two.check()


@pytest.mark.parametrize("name", ["id", "session", "turn", "agent", "owner", "parent"])
def test_a_name_that_no_record_can_hold_is_refused(name):
    with pytest.raises(UsageError, match="surrogate"):
        Call(tool="read", args={}, **{name: "half \ud83d"})


def test_an_empty_id_is_refused_as_it_would_be_the_id_of_every_call():
    with pytest.raises(UsageError, match="Leave it out"):
        Call(tool="read", args={}, id="")


@given(parts=st.lists(st.text() | st.integers() | st.dictionaries(st.text(), st.text()), max_size=4))
def test_an_id_made_of_the_same_parts_is_the_same_and_of_others_another(parts):
    assert derived_call_id(*parts) == derived_call_id(*parts)
    assert derived_call_id(*parts) != derived_call_id(*parts, "more")
    assert derived_call_id("s", "call_1", "edit", {"b": 1, "a": 2}) == derived_call_id(
        "s", "call_1", "edit", {"a": 2, "b": 1}
    )
