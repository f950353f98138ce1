"""Finding: which server a file has, without starting any."""

import pytest

from handtools.host.language.servers import LANGUAGE_SERVERS, ServerFinder, file_suffix


@pytest.fixture
def place(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("pyright-langserver", "ty", "ruff", "gopls"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    root = tmp_path / "work"
    root.mkdir()
    return root, str(programs)


def finder(place):
    root, programs = place
    return ServerFinder(str(root), LANGUAGE_SERVERS, confined=lambda: True, search_path=programs)


def names(place, path):
    return [each.server.name for each in finder(place).servers_of_file(path)]


def test_the_first_of_several_is_taken_unless_the_project_has_settings_for_another(place):
    root, _ = place
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert names(place, "a.py") == ["pyright"]
    (root / "pyproject.toml").write_text("[tool.ty.rules]\n")
    assert names(place, "a.py") == ["ty"]


def test_a_linter_joins_in_where_the_project_has_settings_for_it(place):
    (place[0] / "pyproject.toml").write_text("[tool.ruff]\n")
    assert names(place, "a.py") == ["pyright", "ruff"]


def test_the_nearest_project_counts_and_none_above_the_workspace(place):
    root, _ = place
    (root.parent / "go.mod").write_text("module above\n")
    (root / "go.mod").write_text("module outer\n")
    (root / "in" / "deep").mkdir(parents=True)
    (root / "in" / "go.mod").write_text("module inner\n")
    (found,) = finder(place).servers_of_file("in/deep/a.go")
    assert found.root == str(root / "in")
    (root / "in" / "go.mod").unlink()
    (root / "go.mod").unlink()
    assert finder(place).servers_of_file("in/deep/a.go") == []


def test_without_a_project_no_server_is_used_and_the_reason_is_given(place):
    assert names(place, "a.py") == []
    assert "is not in a project" in finder(place).missing_server_sentence("a.py")
    (place[0] / ".git").mkdir()
    assert names(place, "a.py") == ["pyright"]


def test_a_missing_server_comes_with_the_command_that_installs_it(place):
    (place[0] / "Cargo.toml").write_text("")
    assert not finder(place).speaks("a.rs")
    assert "rustup component add rust-analyzer" in finder(place).missing_server_sentence("a.rs")
    assert "No language server is known" in finder(place).missing_server_sentence("a.unheard")


def test_an_old_compiler_is_no_server(place, tmp_path):
    root, _ = place
    (root / "tsconfig.json").write_text("{}")
    for version, found in (("5.9.3", False), ("7.0.2", True)):
        package = tmp_path / f"v{version}" / "node_modules" / "typescript"
        (package / "bin").mkdir(parents=True)
        (package / "package.json").write_text(f'{{"version": "{version}"}}')
        (package / "bin" / "tsc").write_text("#!/bin/sh\n")
        (package / "bin" / "tsc").chmod(0o755)
        looked = ServerFinder(
            str(root),
            LANGUAGE_SERVERS,
            confined=lambda: True,
            search_path=str(package / "bin"),
        )
        assert looked.speaks("a.ts") is found


def test_a_suffix_is_what_follows_the_last_dot():
    assert [file_suffix(each) for each in ("a/b.c/d.PY", "x.tar.gz", ".bashrc", "Makefile")] == [
        ".py",
        ".gz",
        "",
        "",
    ]


@pytest.mark.parametrize("settings", ["x = " + "[" * 100_000, None])
def test_settings_that_are_deep_or_a_device_choose_nothing(tmp_path, settings):
    root, programs = tmp_path / "work", tmp_path / "bin"
    for folder in (root, programs):
        folder.mkdir()
    (programs / "pyright-langserver").write_text("#!/bin/sh\n")
    (programs / "pyright-langserver").chmod(0o755)
    if settings is None:
        (root / "pyproject.toml").symlink_to("/dev/zero")
    else:
        (root / "pyproject.toml").write_text(settings)
    finder = ServerFinder(str(root), LANGUAGE_SERVERS, confined=lambda: True, search_path=str(programs))
    assert [each.server.name for each in finder.servers_of_file("a.py")] == ["pyright"]
