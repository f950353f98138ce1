"""Verdicts: exact, refused or wrong; and whether a retry by the refusal's own words succeeds."""

from dataclasses import replace
from typing import Literal

from bench.editbench.cases import Case
from bench.editbench.matchers import Answer, Matcher
from bench.editbench.retrying import retry

Verdict = Literal["exact", "refused", "wrong"]
MOST_RETRIES = 2


def judge(case: Case, answer: Answer) -> Verdict:
    """What became of the case; for one that must be refused, anything applied is wrong."""
    if answer.text is None:
        return "refused"
    return "exact" if case.kind == "apply" and answer.text in case.accept else "wrong"


def recovers(case: Case, answer: Answer, matcher: Matcher) -> bool:
    """Whether a retry that knows the two arguments and the message, and nothing of the case, gets it right.

    A retry that is refused may be retried once more; one that is applied is final.
    """
    old, new = case.old, case.new
    for _ in range(MOST_RETRIES):
        sent = retry(old, new, answer.message)
        if sent is None:
            return False
        old, new = sent
        answer = matcher(replace(case, old=old, new=new, line=None, seen=None))
        if answer.text is not None:
            return answer.text in case.accept
    return False
