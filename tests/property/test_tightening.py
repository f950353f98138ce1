"""Nothing that comes from elsewhere loosens what the person says: no project's file, no policy of a remote call.

Judged are the policy's verdicts, and what the sandbox really hides and write-protects in a tree of files.
"""

import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from handtools import Change, ChangeSet, Node, Policy, UsageError
from handtools.configuration import (
    COMMAND_LIMIT_KEYS,
    ConfigSource,
    Configuration,
    configuration_of_user_files,
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
from handtools.core.effects import CommandRun, Delegation, Delivery, Effect, Publication, ReadEffect
from handtools.core.web import Visit
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.policy_paths import UNSEARCHED_FOLDERS, CoveredPaths, PolicyPathFinder
from handtools.host.sandbox.runners.hidden_paths import private_masks, read_only_paths
from handtools.host.workspace_folders import combined_workspace, real_path
from handtools.mcp.remote_toolbox import intersect_policies, policy_from_json
from handtools.runtime.policy.rules import BUILT_IN_RULES, VERDICT_STRENGTH
from handtools.toolbox import EVERYTHING, built_in_tool

VERDICTS = st.sampled_from(["allow", "ask", "deny"])
KINDS = st.sampled_from(sorted(DefaultsTable.model_fields))
PLAIN_NAMES = str.split("""
.env .ENV .env.example a.pem x.pub .ssh id secret !a !.env a b .vscode tasks.json .envrc .git config node_modules
.handtools.toml #a# {a,b} [a] * a,b a\\b .env~ api other
""")
ODD_NAMES = st.sampled_from(["é", "ſecret", "İ", "ﬁ"]) | st.text("!*[]{},.aé^#-", min_size=1, max_size=4)
NAMES = st.integers(0, 30).flatmap(
    lambda drawn: st.sampled_from(PLAIN_NAMES) if drawn else ODD_NAMES.filter(lambda name: name.strip("."))
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
ODD_GLOBS = str.split(r"""
** !** !* !.env !secret !/** !!** ! * /** **/* **/** /.env .env/ *.pem !*.pem .ssh .ssh/** !.ssh/ secret secret/**
[!a]* [^.]* {!**,a} {.env,a/b} {a/,b} \!a \!** !{**,a} .vscode/** .vscode/tasks.json api/** */a SECRET #* !#a#
/ . .. ../** { [ ] \ a\/b ſecret é
""")
GLOBS = st.one_of(
    st.sampled_from(ODD_GLOBS),
    st.sampled_from(ODD_GLOBS),
    PATHS,
    PATHS.map("!{}".format),
    st.sampled_from(["", " "]) | st.text("!*?[]{},/\\.aés^-#~ ", max_size=8),
)
SOME_GLOBS = st.lists(GLOBS, max_size=3)
PLAIN_GLOBS = st.lists(
    st.sampled_from(["src/**", "**", ".env", "a", "*.pem", "secret", ".ssh", ".vscode", "x.pub"]),
    max_size=2,
)
COMMANDS = st.lists(st.sampled_from(["curl", "git log|diff", "make", "ls", "* x", "!", "*"]), max_size=2)
HOSTS = st.lists(st.sampled_from(["a.example", "*.example", "10.0.0.0/8", "b.example:80"]), max_size=2)
PORTS = st.lists(st.sampled_from(["3000", "8000-8999"]), max_size=2)
TOOLS = st.lists(st.sampled_from(EVERYTHING), max_size=3)
TOOL_SETS = st.sampled_from(["all", "coding", "read_only", "none"])
AMOUNTS = st.integers(1, 1 << 40)
RULE_NAMES = st.sampled_from(
    ["private", "protected", "excluded", "x", "project: x", "default for change", "confined", "!", "é"]
)


def rules(globs: st.SearchStrategy[list[str]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        dict.__or__,
        st.fixed_dictionaries(
            {"name": RULE_NAMES, "verdict": VERDICTS, "reason": st.just("r")},
            optional={"effects": st.lists(KINDS, min_size=1, max_size=3), "tools": TOOLS},
        ),
        st.one_of(
            st.fixed_dictionaries({}, optional={"paths": globs, "but": globs}),
            st.fixed_dictionaries({"paths": globs}, optional={"but": globs}),
            st.fixed_dictionaries({"commands": COMMANDS}),
            st.fixed_dictionaries({"hosts": HOSTS}),
        ),
    )


def keys(globs: st.SearchStrategy[list[str]]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "preset": st.sampled_from(["reading", "coding", "everything"]),
        "runner": st.sampled_from(["plain", "bubblewrap"]),
        "readable": st.just(["/srv/data"]),
        "path": st.just(["/srv/bin"]),
        "environment": st.just(["SECRET"]),
        "hosts": HOSTS,
        "ports": PORTS,
        "proxy": st.just("http://a.example:1"),
        "formatters": st.lists(st.sampled_from(FORMATTER_NAMES), max_size=3, unique=True),
        "servers": st.lists(st.sampled_from(SERVER_NAMES), max_size=3, unique=True),
        "unattended": VERDICTS,
        "tools": TOOL_SETS,
        "allow": TOOLS,
        "block": TOOLS,
        "excluded": globs,
        "limits": st.dictionaries(st.sampled_from(sorted(COMMAND_LIMIT_KEYS)), AMOUNTS),
        "notify": st.fixed_dictionaries(
            {}, optional={"desktop": st.booleans(), "bell": st.booleans(), "command": st.just(["/bin/x"])}
        ),
        "defaults": st.dictionaries(KINDS, VERDICTS),
        "rule": st.lists(rules(globs), max_size=3),
    }


def files(globs: st.SearchStrategy[list[str]]) -> st.SearchStrategy[dict[str, Any]]:
    verdicts = st.fixed_dictionaries(
        {"defaults": st.dictionaries(KINDS, VERDICTS, min_size=4)},
        optional={"rule": st.lists(rules(globs), min_size=1, max_size=3)},
    )
    paths = st.fixed_dictionaries(
        {"rule": st.lists(rules(globs), min_size=1, max_size=3)}, optional={"excluded": globs}
    )
    return st.one_of(verdicts, paths, st.fixed_dictionaries({}, optional=keys(globs)))


SENT = st.fixed_dictionaries(
    {},
    optional={
        "rules": st.lists(rules(SOME_GLOBS), max_size=3),
        "tools": TOOL_SETS,
        "allow": TOOLS | st.none(),
        "block": TOOLS,
        "excluded": SOME_GLOBS,
        "hosts": HOSTS,
        "ports": PORTS,
        "unattended": VERDICTS,
        "defaults": st.dictionaries(KINDS, VERDICTS),
    },
)
HEADERS = st.sampled_from(
    [
        ("tool.handtools", "tool.handtools."),
        ('"tool"."handtools"', '"tool"."handtools".'),
        ('tool."hand\\u0074ools"', "tool.'handtools'."),
        (" tool . handtools ", "tool . handtools . "),
    ]
)
TREES = st.lists(PATHS, max_size=7)
PERSONS = files(PLAIN_GLOBS)
PROJECTS = st.lists(files(SOME_GLOBS), min_size=1, max_size=2)
FOLDERS = st.sampled_from(["", "", "api"])
USUAL_PATHS = (
    ".env",
    "a",
    "src/deep/b",
    ".envrc",
    ".ssh/id",
    ".ssh/x.pub",
    "secret/a",
    ".vscode/tasks.json",
)
OTHER_EFFECTS: list[Effect] = [
    *(
        CommandRun(Command(script=script, network=network, hosts=hosts, live=live), confined=confined)
        for script in ("curl x", "make", "git log; ls > a", "cat .env", "$(x)")
        for network, hosts, live, confined in (
            ("off", (), False, True),
            ("listed", ("a.example",), False, True),
            ("off", (), True, False),
            ("on", (), False, False),
        )
    ),
    *(Visit(host=host, port=port) for host in ("a.example", "10.1.1.1", "z.test") for port in (80, 443)),
    *(Publication(job="j", script="x", where=PublishedPort(port, port)) for port in (3000, 8080, 1)),
    Delegation(title="a", prompt="p"),
]
MAX_JUDGED_PATHS = 12
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
TOOL_OF_EFFECT = {
    "read": "read",
    "change": "write",
    "run": "bash",
    "visit": "fetch",
    "publish": "jobs",
    "deliver": "attach",
    "delegate": "task",
}


def effects_on(path: str) -> Iterator[Effect]:
    yield ReadEffect((path,))
    yield ReadEffect((path, f"{path}/below"))
    yield ChangeSet.of(Change.of(path, before=None, after=b""))
    yield ChangeSet.of(Change.of(path, before=b"", after=None))
    yield ChangeSet.of(Change(path, None, Node("link", b"elsewhere")))
    known = frozenset((path, rule.name) for rule in BUILT_IN_RULES)
    yield replace(ChangeSet.of(Change.of(path, before=None, after=b"")), exempt=known)
    yield Delivery(path=path, digest="", bytes=0, media_type="text/plain")


def as_toml(values: dict[str, Any], header: str = "", within: str = "") -> str:
    """JSON's strings, numbers and lists are TOML's as well."""
    plain = {key: value for key, value in values.items() if not isinstance(value, dict) and key != "rule"}
    lines = [f"[{header}]"] if header else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key in ("limits", "notify", "defaults"):
        if key in values:
            lines.append(f"[{within}{key}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in values[key].items()]
    for rule in values.get("rule", []):
        lines.append(f"[[{within}rule]]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in rule.items()]
    return "\n".join(lines) + "\n"


def person(values: dict[str, Any]) -> Configuration:
    try:
        parsed, said = parse_config_file(as_toml(values), "config.toml")
        return configuration_of_user_files(
            [ConfigSource(file="config.toml", text="", values=parsed, keys=said)]
        )
    except UsageError:
        reject()


@contextmanager
def workspace(paths: list[str], folder: str) -> Iterator[tuple[str, list[str]]]:
    """A workspace with files at some of the paths, and the paths in it; of two folders, if one has a name."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place, pytest.MonkeyPatch.context() as patched:
        patched.setenv("HANDTOOLS_STATE", f"{place}/state")
        tops = [Path(place, name) for name in ((folder, "other") if folder else ("one",))]
        for top, path in itertools.product(tops, (*USUAL_PATHS, *paths)):
            try:
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).touch()
            except OSError:  # a file is where a folder is to be
                continue
        Path(tops[0], "link to .env").symlink_to(".env")
        prefixes = {top: f"{top.name}/" if folder else "" for top in tops}
        found = [
            f"{prefixes[top]}{file.relative_to(top)}"
            for top in tops
            for file in sorted(top.rglob("*"))
            if file.is_file() and not file.is_symlink()
        ]
        yield str(combined_workspace(tops)), found


def seen_and_writable(policy: Policy, root: str, paths: list[str]) -> tuple[set[str], set[str], set[str]]:
    """The paths that a command sees under the masks of the runners if its writes are kept apart, those that it
    sees if it writes directly, and those of them that it can write.
    """
    launch = Launch(
        argv=(),
        env={},
        cwd=root,
        root=root,
        private_globs=policy.hidden_globs,
        read_only_globs=policy.read_only_globs,
        is_open=policy.hides_by_name,
    )
    real = {path: os.path.realpath(real_path(path, root)) for path in paths}
    finder = PolicyPathFinder()

    def outside(places: Iterable[str]) -> set[str]:
        tops = tuple(f"{place}/" for place in places)
        return {path for path in paths if not f"{real[path]}/".startswith(tops)}

    def covered(*, writes_apart: bool) -> CoveredPaths:
        return finder.covered(
            root, launch.private_globs, launch.read_only_globs, launch.is_open, writes_apart=writes_apart
        )

    def seen(found: CoveredPaths) -> set[str]:
        masks = private_masks(root, found.hidden)
        return outside((*masks.files, *masks.folders))

    found = covered(writes_apart=False)
    directly = seen(found)
    writable = directly & outside(read_only_paths(launch, found.read_only, writes_apart=False))
    return seen(covered(writes_apart=True)), directly, writable


def assert_no_looser(before: Policy, after: Policy, root: str, paths: list[str]) -> None:
    drawn_first = sorted(paths, key=lambda path: path.removeprefix("api/") in USUAL_PATHS)
    judged = drawn_first[:MAX_JUDGED_PATHS]
    on_paths = (effect for path in judged for effect in effects_on(path))
    for effect in (*on_paths, *OTHER_EFFECTS):
        for tool in (TOOL_OF_EFFECT[effect.kind], ""):
            was, now = before.decide(effect, tool), after.decide(effect, tool)
            assert VERDICT_STRENGTH[now.verdict] >= VERDICT_STRENGTH[was.verdict], (effect, was, now)
    for path in paths:
        assert after.hides(path) or not before.hides(path)
        for link in (False, True):
            named = {rule.name for rule in after.forbidding(path, "write", link=link)}
            assert named or not before.forbidding(path, "write", link=link)
    for tool in map(built_in_tool, EVERYTHING):
        assert before.offers(tool) or not after.offers(tool)
    assert VERDICT_STRENGTH[after.unattended] >= VERDICT_STRENGTH[before.unattended]
    for host in ("a.example", "10.1.1.1"):
        assert before.opens(host, 80, "fetch") or not after.opens(host, 80, "fetch")
    for key in ("hosts", "ports"):
        assert set(getattr(after, key)) <= set(getattr(before, key))
    was, now = seen_and_writable(before, root, paths), seen_and_writable(after, root, paths)
    assert [more - less for more, less in zip(now, was, strict=True)] == [set(), set(), set()]


def assert_commands_see_no_more_than_tools(policy: Policy, root: str, paths: list[str]) -> None:
    for path in seen_and_writable(policy, root, paths)[0]:
        hiding = [rule for rule in policy.all_rules if rule.judge("read", path, "") == "deny"]
        searched = UNSEARCHED_FOLDERS.isdisjoint(path.split("/")[:-1])
        assert not hiding or not searched or policy.hides_by_name(path), (path, hiding)


def test_every_key_of_the_schema_is_tried():
    assert set(keys(SOME_GLOBS)) == set(ConfigFile.model_fields)
    assert set(TOOL_OF_EFFECT) == {effect.kind for effect in (*effects_on("a"), *OTHER_EFFECTS)}


DENY_ALL_BUT = {"name": "x", "verdict": "deny", "reason": "r"}


@example({}, [{"excluded": ["!**"]}], ("tool.handtools", "tool.handtools."), [], "")
@example({}, [{"rule": [DENY_ALL_BUT | {"paths": ["!**"]}]}], ("tool.handtools", "tool.handtools."), [], "")
@example(
    {"excluded": ["secret"]},
    [{"rule": [DENY_ALL_BUT | {"paths": ["zzz"], "but": ["**"]}]}],
    ("tool.handtools", "tool.handtools."),
    [],
    "api",
)
@example(
    {"defaults": {"change": "deny"}},
    [{"excluded": ["src/deep/b/below"]}],
    ("tool.handtools", "tool.handtools."),
    [],
    "",
)
@given(PERSONS, PROJECTS, HEADERS, TREES, FOLDERS)
def test_no_project_loosens_anything(mine, projects, header, tree, folder):
    before = after = person(mine)
    for number, project in enumerate(projects):
        name, text = "/work/.handtools.toml", as_toml(project)
        if number or header[0] != "tool.handtools":
            name, text = "/work/pyproject.toml", as_toml(project, *header)
        try:
            after = tightened_configuration(after, text, Path(name), folder=folder)
        except UsageError:  # then no call runs
            return
    with workspace(tree, folder) as (root, paths):
        was, now = before.policy, after.policy
        if folder:
            was, now = was.in_each_folder(), now.in_each_folder()
        assert_no_looser(was, now, root, paths)
        assert_commands_see_no_more_than_tools(now, root, paths)
    for key in ("hosts", "ports", "tools", "allow"):
        assert getattr(after.policy, key) == getattr(before.policy, key)
    for key in ("runner", "readable", "path", "environment", "proxy", "notify"):
        assert getattr(after.settings, key) == getattr(before.settings, key)
    for key in ("formatters", "servers"):
        mine_, theirs = getattr(before.settings, key), getattr(after.settings, key)
        assert mine_ is None or set(theirs) <= set(mine_)
    for name in COMMAND_LIMIT_KEYS.values():
        most, now = getattr(before.settings.limits, name), getattr(after.settings.limits, name)
        assert most is None or now <= most
    assert after.preset == before.preset


@example({}, {"rules": [DENY_ALL_BUT | {"paths": ["!**"]}], "excluded": ["!**"]}, [], "")
@example({"defaults": {"change": "deny"}}, {"rules": [DENY_ALL_BUT | {"verdict": "ask"}]}, [], "")
@given(PERSONS, SENT, TREES, FOLDERS)
def test_no_policy_of_a_remote_call_loosens_anything(mine, sent, tree, folder):
    policy = person(mine).policy
    try:
        more = policy_from_json(sent)
    except UsageError:  # then the call is refused
        return
    if folder:
        policy, more = policy.in_each_folder(), more.in_each_folder()
    both = intersect_policies(policy, more, list(map(built_in_tool, EVERYTHING)))
    if folder:
        both = both.in_each_folder()
    with workspace(tree, folder) as (root, paths):
        assert_no_looser(policy, both, root, paths)
        assert_no_looser(more, both, root, paths)
        assert_commands_see_no_more_than_tools(both, root, paths)


@pytest.mark.parametrize("kind", TOOL_OF_EFFECT)
def test_no_rule_or_default_of_a_project_is_weaker_than_the_persons_default(kind):
    effects = [effect for effect in (*effects_on("a"), *OTHER_EFFECTS) if effect.kind == kind]
    for mine, theirs in itertools.product(VERDICT_STRENGTH, repeat=2):
        before = person({"defaults": {kind: mine}})
        rule = {"name": "x", "verdict": theirs, "effects": [kind]}
        for said in ({"defaults": {kind: theirs}}, {"rule": [rule]}):
            after = tightened_configuration(before, as_toml(said), Path("/work/.handtools.toml"))
            for effect in effects:
                was = before.policy.decide(effect, TOOL_OF_EFFECT[kind]).verdict
                now = after.policy.decide(effect, TOOL_OF_EFFECT[kind]).verdict
                assert VERDICT_STRENGTH[now] >= VERDICT_STRENGTH[was], (mine, said, effect)
