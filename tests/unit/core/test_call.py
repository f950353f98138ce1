"""The handle that takes a call back."""

import pytest

from handtools import CancelToken
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
