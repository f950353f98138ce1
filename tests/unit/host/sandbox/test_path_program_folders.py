"""Which folders belong to the programs on a PATH, and which must not be shown for them."""

from pathlib import Path

import pytest

from handtools.host.sandbox.path_program_folders import folders_needed_by_path_programs, passes_through


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def shown(tmp_path, home):
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir()

    def found(*places):
        path = ":".join(map(str, places))
        return {
            Path(each)
            for each in folders_needed_by_path_programs(
                path, str(tmp_path / "work"), str(tmp_path / "state")
            )
        }

    return found


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_virtual_environment_is_shown_with_its_base_interpreter(tmp_path, shown):
    base, made = tmp_path / "base", tmp_path / "envs" / "dev"
    program(base / "bin" / "python")
    (base / "lib").mkdir()
    program(made / "bin" / "tool")
    (made / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.11\n")
    assert shown(made / "bin") == {made / "bin", made, base / "bin", base / "lib"}


def test_libraries_beside_programs_are_shown_but_not_the_rest_of_the_prefix(tmp_path, shown):
    prefix = tmp_path / "node"
    program(prefix / "bin" / "node")
    for name in ("lib", "share", "secrets"):
        (prefix / name).mkdir()
    assert shown(prefix / "bin") == {prefix / "bin", prefix / "lib", prefix / "share"}


def test_of_a_checkout_only_the_folder_on_path_is_shown(tmp_path, shown):
    program(tmp_path / "dotfiles" / "bin" / "tool")
    (tmp_path / "dotfiles" / "lib").mkdir()
    (tmp_path / "dotfiles" / ".git").mkdir()
    assert shown(tmp_path / "dotfiles" / "bin") == {tmp_path / "dotfiles" / "bin"}


def test_of_a_folder_in_the_home_folder_the_home_folder_is_not_shown(home, shown):
    program(home / "bin" / "tool")
    program(home / ".local" / "bin" / "tool")
    program(home / ".cargo" / "bin" / "cargo")
    (home / "lib").mkdir()
    (home / ".local" / "share").mkdir()
    places = {home / "bin", home / ".local" / "bin", home / ".cargo" / "bin"}
    assert shown(*places) == places


def test_a_link_shows_its_target_alone_unless_that_is_installed(tmp_path, home, shown):
    script = program(home / "notes" / "script.sh")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "script").symlink_to(script)
    assert shown(home / ".local" / "bin") == {home / ".local" / "bin", script}


def test_too_much_is_never_shown(tmp_path, home, shown):
    (home / ".ssh").mkdir()
    (tmp_path / "state" / "bin").mkdir()
    places = (
        "/",
        "/root",
        "/tmp",
        home,
        tmp_path,
        home / ".ssh",
        tmp_path / "state" / "bin",
        "relative",
        "",
    )
    assert shown(*places) == set()


def test_what_the_workspace_says_shows_nothing(tmp_path, home, shown):
    secret = program(home / "secrets" / "token")
    own = tmp_path / "work" / ".venv"
    program(own / "bin" / "python")
    (own / "pyvenv.cfg").write_text(f"home = {secret.parent}\n")
    (tmp_path / "work" / "tool").symlink_to(secret)
    (tmp_path / "work" / "folder").symlink_to(secret.parent)
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "tool").symlink_to(tmp_path / "work" / "tool")
    (home / ".local" / "bin" / "token").symlink_to(home / "way" / "token")
    (home / "way").symlink_to(tmp_path / "work" / "folder")
    assert shown(own / "bin", home / ".local" / "bin", home / "way") == {home / ".local" / "bin"}


def test_system_folders_are_shown_anyway_and_not_named_again(shown):
    assert shown("/usr/bin", "/bin", "/usr/local/bin") == set()


def test_a_way_through_a_folder_is_found_over_links_and_dots(tmp_path):
    inner, outside = tmp_path / "inner", tmp_path / "outside"
    inner.mkdir()
    outside.mkdir()
    (inner / "out").symlink_to("../outside")
    (outside / "in").symlink_to(inner / "out")
    assert passes_through(str(inner / "out"), str(inner))
    assert passes_through(str(outside / "in"), str(inner))
    assert passes_through(str(outside / ".." / "inner"), str(inner))
    assert not passes_through(str(outside), str(inner))
    (outside / "loop").symlink_to("loop")
    assert passes_through(str(outside / "loop"), str(inner))
