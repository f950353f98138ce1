"""Skill: the list, and one of them with its files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from handtools.core.call import Call
from handtools.core.callbacks import Callbacks
from handtools.host.skills import SkillFolders
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import EVERYTHING, Toolbox, local_workspace
from handtools.tools.attach import MAX_MB, attach
from handtools.tools.read import read
from handtools.tools.skill import skill

TEA = b"---\nname: tea\ndescription: Makes tea.\n---\n# Tea\n\nBoil water.\n"
FILES = {
    ".agents/skills/tea/SKILL.md": TEA,
    ".agents/skills/tea/.hidden/leaf.txt": b"green",
    ".agents/skills/tea/scripts/boil.sh": b"echo hot",
    ".claude/skills/coffee/SKILL.md": b"---\nname: coffee\ndescription: Makes coffee.\n---\nGrind.\n",
    "shop/.agents/skills/tea/SKILL.md": b"---\nname: tea\ndescription: Sells tea.\n---\nSell.\n",
}


def box(files=FILES, **options):
    return memory_toolbox(files, tools=[skill, read], **options)


def local_box(tmp_path, **options):
    root, home = tmp_path / "work", tmp_path / "home" / "skills"
    root.mkdir(exist_ok=True)
    workspace = local_workspace(root, state=tmp_path / "state", skills=None)
    folders = SkillFolders(workspace.files, str(root), local=True, users=[home])
    workspace = local_workspace(root, state=tmp_path / "state", skills=folders)
    return Toolbox([skill, read], workspace=workspace, **options), root, home


def put(folder: Path, text=TEA, **files):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_bytes(text)
    for name, data in files.items():
        (folder / name).write_text(data)


@pytest.mark.claim("skill.list")
async def test_without_a_name_the_skills_are_listed_with_what_they_are_for():
    result = await box().call("skill", {})
    assert result.text.startswith("- tea: Makes tea.\n- coffee: Makes coffee.\n(In file:///")
    assert result.text.endswith("/.agents/skills, file:///workspace/.claude/skills.)")
    assert [entry.path for entry in result.details.skills] == [
        ".agents/skills/tea/SKILL.md",
        ".claude/skills/coffee/SKILL.md",
    ]


async def test_a_folder_without_skills_says_so():
    assert (await box({}).call("skill", {})).text == "There are no skills here."


@pytest.mark.claim("skill.load")
async def test_a_skill_is_loaded_without_its_head():
    result = await box().call("skill", {"name": "tea"})
    assert "Boil water." in result.text
    assert "description:" not in result.text


@pytest.mark.claim("skill.files")
async def test_its_files_are_named_hidden_ones_too_and_can_be_read(tmp_path):
    toolbox, _, home = local_box(tmp_path)
    put(home / "tea", **{"boil.sh": "echo hot", ".secret-leaf": "green"})
    result = await toolbox.call("skill", {"name": "tea"})
    assert result.details.files == ["skill:tea/.secret-leaf", "skill:tea/boil.sh"]
    assert f"(8 bytes, file://{home}/tea/boil.sh)" in result.text
    for path in result.details.files:
        assert path in result.text
        assert (await toolbox.call("read", {"path": path})).ok


async def test_files_of_a_skill_in_the_workspace_have_their_own_paths():
    toolbox = box()
    result = await toolbox.call("skill", {"name": "tea"})
    assert result.details.files == [
        ".agents/skills/tea/.hidden/leaf.txt",
        ".agents/skills/tea/scripts/boil.sh",
    ]
    assert "file:///" in result.text
    assert (await toolbox.call("read", {"path": result.details.files[0]})).text.endswith("green")


async def test_skills_near_a_file_come_first():
    toolbox = box()
    assert "Sell." in (await toolbox.call("skill", {"name": "tea", "near": "shop/a.py"})).text
    assert "- tea: Sells tea." in (await toolbox.call("skill", {"near": "shop"})).text


async def test_an_unknown_name_brings_the_nearest_one():
    result = await box().call("skill", {"name": "cofee"})
    assert result.fault.code == "not_found"
    assert "coffee" in result.fault.hint


async def test_the_list_keeps_to_two_percent_of_the_context():
    many = {
        f".agents/skills/s{n}/SKILL.md": f"---\nname: s{n}\ndescription: {'word ' * n}\n---\n".encode()
        for n in range(60)
    }
    result = await box(many).call("skill", {"context_tokens": 20_000})
    assert estimate_tokens(result.text) <= 400
    assert result.details.shortened + result.details.left_out > 0
    assert "shortened" in result.text or "left out" in result.text


async def test_what_the_policy_hides_is_not_there():
    toolbox = box(policy=Policy(excluded=(".claude/",)))
    assert [each.name for each in (await toolbox.call("skill", {})).details.skills] == ["tea"]
    assert (await toolbox.call("skill", {"name": "coffee"})).fault.code == "not_found"


async def test_a_private_file_of_a_skill_is_neither_named_nor_read(tmp_path):
    toolbox, _, home = local_box(tmp_path)
    put(home / "tea", **{".env": "KEY=1"})
    assert (await toolbox.call("skill", {"name": "tea"})).details.files == []
    assert (await toolbox.call("read", {"path": "skill:tea/.env"})).status == "denied"


@pytest.mark.parametrize(
    "path", ["skill:tea/../../outside", "skill:tea/link", "skill:tea//etc/passwd", "skill:no/a"]
)
async def test_a_path_leads_nowhere_out_of_the_skill(tmp_path, path):
    toolbox, _, home = local_box(tmp_path)
    put(home / "tea")
    (tmp_path / "outside").write_text("secret")
    (home / "tea" / "link").symlink_to(tmp_path / "outside")
    result = await toolbox.call("read", {"path": path})
    assert not result.ok
    assert "secret" not in result.text
    assert "link" not in " ".join((await toolbox.call("skill", {"name": "tea"})).details.files)


async def test_a_skill_of_the_workspace_that_is_a_link_to_the_outside_is_not_there(tmp_path):
    toolbox, root, _ = local_box(tmp_path)
    put(tmp_path / "outside" / "tea")
    (root / ".agents" / "skills").mkdir(parents=True)
    (root / ".agents" / "skills" / "tea").symlink_to(tmp_path / "outside" / "tea")
    assert (await toolbox.call("skill", {})).details.skills == []


async def test_a_skill_that_its_user_linked_from_elsewhere_is_there(tmp_path):
    toolbox, _, home = local_box(tmp_path)
    put(tmp_path / "dotfiles" / "tea", **{"a.txt": "leaf"})
    home.mkdir(parents=True)
    (home / "tea").symlink_to(tmp_path / "dotfiles" / "tea")
    assert (await toolbox.call("skill", {"name": "tea"})).details.files == ["skill:tea/a.txt"]
    assert "leaf" in (await toolbox.call("read", {"path": "skill:tea/a.txt"})).text


async def test_skills_outside_of_the_workspace_can_not_be_written(tmp_path):
    toolbox, root, home = local_box(tmp_path)
    put(home / "tea")
    whole = Toolbox(EVERYTHING, workspace=toolbox.workspace)
    result = await whole.call("write", {"path": "skill:tea/new.md", "content": "x"})
    assert result.fault.code == "wrong_kind"
    assert [path.name for path in (home / "tea").iterdir()] == ["SKILL.md"]
    assert list(root.iterdir()) == []


async def test_a_skill_added_a_moment_ago_is_found(tmp_path):
    toolbox, root, _ = local_box(tmp_path)
    assert (await toolbox.call("skill", {})).details.skills == []
    put(root / ".claude" / "skills" / "tea")
    assert [each.name for each in (await toolbox.call("skill", {})).details.skills] == ["tea"]


async def test_a_missing_file_of_a_skill_is_said_to_be_missing(tmp_path):
    toolbox, _, home = local_box(tmp_path)
    put(home / "tea")
    result = await toolbox.call(Call(tool="read", args={"path": "skill:tea/none.md"}))
    assert result.fault.code == "not_found"


def test_the_fake_workspace_has_skills_too():
    assert [each.name for each in memory_workspace(FILES).skills.found("")] == ["tea", "coffee"]


@pytest.mark.parametrize("target", [".env", "keys/id_ed25519", "link-to-env"])
async def test_a_skill_whose_file_leads_to_something_private_is_not_there(tmp_path, target):
    toolbox, root, _ = local_box(tmp_path)
    (root / "keys").mkdir()
    for path in (".env", "keys/id_ed25519"):
        (root / path).write_text("API_KEY=sk-live-1\n")
    (root / "link-to-env").symlink_to(".env")
    put(root / ".agents/skills/tea")
    (root / ".agents/skills/a").mkdir()
    (root / ".agents/skills/a/SKILL.md").symlink_to(root / target)
    (root / ".agents/skills/tea/notes.md").symlink_to(root / target)
    listed = await toolbox.call("skill", {})
    assert "sk-live" not in listed.text
    assert [entry.name for entry in listed.details.skills] == ["tea"]
    one = await toolbox.call("skill", {"name": "tea"})
    assert "notes.md" not in one.text


async def test_a_skill_whose_file_is_a_link_inside_is_read_through_it(tmp_path):
    toolbox, root, _ = local_box(tmp_path)
    (root / "docs").mkdir()
    (root / "docs" / "tea.md").write_bytes(TEA)
    (root / ".agents/skills/tea").mkdir(parents=True)
    (root / ".agents/skills/tea/SKILL.md").symlink_to("../../../docs/tea.md")
    assert "Makes tea." in (await toolbox.call("skill", {})).text


class SwappedSkills(SkillFolders):
    """Skills of a folder in which another program puts a link in a file's place right after they were listed."""

    def bundle(self, skill):
        found = super().bundle(skill)
        notes = Path(self.root, skill.folder, "notes.md")
        notes.unlink()
        notes.symlink_to("/etc/hostname")
        return found


