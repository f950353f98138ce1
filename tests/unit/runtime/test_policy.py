"""Rules over effects."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Change, ChangeSet, Policy, Rule, UsageError
from handtools.core.changes import Node
from handtools.core.commands import Command
from handtools.core.effects import CommandRun, ReadEffect
from handtools.mcp.remote_toolbox import intersect_policies, policy_from_json
from handtools.runtime.policy.project_policy import tightened_policy
from handtools.runtime.policy.rules import VERDICT_STRENGTH
from handtools.text.search.glob import any_covers
from handtools.tools.edit import edit
from handtools.tools.fetch import fetch
from handtools.tools.now import now
from handtools.tools.read import read
from handtools.tools.think import think
from handtools.tools.undo import undo
from handtools.tools.web_search import web_search
from handtools.tools.write import write

TOOLS = (read, edit, write, undo, fetch, web_search, think, now)


def changing(*paths):
    return ChangeSet.of(*(Change.of(path, before=None, after=b"") for path in paths))


@pytest.mark.parametrize(
    ("effect", "verdict", "rule"),
    [
        (ReadEffect(("src/a.py",)), "allow", "default for read"),
        (changing("src/a.py"), "allow", "default for change"),
        (ReadEffect((".env",)), "deny", "private"),
        (ReadEffect(("config/.ENV.production",)), "deny", "private"),
        (ReadEffect((".env.example",)), "allow", "default for read"),
        (changing(".git/config"), "ask", "protected"),
        (ReadEffect((".git/config",)), "allow", "default for read"),
        (changing("vendor/x/.git/hooks/post-commit"), "ask", "protected"),
        (changing("src/a.py", ".envrc"), "ask", "protected"),
        (changing(".envrc", "deploy/id_rsa"), "deny", "private"),
    ],
)
def test_the_strongest_rule_over_all_targets_decides_and_is_named(effect, verdict, rule):
    decision = Policy().decide(effect, "edit")
    assert (decision.verdict, decision.rule) == (verdict, rule)


def test_deny_beats_ask_beats_allow_whatever_the_order():
    rules = [Rule(verdict, verdict, "", paths=("a",)) for verdict in ("allow", "deny", "ask")]
    for order in (rules, rules[::-1]):
        assert Policy(rules=tuple(order)).decide(ReadEffect(("a",)), "read").rule == "deny"
        without = tuple(rule for rule in order if rule.name != "deny")
        assert Policy(rules=without).decide(ReadEffect(("a",)), "read").rule == "ask"


def test_a_built_in_rule_does_not_weaken_a_stricter_default():
    policy = Policy(defaults={"change": "deny"})
    assert policy.decide(changing(".envrc"), "write").verdict == "deny"
    own = Policy(rules=(Rule("docs", "ask", "Look.", paths=("docs",)),), defaults={"change": "deny"})
    assert own.decide(changing("docs/a.md"), "write").verdict == "ask"


@pytest.mark.parametrize(
    "rule", [Rule("x", "deny", "r", paths=("a/b",)), Rule("x", "ask", "r", paths=("a/b",))]
)
def test_what_may_be_below_a_link_does_not_weaken_a_stricter_default(rule):
    link = ChangeSet.of(Change("a", None, Node("link", b"elsewhere")))
    for policy in (Policy(rules=(rule,)), Policy(excluded=("a/b",))):
        assert policy.decide(link, "write").verdict == "ask"
        assert replace(policy, defaults={"change": "deny"}).decide(link, "write").verdict == "deny"


@pytest.mark.parametrize("kind", ["read", "change", "run"])
def test_no_rule_that_somebody_adds_weakens_a_default(kind):
    effects = {
        "read": ReadEffect(("a",)),
        "change": changing("a"),
        "run": CommandRun(Command(script="make"), confined=True),
    }
    mine = Policy(defaults={kind: "deny"})
    for paths in ((), ("a",)) if kind != "run" else ((),):
        asking = Rule("x", "ask", "r", paths=paths)
        policies = (
            mine.with_rules([replace(asking, only_tightens=True)]),
            intersect_policies(mine, Policy(rules=(asking,)), TOOLS),
            intersect_policies(Policy(rules=(asking,)), mine, TOOLS),
            tightened_policy(mine, Policy(), [asking], keys_set=()).policy,
        )
        for policy in policies:
            assert policy.decide(effects[kind], "bash").verdict == "deny"


def test_a_command_that_could_read_what_tools_may_not_is_asked_about():
    run = CommandRun(Command(script="cat a"), confined=True)
    assert Policy().decide(run, "bash").verdict == "allow"
    assert Policy(defaults={"read": "deny"}).decide(run, "bash").verdict == "ask"
    assert Policy(defaults={"read": "deny", "run": "allow"}).decide(run, "bash").verdict == "allow"


def test_a_rule_for_one_tool_leaves_others_alone():
    policy = Policy(rules=(Rule("no-edit", "deny", "", tools=("edit",)),))
    assert policy.decide(changing("a"), "edit").verdict == "deny"
    assert policy.decide(changing("a"), "write").verdict == "allow"


def test_a_rule_that_contradicts_its_examples_does_not_load():
    with pytest.raises(UsageError, match="secrets"):
        Policy(rules=(Rule("secrets", "deny", "", paths=("*.key",), match=("a.pem",)),))
    with pytest.raises(UsageError, match=r"a\.key"):
        Policy(rules=(Rule("secrets", "deny", "", paths=("*.key",), not_match=("a.key",)),))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"verdict": "change"}, "'change' is not a verdict. Known: allow, ask, deny."),
        ({"verdict": "Deny"}, "Did you mean `deny`?"),
        ({"effects": frozenset({"write"})}, "'write' is not a kind of effect. Known: change, delegate"),
        ({"effects": frozenset({"reads"})}, "Did you mean `read`?"),
        ({"effects": frozenset()}, "has no kind of effect"),
        ({"paths": ".env"}, "`paths` must be a list of strings, not '.env'."),
        ({"tools": "bash"}, "`tools` must be a list of strings"),
        ({"paths": ("{a",)}, "invalid glob"),
    ],
)
def test_a_rule_that_would_be_about_nothing_is_not_made(values, told):
    with pytest.raises(UsageError) as refused:
        Rule(**{"name": "x", "verdict": "deny", "reason": "r"} | values)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"defaults": {"write": "deny"}}, "'write' is not a kind of effect."),
        ({"defaults": {"change": "no"}}, "'no' is not a verdict."),
        ({"unattended": "denied"}, "'denied' is not a verdict."),
        ({"tools": "readonly"}, "Did you mean `read_only`?"),
        ({"block": "bash"}, "`block` must be a list of strings, not 'bash'."),
        ({"allow": "bash"}, "`allow` must be a list of strings"),
        ({"excluded": ".env"}, "`excluded` must be a list of strings"),
        ({"excluded": ("[",)}, "invalid glob"),
        ({"rules": (Rule("x", "deny", "r", but=("",)),)}, "invalid glob"),
        ({"rules": (Rule("x", "deny", "r", commands=(" ",)),)}, "an empty command"),
    ],
)
def test_a_policy_that_would_forbid_less_than_it_says_is_not_made(values, told):
    with pytest.raises(UsageError) as refused:
        Policy(**values)
    assert told in str(refused.value)


def test_lists_are_taken_for_tuples():
    rule = Rule("x", "deny", "r", effects=["read"], paths=["a"], but=["a/b"])
    policy = Policy(rules=[rule], block=["write"], excluded=["c"])
    assert policy.hides("a")
    assert not policy.hides("a/b")
    assert policy.hides("c")
    assert not policy.offers(write)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"blok": ["bash"]}, "`blok` of the policy is invalid"),
        ({"rules": [{"name": "x", "verdict": "deny", "reason": "r", "path": []}]}, "`rules.0.path`"),
        ({"defaults": {"write": "deny"}}, "`defaults.write.[key]`"),
        ({"rules": [{"name": "x", "verdict": "deny", "reason": "r", "paths": ["["]}]}, "invalid glob"),
    ],
)
def test_a_policy_from_elsewhere_that_would_forbid_less_than_it_says_is_refused(sent, told):
    with pytest.raises(UsageError) as refused:
        policy_from_json(sent)
    assert told in str(refused.value)


def test_excluded_paths_are_hidden_and_denied():
    policy = Policy(excluded=("build/", "*.log"))
    assert policy.hides("build/x.o")
    assert policy.hides("deep/a.log")
    assert not policy.hides("src/a.py")
    assert policy.decide(ReadEffect(("deep/a.log",)), "read").rule == "excluded"


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (Policy(tools="none"), set()),
        (Policy(tools="coding"), {"read", "edit", "write", "undo", "think", "now"}),
        (Policy(tools="read_only"), {"read", "fetch", "web_search", "think", "now"}),
        (
            Policy(tools="all", block=("write",)),
            {"read", "edit", "undo", "fetch", "web_search", "think", "now"},
        ),
        (Policy(tools="none", allow=("read", "edit"), block=("edit",)), {"read"}),
    ],
)
def test_tool_sets_allow_and_block(policy, names):
    assert {tool.name for tool in TOOLS if policy.offers(tool)} == names


PARTS = st.sampled_from(
    [
        ".env",
        ".ENV",
        "a.pem",
        "a.pub",
        "src",
        ".git",
        "config",
        "node_modules",
        ".ssh",
        ".github",
        "workflows",
        "x~",
    ]
)


@given(parts=st.lists(PARTS, min_size=1, max_size=4), kind=st.sampled_from(["read", "change"]))
def test_a_first_look_at_all_paths_of_the_rules_changes_no_decision(parts, kind):
    path = "/".join(parts)
    policy = Policy(excluded=("src/config",)).with_rules([Rule("own", "ask", "mine", paths=("**/x~",))])
    verdicts = [verdict for rule in policy.all_rules if (verdict := rule.judge(kind, path, "tool"))]
    wanted = max(verdicts, key=lambda verdict: VERDICT_STRENGTH[verdict], default="allow")
    effect = ReadEffect((path,)) if kind == "read" else ChangeSet((Change(path, None, Node("file")),))
    assert policy.decide(effect, "tool").verdict == wanted
    denying = [rule.name for rule in policy.all_rules if rule.judge("change", path, "tool") == "deny"]
    assert [rule.name for rule in policy.forbidding(path, "tool")] == denying


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("docs/own", "deny"),
        ("api/docs/own", "deny"),
        ("api/src/docs/own", "allow"),
        ("api/plan.txt", "deny"),
        ("api/src/plan.txt", "allow"),
    ],
)
def test_of_several_folders_each_has_the_paths_that_a_rule_names_from_the_top(path, verdict):
    rule = Rule("own", "deny", "mine", paths=("docs/own", "*/plan.txt"))
    assert Policy(rules=(rule,)).in_each_folder().decide(changing(path), "write").verdict == verdict


def test_a_link_may_not_stand_above_what_may_not_be_changed():
    policy = Policy().with_rules(
        [Rule("kept", "deny", "mine", effects=frozenset({"change"}), paths=("conf/kept.toml",))]
    )
    assert [rule.name for rule in policy.forbidding("conf", "bash", link=True)] == ["kept"]
    assert policy.forbidding("conf", "bash") == policy.forbidding("other", "bash", link=True) == []


def test_a_policy_that_came_from_another_process_decides_as_the_same_one_does_here():
    carried = pickle.loads(pickle.dumps(Policy()))
    commit = ChangeSet(changing(".git/index").changes, exempt=frozenset({(".git/index", "protected")}))
    assert Policy().decide(commit, "bash").verdict == carried.decide(commit, "bash").verdict != "ask"
    assert Policy().hides_by_name(".env") == carried.hides_by_name(".env") is True


@pytest.mark.parametrize("lists", [{"hosts": ("http://x",)}, {"ports": ("many",)}])
def test_a_list_that_names_no_host_or_port_does_not_load(lists):
    with pytest.raises(UsageError):
        Policy(**lists)


def test_a_folder_above_a_private_one_may_be_read():
    assert Policy().decide(ReadEffect((".config",)), "list").verdict == "allow"


def test_what_one_rule_excepts_is_not_excepted_from_another():
    policy = Policy(excluded=(".env.example",))
    assert policy.hides("a/.env.example")
    assert any_covers(policy.hidden_globs, "a/.env.example")


@pytest.mark.parametrize(
    ("paths", "but", "covered", "exempt"),
    [
        ((".ssh",), ("*.pub",), [".ssh", ".ssh/id", ".ssh/x.pub/id"], [".ssh/id.pub", "id"]),
        ((".env*",), (".env.example",), [".env.example/.env"], [".env.example", ".env.example/readme"]),
        (("vault",), ("vault/open/**",), ["vault/a", "vault/open"], ["vault/open/a", "vault/open/b/c"]),
        (("x/**",), ("x",), ["x/a", "x/a/b"], ["x", "y"]),
        ((), ("docs",), ["a", "src/a"], ["docs", "docs/a"]),
        (("!a",), (), ["!a", "b/!a/c"], ["a", "b"]),
        (("a",), ("!a",), ["a", "a/b"], ["a/!a", "!a"]),
    ],
)
def test_a_rule_covers_for_tools_what_it_covers_for_commands(paths, but, covered, exempt):
    policy = Policy(rules=(Rule("x", "deny", "r", paths=paths, but=but),))
    for path in (*covered, *exempt):
        assert policy.hides(path) == any_covers(policy.hidden_globs, path) == (path in covered), path


def in_folder(*rules, excluded=()):
    return tightened_policy(Policy(), Policy(excluded=excluded), rules, keys_set=(), folder="api").policy


def test_the_rules_of_one_folder_of_several_speak_for_that_folder_alone():
    policy = in_folder(
        Rule("frozen", "deny", "x", paths=("src/*.py", "notes"), but=("src/free.py",)), excluded=("/out",)
    )
    assert all(policy.forbidding(path, "edit") for path in ("api/src/a.py", "api/notes", "api/deep/notes"))
    assert not any(policy.forbidding(path, "edit") for path in ("src/a.py", "web/src/a.py", "notes"))
    assert not policy.forbidding("api/src/free.py", "edit")
    assert policy.hides("api/out")
    assert not policy.hides("out")


def test_a_rule_of_one_folder_that_names_no_path_is_about_all_that_is_in_it():
    policy = in_folder(Rule("frozen", "deny", "x", effects=frozenset({"change"})))
    assert policy.forbidding("api/a/b.py", "edit")
    assert not policy.forbidding("web/a.py", "edit")


def test_a_rule_of_one_folder_about_commands_is_about_them_everywhere():
    policy = in_folder(Rule("no-rm", "deny", "x", commands=("rm",)))
    run = CommandRun(Command(script="rm a"), confined=True)
    assert policy.decide(run, "bash").rule == "project: no-rm"
