"""Verdicts: exact, done before, refused or wrong; and whether a retry by the refusal's own words succeeds."""

from dataclasses import replace
from typing import Literal

from bench.editbench.cases import Case
from bench.editbench.matchers import Answer, Matcher
from bench.editbench.retrying import retry

Verdict = Literal["exact", "done", "refused", "wrong"]
MAX_RETRIES = 2


def judge(case: Case, answer: Answer) -> Verdict:
    """What became of the case; for one that must be refused, any other text is wrong."""
    if answer.text is None:
        return "refused"
    if case.kind != "refuse" and answer.text in case.accept:
        return "exact"
    return "done" if answer.text == case.content else "wrong"


def is_right(case: Case, verdict: Verdict) -> bool:
    """Whether the case was to end so. What must be refused may be left alone in other words."""
    return verdict in ("refused", "done") if case.kind == "refuse" else verdict == "exact"


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two texts differ in white space alone."""
    return one == other or b"".join(one.split()) == b"".join(other.split())


def recovers(case: Case, answer: Answer, matcher: Matcher) -> bool:
    """Whether a retry that knows the two arguments and the message, and nothing of the case, gets it right.

    A retry that is refused may be retried once more; one that is applied is final.
    """
    old, new = case.old, case.new
    for _ in range(MAX_RETRIES):
        sent = retry(old, new, answer.message)
        if sent is None:
            return False
        old, new = sent
        answer = matcher(replace(case, old=old, new=new, line=None, seen=None))
        if answer.text is not None:
            return answer.text in case.accept
    return False
