"""Rules over published ports: default, list, rules, and what a project's file may say."""

import pytest

from handtools.core.commands import PublishedPort
from handtools.core.effects import Publication, effect_fingerprint
from handtools.runtime.approval.preview import approval_title, effect_preview
from handtools.runtime.policy import Policy
from handtools.runtime.policy.project_policy import tightened_policy
from handtools.runtime.policy.rules import Rule


def publication(
    port: int = 3000, host_port: int = 3000, job: str = "job1", script: str = "npm run dev"
) -> Publication:
    return Publication(job=job, script=script, where=PublishedPort(port, host_port))


NEVER = Rule("never", "deny", "Nothing is shown.", effects=frozenset({"publish"}))
LISTED = Policy(ports=("3000", "8000-8999"))


@pytest.mark.parametrize(
    ("policy", "port", "verdict", "rule"),
    [
        (Policy(), 3000, "ask", "default for publish"),
        (Policy(defaults={"publish": "allow"}), 3000, "allow", "default for publish"),
        (Policy(defaults={"publish": "deny"}), 3000, "deny", "default for publish"),
        (LISTED, 3000, "allow", "ports"),
        (LISTED, 8999, "allow", "ports"),
        (LISTED, 3001, "ask", "default for publish"),
        (LISTED.with_rules([NEVER]), 3000, "deny", "never"),
        (
            Policy().with_rules([Rule("yes", "allow", "x", effects=frozenset({"publish"}))]),
            1,
            "allow",
            "yes",
        ),
        (
            Policy().with_rules([Rule("paths", "deny", "x", paths=("port*",))]),
            1,
            "ask",
            "default for publish",
        ),
        (
            Policy().with_rules([Rule("other", "deny", "x", tools=("bash",))]),
            1,
            "ask",
            "default for publish",
        ),
    ],
)
def test_a_publication_is_judged_by_rules_by_the_list_and_by_the_default(policy, port, verdict, rule):
    decision = policy.decide(publication(port), "jobs")
    assert (decision.verdict, decision.rule) == (verdict, rule)


def test_a_project_may_only_tighten():
    weak = tightened_policy(Policy(), Policy(defaults={"publish": "allow"}), [], keys_set={"defaults"})
    assert weak.policy.decide(publication(), "jobs").verdict == "ask"
    assert weak.ignored
    strict = tightened_policy(LISTED, Policy(), [NEVER], keys_set={"rule"})
    assert strict.policy.decide(publication(), "jobs").verdict == "deny"


def test_an_approval_is_for_exactly_this_job_and_these_ports():
    one = effect_fingerprint(publication())
    others = [
        publication(3001),
        publication(host_port=3001),
        publication(job="job2"),
        publication(script="x"),
    ]
    assert one not in {effect_fingerprint(other) for other in others}
    assert one == effect_fingerprint(publication())


def test_a_person_sees_the_job_the_port_and_the_address():
    effect = publication(80, 8080)
    assert (
        approval_title(effect, "jobs") == "jobs wants to publish port 80 of job1 at http://127.0.0.1:8080/"
    )
    shown = effect_preview(effect).text
    assert shown.startswith("# port 80 of job1 at http://127.0.0.1:8080/\n")
    assert shown.endswith("npm run dev")
