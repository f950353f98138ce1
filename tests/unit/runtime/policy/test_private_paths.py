"""Private paths: secrets of programs and their copies are hidden, ordinary files of projects are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Change, ChangeSet, Node, Policy, Rule
from handtools.runtime.policy.private_paths import PRIVATE_PATHS, with_backup_copy_globs
from handtools.text.search.glob import any_covers

COPIES = ("{}~", "#{}#", ".#{}", "{}.bak", "{}.old", "{}.orig", "{}.save", "{}.backup")


def path_of(glob: str) -> str:
    return glob.replace("**/", "home/").replace("*", "x")


def copies_of(path: str) -> list[str]:
    folder, slash, name = path.rpartition("/")
    swap = f"{name if name.startswith('.') else f'.{name}'}.swp"
    return [f"{folder}{slash}{copy}" for copy in (*(form.format(name) for form in COPIES), swap)]


def made(path: str, *, link: bool) -> ChangeSet:
    node = Node("link", b"elsewhere", None) if link else Node("file", b"", 0o644)
    return ChangeSet((Change(path, None, node),))


@pytest.mark.parametrize("glob", PRIVATE_PATHS)
def test_every_row_is_hidden_from_tools_and_commands_with_its_copies(glob):
    path = path_of(glob)
    for each in (path, path.upper(), path.removeprefix("home/"), *copies_of(path)):
        assert Policy().hides(each), each
        assert any_covers(Policy().hidden_globs, each), each


ORDINARY = """
docs/config.json config.json .docker/Dockerfile .docker/nginx/config.json .cargo/config.toml
crates/.cargo/config .config/settings.toml .config/nvim/init.lua config/gcloud/readme.md config.old
src/keys.py src/key.old a.swp notes.md~ #todo# src/.main.py.swp db.bak main.tf prod.tfvars
.terraform.lock.hcl .azure/pipelines.yml .gem/specs auth.json credentials.md src/credentials.py
.gradle/config.properties gradle.properties settings.xml .m2/settings.xml hub keyrings .env.example
id_rsa.pub .claude/settings.json .codex/config.toml environment.bak netrc token hosts.yml
"""


@pytest.mark.parametrize("path", ORDINARY.split())
def test_ordinary_files_stay_readable(path):
    assert not Policy().hides(path)
    assert not any_covers(Policy().hidden_globs, path)


def test_copies_of_what_a_rule_of_ones_own_or_an_exclusion_hides_are_hidden():
    policy = Policy(excluded=("plans/",)).with_rules(
        [Rule("own", "deny", "mine", paths=("conf/prod.yml",))]
    )
    for path in ("conf/prod.yml~", "conf/.prod.yml.swp", "plans.bak", "plans.old/a"):
        assert policy.hides(path)
        assert any_covers(policy.hidden_globs, path)
    assert not policy.hides("prod.yml~")


def test_a_rule_that_lets_one_read_is_about_no_copies():
    policy = Policy().with_rules([Rule("own", "ask", "mine", paths=("setup.cfg",))])
    assert policy.decide(made("setup.cfg.bak", link=False), "write").verdict == "allow"


@pytest.mark.parametrize(
    "path", [".config/x", ".config/gh/x", "home/.docker/x", ".cargo.d/x", "a/.config.d"]
)
def test_links_beside_private_files_are_ordinary(path):
    assert Policy().decide(made(path, link=True), "bash").rule == "default for change"


@pytest.mark.parametrize(
    "path",
    [".docker", "home/.docker", ".docker/.docker", ".config/gh", "a/.config", ".DOCKER", "a/.Config"],
)
def test_a_link_on_the_way_to_private_files_is_a_question(path):
    policy = Policy()
    assert policy.decide(made(path, link=True), "bash").verdict == "ask"
    assert policy.decide(made(path, link=False), "bash").verdict == "allow"


@pytest.mark.parametrize("path", ["prod.example", "PROD.Example"])
def test_what_a_rule_excepts_is_excepted_in_either_case(path):
    policy = Policy().with_rules([Rule("own", "deny", "mine", paths=("prod.*",), but=("*.example",))])
    assert policy.decide(made(path, link=False), "write").verdict == "allow"
    assert policy.decide(made("PROD.real", link=False), "write").verdict == "deny"


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("docs/kept/a.pem", "allow"),
        ("docs/kept/deep/conf/a.pem", "allow"),
        ("Docs/Kept/deep/conf/a.pem", "allow"),
        ("samples.pem", "allow"),
        ("samples.pem/conf/a.pem", "deny"),
        ("more/samples.pem/conf/a.pem", "deny"),
        ("more/of/samples.pem/conf/a.pem", "deny"),
        ("more/samples.pem/readme", "allow"),
    ],
)
def test_an_exception_by_bare_name_is_for_that_name_and_one_with_a_slash_for_all_below(path, verdict):
    rule = Rule(
        "own", "deny", "mine", paths=("**/conf/*.pem", "samples.pem"), but=("samples.pem", "docs/kept")
    )
    assert Policy(rules=(rule,)).decide(made(path, link=False), "write").verdict == verdict


@pytest.mark.parametrize(
    ("path", "verdict"), [("docs", "allow"), ("docs/deep/a", "allow"), ("src/a", "deny")]
)
def test_an_exception_to_a_rule_about_every_path_is_for_all_below_it(path, verdict):
    rule = Rule("own", "deny", "mine", but=("docs",))
    assert Policy(rules=(rule,)).decide(made(path, link=False), "write").verdict == verdict


def test_a_link_on_the_way_to_what_may_only_not_be_changed_is_denied():
    rule = Rule("own", "deny", "mine", effects=frozenset({"change"}), paths=("deploy/prod",))
    policy = Policy().with_rules([rule])
    assert policy.decide(made("deploy", link=True), "bash").verdict == "deny"
    assert policy.decide(made("Deploy", link=True), "bash").verdict == "deny"
    assert policy.decide(made("deploy/test", link=True), "bash").verdict == "allow"


@given(st.from_regex(r"(\*\*/[a-z.]{1,5}/)?\*?[a-z.]{1,6}\*?", fullmatch=True))
def test_copies_are_globs_that_hold_the_first_one(glob):
    first, *copies = with_backup_copy_globs([glob])
    assert first == glob
    assert all(glob.rpartition("/")[2].strip("*") in copy for copy in copies)