async def test_a_file_that_becomes_a_link_to_the_outside_while_it_is_listed_is_not_named(tmp_path):
    toolbox, root, _ = local_box(tmp_path)
    put(root / ".agents/skills/tea", **{"notes.md": "Steep.", "leaf.md": "Green."})
    swapped = SwappedSkills(toolbox.workspace.files, str(root), local=True)
    toolbox = Toolbox([skill], workspace=replace(toolbox.workspace, skills=swapped))
    shown = await toolbox.call("skill", {"name": "tea"})
    assert shown.details.files == [".agents/skills/tea/leaf.md"]


async def test_a_file_of_a_skill_is_attached_and_a_private_one_is_not_even_measured(tmp_path):
    async def deliver(attachment):
        return f"delivered {attachment.data!r}"

    toolbox, _, home = local_box(tmp_path)
    put(home / "tea", **{"leaf.md": "Green.", ".env": "KEY=1"})
    os.truncate(home / "tea" / ".env", (MAX_MB << 20) + 1)
    toolbox = Toolbox([attach], workspace=toolbox.workspace, callbacks=Callbacks(deliver=deliver))
    assert "delivered b'Green.'" in (await toolbox.call("attach", {"paths": ["skill:tea/leaf.md"]})).text
    denied = await toolbox.call("attach", {"paths": ["skill:tea/.env"]})
    assert denied.status == "denied"
