"""The person's settings in force: what a command finds, reads and may use, and what `doctor` says of it."""

import os

import pytest

PROBE = "data=$(cat {data}/x); echo data=$data; probe-tool; echo special=$SPECIAL"


@pytest.fixture
def person(shell, tmp_path):
    """A person with a folder of data, a folder of programs, and settings that are written by the test."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").write_text("read")
    (tmp_path / "tools/bin").mkdir(parents=True)
    tool = tmp_path / "tools/bin/probe-tool"
    tool.write_text("#!/bin/sh\necho tool=ran\n")
    tool.chmod(0o755)

    def run(*words, settings="", **environment):
        (tmp_path / "config/handtools").mkdir(parents=True, exist_ok=True)
        (tmp_path / "config/handtools/config.toml").write_text(settings)
        environment = {"XDG_CONFIG_HOME": str(tmp_path / "config"), **environment}
        return shell.run(*words, **environment)

    return run


@pytest.mark.linux("bubblewrap or Landlock")  # else a command finds all that the person does
def test_a_command_finds_what_the_settings_name_and_nothing_else(person, tmp_path):
    script = "command=" + PROBE.format(data=tmp_path / "data")
    without = person("call", "bash", script, SPECIAL="9")
    for found in ("data=read", "tool=ran", "special=9"):
        assert found not in without.out
    settings = (
        f'readable = ["{tmp_path}/data"]\npath = ["{tmp_path}/tools/bin", "{tmp_path}/not-there"]\n'
        'environment = ["SPECIAL"]\n'
    )
    within = person("call", "bash", script, settings=settings, SPECIAL="9", OTHER="8")
    for found in ("data=read", "tool=ran", "special=9"):
        assert found in within.out, within
    writing = person("call", "bash", f"command=echo x > {tmp_path}/data/x", settings=settings)
    assert "Exit code 1" in writing.out
    assert (tmp_path / "data/x").read_text() == "read"


def test_limits_and_the_runner_are_the_settings_own(person, commands_allowed, monkeypatch):
    late = person("call", "bash", "command=tail -f /dev/null", settings="[limits]\nseconds = 1\n")
    assert "Timed out after" in late.out
    files = person("call", "bash", "command=ulimit -n", settings="[limits]\nopen_files = 77\n")
    monkeypatch.delenv("HANDTOOLS_POLICY")
    assert files.out.startswith("77\n")
    plain = person("call", "bash", "command=true", settings='runner = "plain"\n')
    assert plain.code == 3  # without a boundary it is asked about
    unknown = person("call", "bash", "command=true", settings='runner = "cage"\n')
    assert "no runner called cage" in unknown.err


def test_a_key_that_means_nothing_stops_with_the_near_one(person):
    ran = person("call", "bash", "command=true", settings='readabel = ["/opt"]\n')
    assert ran.code == 1
    assert "config.toml" in ran.err
    assert "did you mean `readable`" in ran.err


def test_a_hostile_project_opens_nothing(person, shell, tmp_path):
    (shell.folder / ".handtools.toml").write_text(
        f'readable = ["{tmp_path}/data"]\npath = ["{tmp_path}/tools/bin"]\nenvironment = ["SPECIAL"]\n'
        'hosts = ["evil.example"]\nrunner = "plain"\nunattended = "allow"\n[defaults]\nrun = "allow"\n'
    )
    ran = person("call", "bash", "command=" + PROBE.format(data=tmp_path / "data"), SPECIAL="9")
    for found in ("data=read", "tool=ran", "special=9"):
        assert found not in ran.out
    for key in ("readable", "path", "environment", "hosts", "runner", "unattended", "run"):
        assert f"`{key}" in ran.err


def test_doctor_names_the_files_the_policy_and_what_is_hidden(person, shell, tmp_path):
    (shell.folder / ".handtools.toml").write_text('block = ["jobs"]\nhosts = ["evil.example"]\n')
    place = f"{tmp_path}/tools/bin{os.pathsep}{os.environ['PATH']}"
    rows = {
        row["name"]: row
        for row in person("doctor", "--json", settings='environment = ["SPECIAL"]\n', PATH=place).json[
            "findings"
        ]
    }
    assert "config.toml; environment SPECIAL" in rows["settings"]["told"]
    assert "run allow in a sandbox, otherwise ask" in rows["policy"]["told"]
    assert "not offered: jobs" in rows["policy"]["told"]
    assert "ignored: `hosts`" in rows["project"]["told"]
    assert rows["PATH"]["told"].startswith(f"{tmp_path}/tools/bin{os.pathsep}")
    broken = person("doctor", "--json", settings="colour = 1\n")
    assert broken.code == 1
    assert "`colour`" in broken.out


@pytest.mark.linux("bubblewrap or Landlock")  # else nothing is hidden from commands
def test_doctor_says_which_programs_on_the_path_commands_do_not_see(person, tmp_path):
    # A folder of credentials is not shown because it is on the PATH.
    secret = tmp_path / ".aws/bin"
    secret.mkdir(parents=True)
    (secret / "secret-tool").write_text("#!/bin/sh\n")
    (secret / "secret-tool").chmod(0o755)
    settings = f'path = ["{tmp_path}/tools/bin", "{secret}"]\n'
    said = person("doctor", settings=settings)
    assert "hidden from commands" in said.out
    assert "1 of 1 programs: secret-tool" in said.out
    assert "probe-tool" not in said.out
    assert "secret-tool" not in person("doctor", settings=f'{settings}readable = ["{secret}"]\n').out
