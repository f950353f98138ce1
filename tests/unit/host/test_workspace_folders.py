"""The folders of a workspace: their names, and which are refused."""

import pytest

from handtools.core.errors import UsageError
from handtools.host.workspace_folders import (
    combined_workspace,
    is_in_workspace,
    path_in_workspace,
    real_path,
    workspace_folders,
)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))


def made(top, *paths):
    for path in paths:
        (top / path).mkdir(parents=True)
    return [top / path for path in paths]


def test_one_folder_is_its_own_workspace(tmp_path):
    assert combined_workspace(tmp_path) == combined_workspace([tmp_path]) == tmp_path
    assert workspace_folders(tmp_path) == {"": str(tmp_path)}


def test_several_folders_are_shown_by_their_names_in_any_order(tmp_path):
    folders = made(tmp_path, "x/api", "y/web")
    view = combined_workspace(folders)
    assert workspace_folders(view) == {"api": str(folders[0]), "web": str(folders[1])}
    assert combined_workspace(folders[::-1]) == view


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/api", "y/api"], ["x-api", "y-api"]),
        (["x/Api", "y/api", "z/web"], ["web", "x-Api", "y-api"]),
        (["a/x/api", "b/x/api"], ["x-api", "x-api-2"]),
        ([".config", "a b*[c]~"], ["a-b-c", "config"]),
    ],
)
def test_every_folder_has_a_name_of_its_own_that_is_a_plain_path(tmp_path, paths, names):
    assert sorted(workspace_folders(combined_workspace(made(tmp_path, *paths)))) == sorted(names)


@pytest.mark.parametrize("paths", [["x", "x/inner"], ["x/inner", "y", "x"]])
def test_folders_in_each_other_are_refused(tmp_path, paths):
    for path in paths:
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    with pytest.raises(UsageError, match="is inside"):
        combined_workspace([tmp_path / path for path in paths])


def test_a_folder_twice_one_that_is_missing_and_one_with_our_record_are_refused(tmp_path):
    one, two = made(tmp_path, "one", "two")
    (tmp_path / "link").symlink_to(one)
    with pytest.raises(UsageError, match="twice"):
        combined_workspace([one, tmp_path / "link"])
    with pytest.raises(UsageError, match="is not a folder"):
        combined_workspace([one, tmp_path / "missing"])
    (tmp_path / "state").mkdir()
    with pytest.raises(UsageError, match="own state"):
        combined_workspace([two, tmp_path / "state"])
    with pytest.raises(UsageError, match="needs a folder"):
        combined_workspace([])


def test_links_that_a_project_brings_are_no_folders_of_it(tmp_path):
    (project,) = made(tmp_path, "combined/project")
    (project / "etc").symlink_to("/etc")
    assert workspace_folders(project) == {"": str(project)}


def test_a_path_is_known_by_where_it_is_and_by_where_it_is_shown(tmp_path):
    api, web = made(tmp_path, "x/api", "y/web")
    view = combined_workspace([api, web])
    for path in (f"{api}/src/a.py", f"{view}/api/src/a.py"):
        assert path_in_workspace(path, view) == "api/src/a.py"
    assert real_path("api/src/a.py", view) == f"{api}/src/a.py"
    assert path_in_workspace(f"{api}-2/a.py", view) is None
    assert is_in_workspace(web / "a.py", view)
    assert not is_in_workspace(tmp_path / "x", view)
