"""A project's file can't loosen what the person's says, whatever both of them say."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Change, ChangeSet
from handtools.configuration import (
    COMMAND_LIMIT_KEYS,
    ConfigSource,
    Configuration,
    person_configuration,
    tightened_configuration,
)
from handtools.configuration.schema import (
    FORMATTER_NAMES,
    SERVER_NAMES,
    ConfigFile,
    DefaultsTable,
    parse_config_file,
)
from handtools.core.commands import Command, PublishedPort
from handtools.core.effects import CommandRun, Publication, ReadEffect
from handtools.core.web import Visit
from handtools.runtime.policy.rules import VERDICT_STRENGTH
from handtools.toolbox import EVERYTHING

VERDICTS = st.sampled_from(["allow", "ask", "deny"])
KINDS = st.sampled_from(sorted(DefaultsTable.model_fields))
PATHS = st.lists(st.sampled_from(["src/**", "**", ".env", "a.txt", "*.txt", "src/deep"]), max_size=2)
COMMANDS = st.lists(st.sampled_from(["curl", "git log|diff", "make", "ls", "* x"]), max_size=2)
HOSTS = st.lists(st.sampled_from(["a.example", "*.example", "10.0.0.0/8", "b.example:80"]), max_size=2)
TOOLS = st.lists(st.sampled_from([tool.name for tool in EVERYTHING]), max_size=3)
AMOUNTS = st.integers(1, 1 << 40)
RULES = st.builds(
    dict.__or__,
    st.fixed_dictionaries(
        {"name": st.sampled_from(["private", "x", "project: x"]), "verdict": VERDICTS},
        optional={"effects": st.lists(KINDS, min_size=1, max_size=3), "tools": TOOLS},
    ),
    st.one_of(
        st.fixed_dictionaries({}, optional={"paths": PATHS, "but": PATHS}),
        st.fixed_dictionaries({"commands": COMMANDS}),
        st.fixed_dictionaries({"hosts": HOSTS}),
    ),
)
VALUES = {
    "preset": st.sampled_from(["reading", "coding", "everything"]),
    "runner": st.sampled_from(["plain", "bubblewrap"]),
    "readable": st.just(["/srv/data"]),
    "path": st.just(["/srv/bin"]),
    "environment": st.just(["SECRET"]),
    "hosts": HOSTS,
    "ports": st.lists(st.sampled_from([3000, "8000-8999"]), max_size=2),
    "proxy": st.just("http://a.example:1"),
    "formatters": st.lists(st.sampled_from(FORMATTER_NAMES), max_size=3, unique=True),
    "servers": st.lists(st.sampled_from(SERVER_NAMES), max_size=3, unique=True),
    "unattended": VERDICTS,
    "tools": st.sampled_from(["all", "coding", "read_only", "none"]),
    "allow": TOOLS,
    "block": TOOLS,
    "excluded": PATHS,
    "limits": st.dictionaries(st.sampled_from(sorted(COMMAND_LIMIT_KEYS)), AMOUNTS),
    "notify": st.fixed_dictionaries(
        {}, optional={"desktop": st.booleans(), "bell": st.booleans(), "command": st.just(["/bin/x"])}
    ),
    "defaults": st.dictionaries(KINDS, VERDICTS),
    "rule": st.lists(RULES, max_size=3),
}
VERDICTS_ONLY = st.fixed_dictionaries(
    {"defaults": st.dictionaries(KINDS, VERDICTS, min_size=4)},
    optional={"rule": st.lists(RULES, min_size=1)},
)
FILES = st.one_of(VERDICTS_ONLY, st.fixed_dictionaries({}, optional=VALUES))
EFFECTS = [
    *(ReadEffect((path,)) for path in ("a.txt", "src/deep/b", ".env")),
    *(ChangeSet.of(Change.of(path, before=None, after=b"")) for path in ("a.txt", "src/b", ".envrc")),
    *(
        CommandRun(Command(script=script, network=network, hosts=hosts), confined=confined)
        for script in ("curl x", "make", "git log; ls > a")
        for network, hosts, confined in (
            ("off", (), True),
            ("listed", ("a.example",), True),
            ("on", (), False),
        )
    ),
    *(Visit(host=host, port=port) for host in ("a.example", "10.1.1.1", "z.test") for port in (80, 443)),
    *(Publication(job="j", script="x", where=PublishedPort(port, port)) for port in (3000, 8080, 1)),
]
TOOL_OF_EFFECT = {"read": "read", "change": "write", "run": "bash", "visit": "fetch", "publish": "jobs"}


def as_toml(values: dict[str, Any]) -> str:
    """JSON's strings, numbers and lists are TOML's as well."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict) and key != "rule"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key in ("limits", "notify", "defaults"):
        if key in values:
            lines += [f"[{key}]", *(f"{name} = {json.dumps(value)}" for name, value in values[key].items())]
    for rule in values.get("rule", []):
        lines += ["[[rule]]", *(f"{name} = {json.dumps(value)}" for name, value in rule.items())]
    return "\n".join(lines) + "\n"


