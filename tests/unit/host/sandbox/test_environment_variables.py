"""What a command finds in its environment."""

from handtools.host.sandbox.environment_variables import (
    CERTIFICATE_VARIABLES,
    INHERITED_VARIABLES,
    NONINTERACTIVE_VARIABLES,
    command_environment,
)


def test_only_what_is_listed_passes(monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "PYTHONPATH", "CARGO_HOME"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    found = command_environment({}, frozenset({"CARGO_HOME"}), terminal=False)
    assert found["LC_ALL"] == "C.UTF-8"
    assert found["CARGO_HOME"] == "x"
    listed = INHERITED_VARIABLES | CERTIFICATE_VARIABLES | set(NONINTERACTIVE_VARIABLES)
    assert set(found) <= listed | {
        "CARGO_HOME",
        "LC_ALL",
        *(n for n in found if n.startswith("LC_")),
    }


def test_what_is_given_goes_before_everything():
    assert command_environment({"PAGER": "less"}, frozenset(), terminal=False)["PAGER"] == "less"


def test_there_is_always_a_path(monkeypatch):
    monkeypatch.delenv("PATH")
    assert "/usr/bin" in command_environment({}, frozenset(), terminal=False)["PATH"]


def test_a_terminal_has_a_kind_that_the_screen_can_draw():
    assert command_environment({}, frozenset(), terminal=True)["TERM"] == "xterm"
    assert command_environment({}, frozenset(), terminal=False)["TERM"] == "dumb"
