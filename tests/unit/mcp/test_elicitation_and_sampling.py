"""Approvals as forms, and what people put into them."""

import pytest

from handtools import Approval, Reply
from handtools.mcp.elicitation_and_sampling import (
    approval_form,
    approval_question,
    can_elicit,
    input_required_result,
    reply_from_form,
)

APPROVAL = Approval(
    call_id="c1",
    title="write wants to change .envrc",
    preview="+x\n" * 5_000,
    rule="ask by rule `protected`",
    fingerprint="f",
    remembered="change .envrc (protected)",
)


def test_a_question_shows_what_is_asked_and_stays_short():
    asked = approval_question(APPROVAL)
    assert asked.startswith(APPROVAL.title)
    assert "protected" in asked
    assert len(asked) < 8_000
    asked.encode()


def test_the_form_is_flat():
    fields = approval_form()["properties"].values()
    assert all(field["type"] == "string" for field in fields)


def test_the_state_of_a_question_names_the_call_and_what_it_asks():
    assert input_required_result(APPROVAL)["requestState"] == "c1.f"


@pytest.mark.parametrize(
    ("action", "content", "said"),
    [
        ("accept", {"decision": "once"}, Reply(allow=True)),
        ("accept", {"decision": "project"}, Reply(allow=True, remember="project")),
        ("accept", {"decision": "no", "message": "later"}, Reply(allow=False, message="later")),
        ("accept", {"decision": "yes!"}, Reply(allow=False)),
        ("accept", {}, Reply(allow=False)),
        ("accept", None, Reply(allow=False)),
        ("decline", None, Reply(allow=False)),
        ("cancel", None, None),
        (None, None, None),
    ],
)
def test_only_a_clear_yes_is_a_yes(action, content, said):
    assert reply_from_form({"action": action, "content": content}) == said


@pytest.mark.parametrize(
    ("elicitation", "able"),
    [
        ({}, True),
        ({"form": {}, "url": {}}, True),
        ({"url": {}}, False),
    ],
)
def test_a_client_is_asked_only_with_forms_it_can_show(elicitation, able):
    assert can_elicit({"elicitation": elicitation}) is able
    assert not can_elicit({})
