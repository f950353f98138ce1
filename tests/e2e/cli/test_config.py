"""`handtools config` and `init`: what is in force and from where, and a first file."""

import json
import os

import pytest

from handtools.configuration import load_configuration
from handtools.configuration.schema import parse_config_file
from handtools.toolbox import local_workspace
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.cli.test_asking import at_terminal


@pytest.fixture
def person(shell, tmp_path):
    def run(*words, **environment):
        own = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HANDTOOLS_RUNNER": ""}
        return shell.run(*words, **own | environment)

    return run


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "config/handtools/config.toml"
    file.parent.mkdir(parents=True)
    return file


def test_each_value_in_force_is_shown_with_its_file_and_line(person, shell, file):
    file.write_text('# mine\nhosts = ["a.example"]\n\n[limits]\nmemory = "4 GiB"\nseconds = 60\n')
    (shell.folder / ".handtools.toml").write_text('hosts = ["evil.example"]\n[limits]\nmemory = "1 GiB"\n')
    rows = {row["key"]: row for row in person("config", "show", "--json").rows}
    assert rows["hosts"]["value"] == ["a.example"]
    assert rows["hosts"]["origins"] == [{"file": str(file), "line": 2, "project": False}]
    assert rows["hosts"]["ignored"][0]["line"] == 1
    assert rows["limits.memory"]["value"] == 1 << 30
    assert [(each["line"], each["project"]) for each in rows["limits.memory"]["origins"]] == [(3, True)]
    assert rows["limits.seconds"]["origins"][0]["line"] == 6
    assert "preset" not in rows
    told = person("config")
    assert f"{file}:2" in told.out
    assert ".handtools.toml:3 (project)" in told.out
    assert "ignored: `hosts`" in told.err
    assert "preset" in person("config", "show", "--all").out


def test_a_variable_that_goes_first_is_named(person, file):
    file.write_text('runner = "plain"\n')
    said = person("config", "explain", "runner", HANDTOOLS_RUNNER="landlock").out
    assert "in force     landlock" in said
    assert "from         HANDTOOLS_RUNNER" in said


def test_explain_says_what_a_key_means_and_a_near_one(person, file):
    file.write_text("[limits]\nseconds = 5\n")
    said = person("config", "explain", "limits.seconds").out
    for part in ("does not apply to background jobs", "can lower it", "in force     5", f"{file}:2"):
        assert part in said
    wrong = person("config", "explain", "limits.second")
    assert wrong.code == 1
    assert "`limits.seconds`" in wrong.err


def test_check_names_every_problem_with_its_line(person, file):
    file.write_text("[limits]\nseconds = 0\nmemroy = 1\n")
    ran = person("config", "check", "--json")
    assert ran.code == 1
    assert [problem["line"] for problem in ran.json["problems"]] == [2, 3]
    told = person("config", "check").err
    assert f"{file}:2" in told
    assert "did you mean `memory`" in told
    file.write_text("[limits]\nseconds = 1\n")
    assert person("config", "check").code == 0


def test_the_schema_is_json_schema_that_knows_every_table(person):
    schema = person("config", "schema").json
    assert schema["properties"]["hosts"]["description"].startswith("Hosts")
    assert schema["$defs"]["LimitsTable"]["properties"]["memory"]["anyOf"] == [
        {"type": "integer"},
        {"type": "string"},
    ]


def test_init_writes_what_the_options_say_and_changes_no_file(person, file):
    alone = person("init")
    assert alone.code == 1
    assert "Pass --commands" in alone.err
    ran = person("init", "--commands", "ask", "--host", "docs.example", "--notify", "bell")
    assert ran.code == 0, ran
    values, keys = parse_config_file(file.read_text(), "config.toml")
    assert (values.hosts, values.notify.bell, values.defaults.run) == (["docs.example"], True, "ask")
    assert keys == {"hosts", "notify", "defaults"}
    assert json.loads(file.with_name("config.schema.json").read_text())["title"] == "ConfigFile"
    before = file.read_text()
    again = person("init", "--yes")
    assert again.code == 1
    assert "handtools config edit" in again.err
    assert file.read_text() == before


def test_a_host_that_is_none_is_not_written(person, file):
    assert "not a valid list of hosts" in person("init", "--yes", "--host", "http://x/y").err
    assert not file.exists()


