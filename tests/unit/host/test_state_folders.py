"""Where the record of a workspace is kept."""

import pytest

from handtools.core.errors import HostError
from handtools.host.workspace_folders import state_folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("HANDTOOLS_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_it_is_outside_the_workspace_and_closed_to_others(home):
    root = home / "my project"
    root.mkdir()
    folder = state_folder(root)
    assert folder.parent == home / "state" / "handtools"
    assert folder.name.startswith("my-project-")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(root.iterdir()) == []


def test_one_workspace_has_one_folder_however_it_is_reached(home):
    (home / "real").mkdir()
    (home / "alias").symlink_to("real")
    assert state_folder(home / "alias") == state_folder(str(home / "real"))


def test_workspaces_of_one_name_have_folders_of_their_own(home):
    assert state_folder(home / "a" / "x") != state_folder(home / "b" / "x")


def test_a_folder_that_was_open_to_others_is_closed(home):
    folder = state_folder(home / "x")
    folder.chmod(0o755)
    assert state_folder(home / "x").stat().st_mode & 0o777 == 0o700


def test_another_folder_can_be_given(home, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(home / "elsewhere"))
    assert state_folder(home / "x").parent == home / "elsewhere"


def test_a_relative_standard_folder_is_ignored(home, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(home))
    assert state_folder(home / "x").parent == home / ".local" / "state" / "handtools"


def test_the_root_of_the_disk_has_a_name(home):
    from pathlib import Path

    from handtools.host.workspace_folders import workspace_id

    assert workspace_id(Path("/")).startswith("root-")


def test_a_record_inside_the_workspace_is_refused(home, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(home / "x" / "state"))
    with pytest.raises(HostError, match="inside"):
        state_folder(home / "x")
    assert not (home / "x").exists()


def test_a_folder_that_cannot_be_made_says_what_to_do(home, monkeypatch):
    (home / "file").write_bytes(b"")
    monkeypatch.setenv("HANDTOOLS_STATE", str(home / "file"))
    with pytest.raises(HostError, match="HANDTOOLS_STATE"):
        state_folder(home / "x")
