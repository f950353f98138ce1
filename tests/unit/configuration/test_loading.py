"""The person's settings, and the project's own file, which may be hostile and may only tighten."""

import contextlib
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Change, ChangeSet, Policy, UsageError, load_configuration
from handtools.configuration import (
    UNLIMITED,
    Configuration,
    Settings,
    tightened_configuration,
)
from handtools.configuration.schema import ConfigFile, parse_config_file
from handtools.core.approval import Notify
from handtools.core.commands import Command, CommandLimits
from handtools.core.effects import CommandRun, ReadEffect
from handtools.host.files.config_files import CONFIG_VARIABLE, POLICY_VARIABLE
from handtools.host.sandbox.default_limits import default_memory_bytes
from handtools.mcp.served_toolbox import open_preset

MINE = Settings(runner="bubblewrap", limits=replace(UNLIMITED, memory_bytes=1 << 30))
WIDENING = {
    "runner": 'runner = "plain"',
    "readable": 'readable = ["/etc"]',
    "path": 'path = ["/tmp/bin"]',
    "environment": 'environment = ["AWS_SECRET_ACCESS_KEY"]',
    "hosts": 'hosts = ["evil.example"]',
    "ports": "ports = [3000]",
    "proxy": 'proxy = "http://evil.example:1"',
    "preset": 'preset = "everything"',
    "notify": '[notify]\ncommand = ["/bin/sh", "-c", "evil"]',
    "memory": '[limits]\nmemory = "900 TiB"',
    "allow": 'allow = ["bash"]',
    "tools": 'tools = "all"',
    "unattended": 'unattended = "allow"',
    "run": '[defaults]\nrun = "allow"',
    "visit": '[defaults]\nvisit = "allow"',
    "change": '[defaults]\nchange = "ask"',
    "all": '[[rule]]\nname = "all"\nverdict = "allow"\ncommands = ["curl"]',
    "softer": '[[rule]]\nname = "softer"\nverdict = "ask"\neffects = ["change"]\npaths = ["**"]',
}
STRICT = Policy(defaults={"change": "deny"}, hosts=("mine.example",), tools="read_only")


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in (CONFIG_VARIABLE, POLICY_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "home/state"))
    for folder in ("work", "home", "config/handtools"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def tighten(text, policy=STRICT, settings=MINE, file="/work/.handtools.toml"):
    return tightened_configuration(Configuration(policy=policy, settings=settings), text, file)


@pytest.mark.parametrize("key", WIDENING)
def test_a_key_of_a_project_that_would_widen_is_ignored_with_a_sentence(key):
    found = tighten(WIDENING[key])
    assert (found.policy, found.settings) == (STRICT, MINE)
    (sentence,) = found.ignored
    assert "/work/.handtools.toml can only tighten" in sentence
    assert f"`{key}" in sentence


def test_a_project_tightens_what_the_person_allows():
    text = (
        'block = ["jobs"]\nexcluded = ["secret/**"]\nunattended = "deny"\n[defaults]\nrun = "ask"\n'
        '[limits]\nmemory = "512 MiB"\nprocesses = 100\n'
        '[[rule]]\nname = "private"\nverdict = "deny"\ncommands = ["curl"]\n'
    )
    found = tighten(text, policy=Policy())
    policy, limits = found.policy, found.settings.limits
    assert found.ignored == ()
    assert (policy.block, policy.unattended) == (("jobs",), "deny")
    assert policy.decide(ReadEffect(("secret/a",)), "read").verdict == "deny"
    run = CommandRun(Command(script="make"), confined=True)
    assert policy.decide(run, "bash").verdict == "ask"
    assert (limits.memory_bytes, limits.processes) == (512 << 20, 100)
    # A rule of a project does not pass for one of ours.
    assert policy.rules[-1].name == "project: private"


@given(
    st.sampled_from(["seconds", "processes", "open_files"]),
    st.integers(1, 1 << 40),
    st.none() | st.integers(1, 1 << 40),
)
def test_no_limit_of_a_project_is_above_the_persons_or_the_usual_one(key, said, own):
    mine = UNLIMITED if own is None else replace(UNLIMITED, **{key: own})
    found = tighten(f"[limits]\n{key} = {said}", settings=Settings(limits=mine)).settings.limits
    assert getattr(found, key) <= min(said, own or said)
    assert found.processes is None or own or found.processes <= 4096


def test_a_project_can_not_ask_for_more_memory_than_usual():
    found = tighten('[limits]\nmemory = "900 TiB"', settings=Settings())
    assert found.settings.limits.memory_bytes == default_memory_bytes()


@given(st.lists(st.sampled_from([*WIDENING.values(), 'block = ["read"]', 'excluded = ["a"]']), max_size=1))
def test_whatever_a_project_says_no_verdict_gets_weaker(said):
    found = tighten("\n".join(said)).policy
    strength = {"allow": 0, "ask": 1, "deny": 2}
    for script in ("curl x", "make", "ls > a"):
        for confined in (True, False):
            run = CommandRun(Command(script=script), confined=confined)
            before, after = STRICT.decide(run, "bash").verdict, found.decide(run, "bash").verdict
            assert strength[after] >= strength[before]
    change = ChangeSet.of(Change.of("any.txt", before=None, after=b""))
    assert found.decide(change, "write").verdict == "deny"
    assert found.hosts == STRICT.hosts


@pytest.mark.parametrize("text", ["=", "[" * 20_000, "limits = 1", "hots = []", "[limits]\nmemry = 1"])
def test_a_project_file_that_says_nothing_sensible_stops_with_its_name(text):
    with pytest.raises(UsageError, match=r"^/work/\.handtools\.toml"):
        tighten(text)


@pytest.mark.parametrize("kind", ["link", "pipe", "large", "folder"])
def test_only_a_small_plain_file_of_a_project_is_read(home, kind):
    file = home / "work/.handtools.toml"
    if kind == "link":
        (home / "secret").write_text('token = "x"\n')
        file.symlink_to(home / "secret")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text("#" * 100_000)
    with pytest.raises(UsageError, match="regular file"):
        load_configuration(home / "work")


def test_every_setting_can_be_written(home):
    text = (
        'preset = "reading"\nrunner = "landlock"\nreadable = ["~/data", "/opt/x"]\npath = ["~/bin"]\n'
        'environment = ["CARGO_HOME"]\nhosts = ["a.example"]\nproxy = "http://me:pw@a.example:3128"\n'
        'formatters = ["ruff"]\nservers = []\nblock = ["jobs"]\n'
        '[limits]\nseconds = 30\nmemory = "1.5 GiB"\nwritten = 1000\nopen_files = 9\n'
        '[notify]\ndesktop = true\nbell = true\ncommand = ["ntfy", "me"]\n[defaults]\nvisit = "deny"\n'
    )
    (home / "config/handtools/config.toml").write_text(text)
    found = load_configuration(home / "work")
    assert found.settings == Settings(
        runner="landlock",
        readable=(f"{home}/home/data", "/opt/x"),
        path=(f"{home}/home/bin",),
        environment=("CARGO_HOME",),
        proxy="http://me:pw@a.example:3128",
        formatters=("ruff",),
        servers=(),
        limits=CommandLimits(seconds=30, memory_bytes=3 << 29, written_bytes=1000, open_files=9),
        notify=Notify(desktop=True, bell=True, command=("ntfy", "me")),
    )
    assert found.preset == "reading"
    assert found.policy == Policy(hosts=("a.example",), block=("jobs",), defaults={"visit": "deny"})


def test_no_other_file_in_the_folder_of_the_configuration_is_read(home):
    folder = home / "config/handtools"
    (folder / "settings.toml").write_text('runner = "plain"\n')
    (folder / "policy.toml").write_text('unattended = "deny"\n')
    assert load_configuration(home / "work") == Configuration(policy=Policy())


def test_a_policy_that_is_named_takes_the_place_of_every_policy_key(home):
    (home / "config/handtools/config.toml").write_text(
        'runner = "plain"\nhosts = ["a.example"]\nports = [3000]\nunattended = "allow"\n'
        '[[rule]]\nname = "all"\nverdict = "allow"\ncommands = ["curl"]\n'
    )
    (home / "token.toml").write_text('unattended = "deny"\n')
    found = load_configuration(home / "work", home / "token.toml")
    assert found.policy == Policy(unattended="deny")
    assert found.settings.runner == "plain"
    (home / "token.toml").write_text('runner = "plain"\n')
    with pytest.raises(UsageError, match=r"token\.toml:1: `runner` is not allowed in this file"):
        load_configuration(home / "work", home / "token.toml")


def test_another_configuration_stands_alone(home, monkeypatch):
    for name in ("config", "settings", "policy"):
        (home / f"config/handtools/{name}.toml").write_text('hosts = ["mine.example"]\n')
    (home / "other.toml").write_text('preset = "everything"\n')
    monkeypatch.setenv(CONFIG_VARIABLE, str(home / "other.toml"))
    found = load_configuration(home / "work")
    assert (found.preset, found.policy.hosts) == ("everything", ())


def test_a_table_of_the_pyproject_tightens_as_the_projects_own_file_does(home):
    (home / "work/pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.handtools]\nblock = ["jobs"]\nhosts = ["evil.example"]\n'
    )
    (home / "work/.handtools.toml").write_text('excluded = ["a"]\n')
    found = load_configuration(home / "work")
    assert (found.policy.block, found.policy.excluded, found.policy.hosts) == (("jobs",), ("a",), ())
    assert "pyproject.toml can only tighten your configuration; ignored: `hosts`" in found.ignored[0]
    (home / "work/pyproject.toml").write_text("[tool.handtools]\nblok = 1\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml:2: `blok` \(did you mean `block`"):
        load_configuration(home / "work")


@pytest.mark.parametrize("text", ["[broken", "x = 1\n", '[tool.other]\na = "[tool.handtools]"\n'])
def test_a_pyproject_without_our_table_is_left_alone(home, text):
    (home / "work/pyproject.toml").write_text(text)
    assert load_configuration(home / "work").sources == ()


def test_a_project_leaves_formatters_and_servers_out_and_adds_none(home):
    mine = Settings(formatters=("ruff", "black"))
    found = tighten('formatters = ["ruff", "prettier"]\nservers = []\n', settings=mine)
    assert (found.settings.formatters, found.settings.servers) == (("ruff",), ())
    assert "has prettier, which yours does not list" in found.ignored[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('readble = ["/opt"]', "`readble` (did you mean `readable`?)"),
        ("[limits]\nmemroy = 1", "`memroy` (did you mean `memory`?)"),
        ('readable = ["data"]', "not an absolute path"),
        ('readable = ["~"]', "more than commands need"),
        ('readable = ["/opt"]', "more than commands need"),
        ('readable = ["~/state"]', "the logs in"),
        ('path = ["~/state/bin"]', "the logs in"),
        ('environment = ["A=b"]', "not a valid variable name"),
        ('hosts = ["http://a.example/x"]', "a.example"),
        ('ports = ["http"]', "http"),
        ('[limits]\nmemory = "much"', "4 GiB"),
        ("[limits]\nseconds = 0", "above 0"),
        ("[limits]\nprocesses = true", "above 0"),
        ("runner = 1", "runner must be a string"),
        ('proxy = "socks5://a.example:1"', "proxy must have the form"),
        ('proxy = "http://a.example"', "proxy must have the form"),
        ('preset = "all"', "preset must be one of"),
        ('formatters = ["gofumpt"]', "has unknown name `gofumpt`. Known: black"),
        ('servers = ["pylsp"]', "has unknown name `pylsp`. Known:"),
        ("[notify]\ndesktop = 1", "notify.desktop must be true or false"),
        ('[notify]\ncommand = "ntfy"', "notify.command must be a list of strings"),
        ('[notify]\ncommand = [" "]', "empty command"),
        ("a = 1\nb = 2", "1 more: run `handtools config check`"),
    ],
)  # fmt: skip
def test_what_can_not_be_meant_is_refused_with_the_name_of_the_file(home, text, told):
    with pytest.raises(UsageError) as caught:
        parse_config_file(text, "config.toml")
    assert str(caught.value).startswith("config.toml:")
    assert told in str(caught.value)