def person(values: dict[str, Any]) -> Configuration:
    parsed, keys = parse_config_file(as_toml(values), "config.toml")
    return person_configuration([ConfigSource(file="config.toml", text="", values=parsed, keys=keys)])


def test_every_key_of_the_schema_is_tried():
    assert set(VALUES) == set(ConfigFile.model_fields)


@given(FILES, st.lists(FILES, min_size=1, max_size=2))
def test_no_project_loosens_anything(mine, projects):
    before = after = person(mine)
    for number, project in enumerate(projects):
        name = ("/work/.handtools.toml", "/work/pyproject.toml")[number]
        text = as_toml(project)
        if number:
            text = text.replace("[[rule]]", "[[tool.handtools.rule]]")
            for table in ("limits", "notify", "defaults"):
                text = text.replace(f"[{table}]", f"[tool.handtools.{table}]")
            text = f"[tool.handtools]\n{text}"
        after = tightened_configuration(after, text, name)
    for effect in EFFECTS:
        tool = TOOL_OF_EFFECT[effect.kind]
        was, now = before.policy.decide(effect, tool).verdict, after.policy.decide(effect, tool).verdict
        assert VERDICT_STRENGTH[now] >= VERDICT_STRENGTH[was], effect
    for tool in EVERYTHING:
        assert before.policy.offers(tool) or not after.policy.offers(tool)
    assert VERDICT_STRENGTH[after.policy.unattended] >= VERDICT_STRENGTH[before.policy.unattended]
    for key in ("hosts", "ports", "tools", "allow"):
        assert getattr(after.policy, key) == getattr(before.policy, key)
    for host in ("a.example", "10.1.1.1"):
        assert before.policy.opens(host, 80, "fetch") or not after.policy.opens(host, 80, "fetch")
    for key in ("runner", "readable", "path", "environment", "proxy", "notify"):
        assert getattr(after.settings, key) == getattr(before.settings, key)
    for key in ("formatters", "servers"):
        mine_, theirs = getattr(before.settings, key), getattr(after.settings, key)
        assert mine_ is None or set(theirs) <= set(mine_)
    for name in COMMAND_LIMIT_KEYS.values():
        most, now = getattr(before.settings.limits, name), getattr(after.settings.limits, name)
        assert most is None or now <= most
    assert after.preset == before.preset


@pytest.mark.parametrize("kind", TOOL_OF_EFFECT)
def test_no_rule_or_default_of_a_project_is_weaker_than_the_persons_default(kind):
    effects = [effect for effect in EFFECTS if effect.kind == kind]
    for mine, theirs in itertools.product(VERDICT_STRENGTH, repeat=2):
        before = person({"defaults": {kind: mine}})
        rule = {"name": "x", "verdict": theirs, "effects": [kind]}
        for said in ({"defaults": {kind: theirs}}, {"rule": [rule]}):
            after = tightened_configuration(before, as_toml(said), "/work/.handtools.toml")
            for effect in effects:
                was = before.policy.decide(effect, TOOL_OF_EFFECT[kind]).verdict
                now = after.policy.decide(effect, TOOL_OF_EFFECT[kind]).verdict
                assert VERDICT_STRENGTH[now] >= VERDICT_STRENGTH[was], (mine, said, effect)
