"""Tightening: a policy that comes with a call may narrow the policy of its token, and never widen it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from handtools.core.errors import UsageError
from handtools.core.tool import AnyTool
from handtools.runtime.deciding import STRENGTH
from handtools.runtime.policy import Policy


def policy_to_json(policy: Policy) -> dict[str, Any]:
    """A policy as it travels."""
    written: dict[str, Any] = TypeAdapter(Policy).dump_python(policy, mode="json")
    return written


def policy_from_json(value: Any) -> Policy:
    """A policy as it came: the client's word."""
    try:
        return TypeAdapter(Policy).validate_python(value)
    except ValidationError as problem:
        raise UsageError(f"This is no policy: {problem.errors()[0]['msg']}.") from problem


def tightened(policy: Policy, more: Policy, tools: Iterable[AnyTool]) -> Policy:
    """What both allow. Where one allows by a rule what the other asks about by default, it is asked about."""
    rules = [rule for rule in (*policy.rules, *more.rules) if rule.verdict != "allow"]
    defaults = {
        kind: max(verdict, more.defaults[kind], key=STRENGTH.__getitem__)
        for kind, verdict in policy.defaults.items()
    }
    return replace(
        policy,
        rules=tuple(dict.fromkeys(rules)),
        defaults=defaults,
        block=(*policy.block, *(tool.name for tool in tools if not more.offers(tool))),
        excluded=(*policy.excluded, *more.excluded),
        hosts=tuple(host for host in policy.hosts if host in more.hosts),
        unattended=max(policy.unattended, more.unattended, key=STRENGTH.__getitem__),
    )