@given(st.text())
def test_no_text_does_more_than_be_refused(text):
    with contextlib.suppress(UsageError):
        assert isinstance(parse_config_file(text, "s")[0], ConfigFile)
    with contextlib.suppress(UsageError):
        assert isinstance(tighten(text), Configuration)


def test_hosts_and_ports_of_the_configuration_do_not_count_beside_a_policy_that_is_named(home):
    (home / "config/handtools/config.toml").write_text('hosts = ["a.example"]\nports = [3000]\n')
    own = load_configuration(home / "work").policy
    assert (own.hosts, own.ports) == (("a.example",), ("3000",))
    (home / "token.toml").write_text('hosts = ["c.example"]\n')
    named = load_configuration(home / "work", home / "token.toml").policy
    assert (named.hosts, named.ports) == (("c.example",), ())


def test_a_readable_path_around_a_workspace_does_not_open_what_is_beside_it(home):
    (home / "config/handtools/config.toml").write_text(
        f'readable = ["{home}/data", "{home}/work/own", "{home}/work"]\n'
    )
    assert load_configuration(home / "work").settings.readable == (f"{home}/data",)
    (home / "data/deep").mkdir(parents=True)
    assert load_configuration(home / "data/deep").settings.readable == (
        f"{home}/work/own",
        f"{home}/work",
    )


def test_a_configuration_that_agents_can_write_is_refused(home, monkeypatch):
    (home / "work/config.toml").write_text("")
    monkeypatch.setenv(CONFIG_VARIABLE, str(home / "work/config.toml"))
    with pytest.raises(UsageError, match="inside the workspace"):
        load_configuration(home / "work")


async def test_the_mcp_server_reads_the_same_files(home):
    (home / "config/handtools/config.toml").write_text('runner = "plain"\nhosts = ["a.example"]\n')
    (home / "work/.handtools.toml").write_text('block = ["jobs"]\nrunner = "bubblewrap"\n')
    async with open_preset(home / "work") as box:
        assert box.workspace.commands.runner.name == "plain"
        assert box.policy.hosts == ("a.example",)
        assert "jobs" not in {each.name for each in box.definitions()}


def test_the_projects_file_is_changed_only_after_a_question():
    change = ChangeSet.of(Change.of(".handtools.toml", before=None, after=b""))
    assert Policy().decide(change, "write").verdict == "ask"
