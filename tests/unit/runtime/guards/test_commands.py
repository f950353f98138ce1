"""What a policy's rules come to in a sandbox."""

from handtools import Policy, Rule
from handtools.host.sandbox.runners.hidden_paths import PolicyGlobs


def secret(name, *paths, but=()):
    return Rule(name, "deny", "Secret.", effects=frozenset({"read"}), paths=paths, but=but)


def test_what_a_rule_excepts_is_not_hidden_from_commands():
    wanted = PolicyGlobs(
        Policy(rules=(secret("keys", "*.key", ".env*", but=(".env.example",)),)).hidden_globs
    )
    assert wanted.matches("a/.env", folder=False)
    assert not wanted.matches("a/.env.example", folder=False)


def test_an_exception_of_one_rule_opens_nothing_that_another_hides():
    rules = (secret("folder", "vault/**"), secret("keys", "*.key", but=("*.pub.key",)))
    wanted = PolicyGlobs(Policy(rules=rules).hidden_globs)
    assert wanted.matches("vault/x.pub.key", folder=False)
    assert not wanted.matches("x.pub.key", folder=False)


def test_what_may_not_be_changed_has_its_exceptions_too():
    rule = Rule(
        "settings",
        "ask",
        "It runs.",
        effects=frozenset({"change"}),
        paths=(".vscode/**",),
        but=(".vscode/launch.json",),
    )
    wanted = PolicyGlobs(Policy(rules=(rule,)).read_only_globs)
    assert wanted.matches(".vscode/tasks.json", folder=False)
    assert not wanted.matches(".vscode/launch.json", folder=False)
