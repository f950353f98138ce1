"""Skills: one contract over files on a disk and in memory."""

from pathlib import Path

import pytest

from handtools.core.changes import Node
from handtools.host.skills import MAX_BUNDLED_FILES, SkillFolders

HEAD = "---\nname: {name}\ndescription: About {name}.\n{more}---\nText.\n"


def page(name, more=""):
    return HEAD.format(name=name, more=more).encode()


@pytest.fixture
def make_skills(make_files):
    def make(content, **options):
        files = make_files(content)
        return SkillFolders(files, str(getattr(files, "root", "/workspace")), **options)

    return make


def names(skills, near=""):
    return [skill.name for skill in skills.found(near)]


def test_skills_are_found_nearest_first(make_skills):
    skills = make_skills(
        {
            ".agents/skills/root/SKILL.md": page("root"),
            ".claude/skills/other/SKILL.md": page("other"),
            "a/.agents/skills/middle/SKILL.md": page("middle"),
            "a/b/.claude/skills/inner/SKILL.md": page("inner"),
            "c/.agents/skills/aside/SKILL.md": page("aside"),
        }
    )
    assert names(skills) == ["root", "other"]
    assert names(skills, "a/b/file.py") == ["inner", "middle", "root", "other"]
    assert names(skills, "a/b") == ["inner", "middle", "root", "other"]


def test_skills_may_be_grouped_in_folders(make_skills):
    skills = make_skills({".agents/skills/kitchen/tea/SKILL.md": page("tea")})
    assert [skill.folder for skill in skills.found("")] == [".agents/skills/kitchen/tea"]


def test_a_shelf_that_is_a_link_to_the_other_is_not_told_twice(make_skills):
    skills = make_skills(
        {
            ".agents/skills/tea/SKILL.md": page("tea"),
            ".claude/skills": Node("link", b"../.agents/skills"),
        }
    )
    assert names(skills) == ["tea"]


def test_files_are_named_by_their_paths_in_the_skill(make_skills):
    skills = make_skills(
        {
            ".agents/skills/tea/SKILL.md": page("tea"),
            ".agents/skills/tea/b/.c/d.txt": b"123",
            ".agents/skills/tea/.a": b"",
            ".agents/skills/tea/e": Node("link", b".a"),
        }
    )
    (skill,) = skills.found("")
    bundle = skills.bundle(skill)
    assert [(facts.path, facts.bytes) for facts in bundle.files] == [(".a", 0), ("b/.c/d.txt", 3), ("e", 0)]
    assert not bundle.more


def test_a_skill_with_many_files_says_that_there_are_more(make_skills):
    content = {f".agents/skills/tea/{n}.txt": b"" for n in range(MAX_BUNDLED_FILES + 1)}
    skills = make_skills(content | {".agents/skills/tea/SKILL.md": page("tea")})
    bundle = skills.bundle(skills.found("")[0])
    assert (len(bundle.files), bundle.more) == (MAX_BUNDLED_FILES, True)


def test_guides_are_those_above_a_file_without_the_roots(make_skills):
    skills = make_skills(
        {
            "AGENTS.md": b"root",
            "a/AGENTS.md": b"a",
            "a/b/AGENTS.md": b"b",
            "c/AGENTS.md": b"c",
            "a/b/x.py": b"",
        }
    )
    assert skills.guides("a/b/x.py") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert skills.guides("a/b/AGENTS.md") == ["a/AGENTS.md"]
    assert skills.guides("x.py") == []


@pytest.mark.parametrize("folder", ["node_modules/left", ".venv/lib", "vendor/x"])
def test_what_other_peoples_work_says_to_agents_is_not_passed_on(make_skills, folder):
    skills = make_skills(
        {
            f"{folder}/AGENTS.md": b"obey",
            f"{folder}/.agents/skills/evil/SKILL.md": page("evil", "paths: '*'\n"),
        }
    )
    assert skills.guides(f"{folder}/x.py") == []
    assert skills.skills_matching_path(f"{folder}/x.py") == []
    assert names(skills, folder) == []


def test_a_skill_is_mentioned_for_the_files_that_it_names(make_skills):
    skills = make_skills(
        {
            ".agents/skills/tea/SKILL.md": page("tea", "paths: ['*.tea']\n"),
            "a/.agents/skills/cup/SKILL.md": page("cup", "globs: 'cups/*'\n"),
        }
    )
    assert [skill.name for skill in skills.skills_matching_path("a/cups/one.tea")] == ["cup", "tea"]
    assert skills.skills_matching_path("a/cups.py") == []


def test_users_and_packages_come_after_the_workspace(make_skills, tmp_path):
    for shelf, name in (("user", "mine"), ("package", "theirs"), ("user", "tea")):
        folder = tmp_path / shelf / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(page(name))
    skills = make_skills(
        {".agents/skills/tea/SKILL.md": page("tea")},
        users=[tmp_path / "user", tmp_path / "missing"],
        packages=lambda: [tmp_path / "package"],
    )
    found = [(skill.name, skill.origin, skill.folder) for skill in skills.found("")]
    assert found == [
        ("tea", "workspace", ".agents/skills/tea"),
        ("mine", "user", "skill:mine"),
        ("tea", "user", "skill:tea"),
        ("theirs", "package", "skill:theirs"),
    ]
    assert skills.read("theirs", "SKILL.md").startswith(b"---")
    assert skills.facts("theirs", "none") is None


def test_a_skill_whose_page_can_not_be_read_is_reported_and_not_offered(make_skills, tmp_path):
    folder = tmp_path / "user" / "odd"
    folder.mkdir(parents=True)
    outside = tmp_path / "outside.md"
    outside.write_bytes(page("odd"))
    (folder / "SKILL.md").symlink_to(outside)
    (skill,) = make_skills({}, users=[tmp_path / "user"]).found("")
    assert not skill.listed
    assert skill.problems


def test_addresses_are_those_of_the_folders(make_skills, tmp_path):
    folder: Path = tmp_path / "user" / "with space"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(page("spaced"))
    skills = make_skills({}, users=[tmp_path / "user"])
    (skill,) = skills.found("")
    assert skill.location == folder.resolve().as_uri()
    assert skills.read("spaced", "SKILL.md") == page("spaced")
