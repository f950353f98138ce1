"""Home: where it is, and what is so without one."""

from pathlib import Path

import pytest

from handtools.core.errors import HostError
from handtools.host.files.config_files import policy_file
from handtools.host.home_folders import config_home, required_home, state_home, user_home
from handtools.host.skills import user_skill_folders
from handtools.host.workspace_folders import state_folder


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "HANDTOOLS_STATE", "HANDTOOLS_POLICY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("given", ["", "relative/path"])
def test_a_home_that_is_no_folder_is_none(monkeypatch, tmp_path, given):
    monkeypatch.setenv("HOME", given)
    assert (user_home(), config_home(), state_home()) == (None, None, None)
    assert user_skill_folders() == []
    assert policy_file(tmp_path) is None
    with pytest.raises(HostError, match="Set HANDTOOLS_STATE to a folder"):
        state_folder(tmp_path)
    with pytest.raises(HostError, match="Set HOME"):
        required_home("settings")


def test_what_is_named_comes_first_unless_it_is_relative(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert config_home() == Path("/home/someone/.config")
    assert state_home() == Path("/elsewhere")