def test_init_asks_three_questions_at_a_terminal(shell, file, tmp_path):
    keys = [("[Y/n]", "n\n"), ("(optional)", "a.example b.example\n"), ("[none]", "desk\n")]
    code, shown = at_terminal(shell, "init", answers=keys, XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert code == 0, shown
    values, _ = parse_config_file(file.read_text(), "config.toml")
    assert (values.defaults.run, values.hosts, values.notify.desktop) == (
        "ask",
        ["a.example", "b.example"],
        True,
    )


def test_edit_opens_the_file_with_every_key_explained_and_checks_it(shell, file, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ncp "$1" "$1.seen"\necho \'blok = 1\' >> "$1"\n')
    editor.chmod(0o755)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "VISUAL": str(editor)}
    code, shown = at_terminal(shell, "config", "edit", answers=[], **environment)
    assert code == 1
    assert "did you mean `block`" in shown
    template = (tmp_path / "config/handtools/config.toml.seen").read_text()
    assert "# memory =" in template
    assert parse_config_file(template, "t")[1] == frozenset()


@pytest.mark.parametrize(
    "line", ['block = ["shell"]', 'allow = ["Read"]', '[[rule]]\nname="x"\nverdict="deny"\ntools=["bahs"]']
)
def test_a_tool_that_is_not_there_is_an_error_wherever_it_is_named(person, file, line):
    file.write_text(f"{line}\n")
    checked = person("config", "check")
    assert checked.code == 1
    assert f"{file}: The policy: " in checked.err
    ran = person("call", "think", "thought=x")
    assert ran.code != 0
    assert "The policy: " in ran.err


def test_a_tool_that_is_not_there_can_not_be_blocked_on_the_command_line(person, shell):
    ran = person("mcp", str(shell.folder), "--block", "Bash")
    assert ran.code != 0
    assert "vendor's name for `bash`" in ran.err


def test_formatters_and_servers_that_are_left_out_do_not_run(shell, file, monkeypatch):
    file.write_text("formatters = []\nservers = []\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file.parents[1]))
    monkeypatch.setenv("HANDTOOLS_STATE", str(shell.state))
    monkeypatch.setenv("PATH", f"{HANDTOOLS.parent}{os.pathsep}{os.environ['PATH']}")
    (shell.folder / "ruff.toml").write_text("")
    within = local_workspace(shell.folder, settings=load_configuration(shell.folder).settings)
    without = local_workspace(shell.folder)
    try:
        assert (within.formatters.formats("a.py"), without.formatters.formats("a.py")) == (False, True)
        assert within.language.known_servers() == []
        assert "turned off" in within.language.missing_server_sentence("a.py")
    finally:
        within.journal.close()
        without.journal.close()


def test_gc_lets_go_of_what_is_above_the_limits_and_only_when_told(shell):
    for mode in ("create", "overwrite", "overwrite", "overwrite"):
        given = json.dumps({"path": "a.txt", "mode": mode, "content": os.urandom(1 << 20).hex()})
        assert shell.run("call", "write", "-", stdin=given).code == 0
    assert len(shell.run("versions", "a.txt", "--json").rows) == 4
    tried = shell.run("gc", "--megabytes", "1", "--dry-run", "--json").json
    assert tried["excess_bytes"] > 0
    untold = shell.run("gc", "--megabytes", "1")
    assert untold.code == 1
    assert "above the limit. No terminal to confirm on" in " ".join(untold.err.split())
    assert untold.err.splitlines()[-1].startswith("  → ")
    assert len(shell.run("versions", "a.txt", "--json").rows) == 4
    done = shell.run("gc", "--megabytes", "1", "--yes", "--json").json
    assert done["freed_bytes"] >= tried["excess_bytes"]
    assert len(shell.run("versions", "a.txt", "--json").rows) < 4
    assert shell.run("gc", "--megabytes", "1", "--dry-run", "--json").json["excess_bytes"] == 0


def test_gc_asks_for_nothing_where_nothing_is_old(shell):
    shell.write("a.txt", "one\n")
    ran = shell.run("gc")
    assert (ran.code, ran.err) == (0, "Nothing is older than 90 days or above the limit.\n")
    assert shell.run("gc", "--json").json["freed_bytes"] == 0


def test_checking_without_a_file_says_that_all_is_as_built_in(shell, tmp_path):
    ran = shell.run("config", "check", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert (ran.code, ran.err) == (0, "No configuration file; using defaults.\n")
