"""Skills on the command line: all of them, and the strict report."""

import pytest

GOOD = "---\nname: tea\ndescription: Makes tea.\n---\nBoil.\n"
BAD = "---\nname: Coffee\ndescription: Use when: tired\nversion: 2\n---\nGrind.\n"


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def put(folder, text):
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)


def test_skills_are_listed_with_what_is_wrong(shell, home):
    put(shell.folder / ".agents" / "skills" / "tea", GOOD)
    put(shell.folder / ".claude" / "skills" / "coffee", BAD)
    ran = shell.run("skills", **home)
    assert ran.code == 0
    assert "Makes tea." in ran.out
    assert "a-z, 0-9" in ran.out
    assert "Line 3 has a colon" in ran.out
    assert "`version` is not in the specification" in ran.out


def test_strict_fails_when_something_is_wrong_and_only_then(shell, home):
    put(shell.folder / ".agents" / "skills" / "tea", GOOD)
    assert shell.run("skills", "--strict", **home).code == 0
    put(shell.folder / ".agents" / "skills" / "coffee", BAD)
    assert shell.run("skills", "--strict", **home).code == 1


def test_a_skill_that_a_nearer_one_covers_is_named(shell, home, tmp_path):
    put(shell.folder / ".agents" / "skills" / "tea", GOOD)
    put(tmp_path / "home" / ".agents" / "skills" / "tea", GOOD)
    near, far = shell.run("skills", "--json", **home).rows
    assert (near["origin"], near["problems"]) == ("workspace", [])
    assert "Hidden by" in far["problems"][0]


def test_a_folder_without_skills_says_where_they_would_be(shell, home):
    ran = shell.run("skills", **home)
    assert (ran.code, ran.out) == (0, "")
    assert ".agents/skills" in ran.err
