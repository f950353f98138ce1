"""Handle an approval request after its call has ended as pending: get a reply, claim it, await the outcome.

The first reply counts, no matter which process it comes from. The executor resumes and withdraws calls.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
from anyio import to_thread

from handtools.core.approval import Approval, Approver, Reply
from handtools.core.result import Result
from handtools.runtime.journal import Journal
from handtools.runtime.journal.approval_answers import AnswerClaim
from handtools.runtime.journal.calls import PendingCall
from handtools.runtime.journal.running_calls import HEARTBEAT_SECONDS

ANSWER_POLL_SECONDS = 0.1
"""Interval in seconds at which a process checks for a reply given in another process."""


def answers_request(reply: Reply, approval: Approval) -> bool:
    """Whether a reply is for this request and not for an earlier one of the same call."""
    if reply.fingerprint:
        return reply.fingerprint == approval.fingerprint
    return not approval.again


class ClaimedReply(NamedTuple):
    """The pending call that a reply is for, and which process runs it."""

    pending: PendingCall | None
    """None if the call is not pending."""
    claim: AnswerClaim | None
    """None if the call is not pending, or the reply is for an outdated request."""


def claim_reply(journal: Journal, call_id: str, reply: Reply) -> ClaimedReply:
    """Reply to a pending call, unless it has a reply already or the reply is for an earlier request."""
    pending = journal.calls.suspended(call_id)
    if pending is None or not answers_request(reply, pending.approval):
        return ClaimedReply(pending, None)
    reply = replace(reply, fingerprint=pending.approval.fingerprint)
    return ClaimedReply(pending, journal.answers.claim(call_id, reply))


async def ask_until_settled(
    result: Result[Any], approver: Approver, resume: Callable[[str, Reply], Awaitable[Result[Any]]]
) -> Result[Any]:
    """While a result is pending, ask the approver and resume the call; without a reply it stays pending."""
    while (approval := result.request) is not None:
        reply = await approver(approval)
        if reply is None:
            break
        known = reply.fingerprint or approval.fingerprint
        result = await resume(approval.call_id, replace(reply, fingerprint=known))
    return result


async def wait_for_reply(journal: Journal, call_id: str, *, only_if_watched: bool) -> Reply | None:
    """Wait until the user replies to a pending call in another process; the caller then resumes it.

    None if the call was answered and ended in the meantime. With `only_if_watched`, also None as soon as no
    `watch` or `view` is open.
    """
    answers = journal.answers
    if only_if_watched and not answers.is_watched():
        return None
    try:
        while True:
            await to_thread.run_sync(answers.wait, call_id)
            until = time.monotonic() + HEARTBEAT_SECONDS
            while time.monotonic() < until:
                if reply := answers.given(call_id):
                    return reply
                await anyio.sleep(ANSWER_POLL_SECONDS)
            if await to_thread.run_sync(journal.calls.suspended, call_id) is None:
                return None
            if only_if_watched and not answers.is_watched():
                return None
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(answers.stop_waiting, call_id)


async def wait_while_answered(journal: Journal, call_id: str) -> None:
    """Wait while another process resumes a call, until the call ends, is pending again, or that process dies."""
    while call_id in await to_thread.run_sync(journal.answers.answered):  # noqa: ASYNC110 - another process
        await anyio.sleep(ANSWER_POLL_SECONDS)
