"""Skill folders on a disk: what is known of them is known for as long as it is true."""

import os
from importlib.metadata import EntryPoint

import pytest

from handtools.host import skills as host_skills
from handtools.host.files.local_files import LocalFiles
from handtools.host.skills import SkillFolders, package_skill_folders, user_skill_folders

OLD = (1_000_000.0, 1_000_000.0)
PAGE = "---\nname: tea\ndescription: Makes tea.\npaths: '*.tea'\n---\nBoil.\n"


class CountedFiles(LocalFiles):
    """Files that know how often they were looked at."""

    looks = 0

    def facts(self, path):
        self.looks += 1
        return super().facts(path)


@pytest.fixture
def skills(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        os.utime(folder, OLD)
    return SkillFolders(CountedFiles(tmp_path), str(tmp_path), local=True)


def test_folders_that_did_not_change_are_not_looked_into_again(skills):
    skills.guides("a/b/x.py")
    skills.skills_matching_path("a/b/x.py")
    before = skills.files.looks
    assert skills.guides("a/b/y.py") == []
    assert skills.skills_matching_path("a/b/y.py") == []
    assert skills.files.looks == before


def test_a_guide_that_came_later_is_found(skills, tmp_path):
    assert skills.guides("a/b/x.py") == []
    (tmp_path / "a" / "AGENTS.md").write_text("new")
    assert skills.guides("a/b/x.py") == ["a/AGENTS.md"]


def test_a_guide_that_went_is_not_told_of(skills, tmp_path):
    guide = tmp_path / "a" / "AGENTS.md"
    guide.write_text("old")
    os.utime(tmp_path / "a", OLD)
    assert skills.guides("a/x.py") == ["a/AGENTS.md"]
    guide.unlink()
    assert skills.guides("a/x.py") == []


def test_a_skill_put_into_a_folder_that_was_there_for_another_reason_is_found(skills, tmp_path):
    (tmp_path / ".claude").mkdir()
    os.utime(tmp_path, OLD)
    assert skills.skills_matching_path("x.tea") == []
    page = tmp_path / ".claude" / "skills" / "tea" / "SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE)
    os.utime(tmp_path, OLD)
    assert [skill.name for skill in skills.skills_matching_path("x.tea")] == ["tea"]


def test_the_folders_of_a_user_follow_the_standards(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    names = [path.relative_to(tmp_path).as_posix() for path in user_skill_folders()]
    assert names == [".agents/skills", ".claude/skills", "conf/handtools/skills"]
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert user_skill_folders()[-1] == tmp_path / ".config" / "handtools" / "skills"


def test_a_package_that_can_not_be_found_has_no_skills(monkeypatch, tmp_path):
    (tmp_path / "teahouse").mkdir()
    points = [
        EntryPoint(name, name, host_skills.SKILLS_ENTRY_POINT)
        for name in ("teahouse", "gone", "gone.inner")
    ]
    monkeypatch.setattr(host_skills, "entry_points", lambda group: points)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_skill_folders() == [tmp_path / "teahouse"]
