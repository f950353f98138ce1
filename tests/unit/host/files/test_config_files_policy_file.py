"""Where the policy of this machine is looked for."""

import pytest

from handtools import UsageError
from handtools.host.files.config_files import POLICY_VARIABLE, policy_file, read_config_file


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv(POLICY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    return tmp_path


def test_without_a_file_there_is_none(home):
    assert policy_file(home / "work") is None


def test_a_file_that_is_named_goes_first_and_must_be_there(home, monkeypatch):
    monkeypatch.setenv(POLICY_VARIABLE, str(home / "other.toml"))
    assert policy_file(home / "work") == home / "other.toml"
    assert policy_file(home / "work", home / "given.toml") == home / "given.toml"
    with pytest.raises(UsageError, match="Can't read"):
        read_config_file(home / "given.toml")


@pytest.mark.parametrize("way", ["plain", "by a link"])
def test_a_file_that_agents_can_write_is_refused(home, way):
    inside = home / "work/policy.toml"
    inside.write_text("")
    named = inside
    if way == "by a link":
        named = home / "outside.toml"
        named.symlink_to(inside)
    with pytest.raises(UsageError, match="inside the workspace"):
        policy_file(home / "work", named)
