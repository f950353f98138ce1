"""Verdicts: exact, refused or wrong; and whether a retry by the refusal's own words succeeds."""

import re
from dataclasses import replace
from typing import Literal

from bench.editbench.cases import Case
from bench.editbench.matchers import Answer, Matcher

Verdict = Literal["exact", "refused", "wrong"]
_OFFER = re.compile(r"^old_string(?: for line \d+)?:\n(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def judge(case: Case, answer: Answer) -> Verdict:
    """What became of the case; for one that must be refused, anything applied is wrong."""
    if answer.text is None:
        return "refused"
    return "exact" if case.kind == "apply" and answer.text in case.accept else "wrong"


def recovers(case: Case, answer: Answer, matcher: Matcher) -> bool:
    """Whether a model that copies an `old_string` from the message and makes its edit there gets it right."""
    if case.meant is None:
        return False
    old, new = case.meant
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    for offer in _OFFER.finditer(answer.message):
        text = offer[2]
        if text.count(old) != 1:
            continue
        again = matcher(replace(case, old=text, new=text.replace(old, new), line=None, seen=None))
        if again.text in case.accept:
            return True
    return False
