"""One workspace of three folders: every tool over all of them, and none past what the policy keeps apart."""

import os
import shlex
import subprocess
import sys

import pytest

from handtools import Call, Policy, Rule, Toolbox, coding
from handtools.configuration import load_configuration
from handtools.host.sandbox.runners.runner_selection import runners_by_strength
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

SECRET = "nobody may see this"
APART = Rule("apart", "deny", "It is kept apart.", paths=("vault/**",))
RUNNERS = {runner.name: runner for runner in runners_by_strength()}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Three folders that lie in different places, and a state folder outside of them."""
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    made = {
        "api": tmp_path / "here" / "api",
        "web": tmp_path / "there" / "web",
        "vault": tmp_path / "vault",
    }
    for name, folder in made.items():
        folder.mkdir(parents=True)
        (folder / "main.py").write_text(f"name = '{name}'\n")
        (folder / ".env").write_text(f"KEY={SECRET}\n")
    (made["vault"] / "deep").mkdir()
    for path in ("plan.txt", "deep/plan.txt"):
        (made["vault"] / path).write_text(f"{SECRET}\n")
    return made


@pytest.fixture
async def box(folders):
    async with coding(list(folders.values()), policy=Policy(unattended="allow")) as toolbox:
        yield toolbox


@pytest.fixture
async def apart(folders):
    policy = Policy(unattended="allow").with_rules([APART])
    async with coding(list(folders.values()), policy=policy) as toolbox:
        yield toolbox


async def text(toolbox, tool, **args):
    return (await toolbox.call(tool, args)).text


async def test_the_top_of_the_workspace_are_its_folders(box):
    assert (await text(box, "list", path=".")).split() == ["api/", "vault/", "web/"]


async def test_a_path_begins_with_the_name_of_its_folder_or_is_absolute(box, folders):
    assert "name = 'web'" in await text(box, "read", path="web/main.py")
    assert "name = 'web'" in await text(box, "read", path=str(folders["web"] / "main.py"))
    assert "api/main.py" in await text(box, "read", path="main.py")


async def test_search_finds_what_is_in_every_folder_by_its_path_there(box):
    hits = (await box.call("grep", {"pattern": "name ="})).details
    assert sorted(hit.path for hit in hits.hits) == ["api/main.py", "vault/main.py", "web/main.py"]
    assert "api/main.py" not in await text(box, "grep", pattern="name =", path="web")
    found = await text(box, "find", pattern="{api,web}/*.py")
    assert [line for line in found.splitlines() if "vault" in line] == []
    assert {"api/main.py", "web/main.py"} <= set(found.split())


async def test_ignore_files_of_each_folder_and_above_it_count_there_only(folders, box):
    (folders["api"].parent / ".git").mkdir()
    (folders["api"].parent / ".gitignore").write_text("api/built/\n")
    (folders["web"] / ".gitignore").write_text("main.py\n")
    (folders["api"] / "built").mkdir()
    (folders["api"] / "built" / "x.py").write_text("name = 'built'\n")
    for found in (await text(box, "grep", pattern="name ="), await text(box, "find", pattern="*.py")):
        assert "api/main.py" in found
        assert "built" not in found
        assert "web/main.py" not in found
    assert "built" not in await text(box, "list", path="api")


async def test_one_patch_changes_several_folders_and_one_undo_takes_it_back(box, folders):
    patch = "".join(
        f"*** Update File: {name}/main.py\n@@\n-name = '{name}'\n+name = 'new'\n" for name in ("api", "web")
    )
    done = await box.call("patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch\n"})
    assert done.ok, done.text
    assert {folders[name].joinpath("main.py").read_text() for name in ("api", "web")} == {"name = 'new'\n"}
    await box.call("undo", {})
    assert folders["api"].joinpath("main.py").read_text() == "name = 'api'\n"
    assert folders["web"].joinpath("main.py").read_text() == "name = 'web'\n"


async def test_a_change_in_two_folders_is_made_in_both_or_in_none(box, folders):
    patch = (
        "*** Begin Patch\n*** Update File: api/main.py\n@@\n-name = 'api'\n+name = 'new'\n"
        "*** Update File: web/main.py\n@@\n-name = 'other'\n+name = 'new'\n*** End Patch\n"
    )
    assert not (await box.call("patch", {"patch": patch})).ok
    assert folders["api"].joinpath("main.py").read_text() == "name = 'api'\n"


@pytest.mark.parametrize("path", ["new.txt", "other/new.txt", "api", "."])
async def test_nothing_is_written_beside_the_folders(box, path):
    refused = await box.call("write", {"path": path, "content": "x"})
    assert not refused.ok
    assert (await text(box, "list", path=".")).split() == ["api/", "vault/", "web/"]


@pytest.mark.parametrize("runner", ["bubblewrap", "landlock", "plain"])
async def test_what_a_command_changed_in_two_folders_is_taken_back_at_once(folders, runner):
    if RUNNERS[runner].unavailable_reason():
        pytest.skip(f"machine: {RUNNERS[runner].unavailable_reason()}")
    workspace = local_workspace(list(folders.values()), runner=runner)
    script = "echo x > api/new.txt; sed -i s/web/changed/ web/main.py; rm vault/plan.txt; cat web/main.py"
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as toolbox:
        ran = await toolbox.call("bash", {"command": script})
        assert "name = 'changed'" in ran.text
        for told in ("created api/new.txt", "changed web/main.py", "deleted vault/plan.txt"):
            assert told in ran.text
        assert (folders["api"] / "new.txt").read_text() == "x\n"
        assert not (folders["vault"] / "plan.txt").exists()
        await toolbox.call("undo", {})
    assert not (folders["api"] / "new.txt").exists()
    assert (folders["web"] / "main.py").read_text() == "name = 'web'\n"
    assert (folders["vault"] / "plan.txt").read_text() == f"{SECRET}\n"


async def test_a_command_finds_every_folder_by_its_name_and_at_its_own_path(box, folders):
    ran = await text(
        box, "bash", command=f"find . -name main.py | sort; cd web && cat {folders['api']}/main.py"
    )
    assert "./api/main.py\n./vault/main.py\n./web/main.py\nname = 'api'" in ran
    assert "name = 'web'" in await text(box, "bash", command="cat main.py")
    assert "Read-only file system" in await text(box, "bash", command="touch ../beside")


async def test_what_a_background_job_changed_lands_in_its_folders(box, folders):
    started = await box.call(
        Call(tool="bash", args={"command": "echo x > web/job.txt", "background": True})
    )
    job = started.details.job
    await box.call("jobs", {"action": "wait", "id": job, "timeout": 60})
    assert (folders["web"] / "job.txt").read_text() == "x\n"


LINKS = {
    "straight": "{vault}/plan.txt",
    "dotted": "{vault}/./deep/../plan.txt",
    "doubled": "{vault}//plan.txt",
    "relative": "../../vault/plan.txt",
    "relative_dotted": "../../vault/deep/../plan.txt",
    "folder/plan.txt": "{vault}",
    "deep/plan.txt": "../../vault/deep",
    "shown": "{view}/vault/plan.txt",
    "shown_dotted": "{view}/api/../vault/plan.txt",
    "twice": "../api/straight",
}
PATHS = [
    *(f"api/{name}" for name in LINKS),
    "vault/plan.txt",
    "vault/deep/plan.txt",
    "vault//plan.txt",
    "./vault/plan.txt",
    "api/../vault/plan.txt",
    "VAULT/plan.txt",
    "{vault}/plan.txt",
    "file://{vault}/plan.txt",
    "{view}/vault/plan.txt",
    "{view}/api/../vault/plan.txt",
    "{view}/api/straight",
]


def lay_links(folders, view):
    for name, target in LINKS.items():
        place = folders["api"] / name.partition("/")[0]
        place.symlink_to(target.format(vault=folders["vault"], view=view))


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_leads_into_a_folder_that_is_kept_apart(apart, folders, path):
    view = apart.workspace.files.root
    lay_links(folders, view)
    given = path.format(vault=folders["vault"], view=view)
    read = await apart.call("read", {"path": given})
    assert SECRET not in read.text
    assert not read.ok
    changed = await apart.call("write", {"path": given, "content": "mine"})
    assert not changed.ok
    assert (folders["vault"] / "plan.txt").read_text() == f"{SECRET}\n"
    assert SECRET not in await text(apart, "grep", pattern="nobody", path=given)


async def test_no_search_looks_into_a_folder_that_is_kept_apart(apart, folders):
    lay_links(folders, apart.workspace.files.root)
    assert SECRET not in await text(apart, "grep", pattern="nobody", hidden=True)
    assert "vault/" not in await text(apart, "find", pattern="*.txt")
    assert "plan.txt" not in await text(apart, "list", path="vault")


@pytest.mark.parametrize("rule", ["vault/**", "vault"])
async def test_no_command_reads_or_changes_a_folder_that_is_kept_apart(folders, rule):
    if RUNNERS["bubblewrap"].unavailable_reason():
        pytest.skip(f"machine: {RUNNERS['bubblewrap'].unavailable_reason()}")
    keep = Rule("apart", "deny", "It is kept apart.", paths=(rule,))
    workspace = local_workspace(list(folders.values()), runner="bubblewrap")
    view = workspace.files.root
    lay_links(folders, view)
    policy = Policy(unattended="allow").with_rules([keep])
    async with Toolbox(CODING, workspace=workspace, policy=policy) as toolbox:
        places = ["vault", f"{folders['vault']}", f"{view}/vault", "api/../vault", "api/folder"]
        for place in places:
            script = f"cat {place}/*.txt {place}/deep/*.txt; grep -r nobody {place}; cat {place}/.env"
            assert SECRET not in await text(toolbox, "bash", command=f"{script}; true")
            await toolbox.call("bash", {"command": f"echo mine > {place}/plan.txt; rm -rf {place}; true"})
        for name in LINKS:
            assert SECRET not in await text(toolbox, "bash", command=f"cat api/{name}; true")
        assert SECRET not in await text(toolbox, "bash", command="grep -rn nobody . ; true")
    assert (folders["vault"] / "plan.txt").read_text() == f"{SECRET}\n"


@pytest.mark.parametrize("name", ["api", "web", "vault"])
async def test_what_is_private_or_protected_is_so_in_each_folder(folders, name):
    async with coding(list(folders.values()), policy=Policy(unattended="deny")) as box:
        assert SECRET not in await text(box, "read", path=f"{name}/.env")
        for path in (".git/hooks/pre-commit", ".github/workflows/ci.yml", ".config/fish/config.fish"):
            refused = await box.call("write", {"path": f"{name}/{path}", "content": "x"})
            assert refused.status == "denied", path
        assert (await box.call("write", {"path": f"{name}/src/new.py", "content": "x"})).ok


async def test_what_a_policy_says_of_a_workspace_it_says_of_each_folder(folders):
    rule = Rule("plans", "deny", "Not for agents.", paths=("deep/plan.txt",))
    policy = Policy(unattended="allow", excluded=("main.py/x", "docs/own")).with_rules([rule])
    async with coding(list(folders.values()), policy=policy) as box:
        assert SECRET not in await text(box, "read", path="vault/deep/plan.txt")
        assert not (await box.call("write", {"path": "web/docs/own/x", "content": "x"})).ok
        assert SECRET in await text(box, "read", path="vault/plan.txt")


async def test_a_projects_own_file_tightens_what_is_done_in_its_folder(folders):
    (folders["api"] / ".handtools.toml").write_text('excluded = ["main.py"]\n')
    found = load_configuration(list(folders.values()))
    async with coding(list(folders.values()), policy=found.policy) as box:
        assert not (await box.call("read", {"path": "api/main.py"})).ok
        assert (await box.call("read", {"path": "web/main.py"})).ok


GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost")
COMMIT = "cd fix && echo new > new.py && git add -A && git -c user.name=a -c user.email=b commit -q -m two"


@pytest.fixture
def worktree(tmp_path, monkeypatch):
    """A repository with one commit, and a linked worktree of it beside it."""
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    repository, linked = tmp_path / "app", tmp_path / "fix"
    for line in (["init", "-q", "app"], ["-C", "app", "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*GIT, *line], cwd=tmp_path, check=True)
    subprocess.run([*GIT, "worktree", "add", "-q", "-b", "fix", str(linked)], cwd=repository, check=True)
    return repository, linked


def commits(folder):
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True, check=True
    )
    return log.stdout.split()


@pytest.mark.linux("overlay", "bubblewrap")
async def test_a_linked_worktree_commits_into_its_repository_and_that_is_taken_back(worktree):
    repository, linked = worktree
    async with coding([linked, repository], policy=Policy(unattended="allow")) as box:
        done = await box.call("bash", {"command": COMMIT})
        assert done.details.code == 0, done.text
        assert commits(linked) == ["two", "one"]
        assert (await box.call("undo", {})).ok
    assert commits(linked) == ["one"]
    assert not (linked / "new.py").exists()
    assert not subprocess.run(
        ["git", "status", "--short"], cwd=linked, capture_output=True, check=True
    ).stdout


@pytest.mark.linux("overlay", "bubblewrap")
async def test_a_linked_worktree_alone_says_which_folder_is_missing(worktree):
    repository, linked = worktree
    async with coding(linked, policy=Policy(unattended="allow")) as box:
        refused = await text(box, "bash", command=COMMIT.removeprefix("cd fix && "))
    assert f"worktree's repository, `{repository}`, which is not in the workspace" in refused
    assert commits(linked) == ["one"]


async def test_the_command_line_takes_several_folders(folders):
    words = [word for folder in folders.values() for word in ("-C", str(folder))]

    def handtools(*command):
        argv = [sys.executable, "-P", "-m", "handtools", *command, *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=dict(os.environ))

    edit = handtools("call", "edit", "path=web/main.py", "old_string=web", "new_string=changed")
    assert edit.returncode == 0, edit.stderr
    assert "web/main.py" in handtools("log").stdout
    suggested = shlex.split(edit.stderr.partition("To undo it: handtools ")[2])
    assert sorted(suggested[2:]) == sorted(words)
    words = suggested[2:]
    assert handtools(*suggested[:2]).returncode == 0
    assert (folders["web"] / "main.py").read_text() == "name = 'web'\n"
    inner = folders["vault"] / "deep"
    words += ["-C", str(inner)]
    assert f"{inner} is inside {folders['vault']}" in handtools("log").stderr
