"""Git in a confined command: it works without a question, what lands is judged, and undo brings all of it back."""

import os
import stat
import subprocess

import pytest

from handtools import BlockingToolbox, coding
from handtools.host.sandbox.runners.runner_selection import choose_runner

pytestmark = pytest.mark.skipif(
    choose_runner().runner.name != "bubblewrap", reason="machine: no bubblewrap"
)

QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
PERSON = "[user]\n\tname = Somebody\n\temail = somebody@example.org\n[core]\n\tpager = /nothing\n"


def git(root, *words):
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(
        ["git", *who, *words], cwd=root, env=os.environ | QUIET, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def tree(root):
    """Everything below a folder, byte for byte."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        inside = str(path.relative_to(root))
        found[inside] = (
            os.readlink(path)
            if stat.S_ISLNK(mode)
            else path.read_bytes()
            if stat.S_ISREG(mode)
            else "folder",
            stat.S_IMODE(mode),
        )
    return found


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with two branches that conflict, of a person with a name."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(PERSON)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    (work / "b.txt").write_text("one\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", ".")
    git(work, "commit", "-qm", "first")
    git(work, "checkout", "-qb", "other")
    (work / "a.txt").write_text("theirs\n")
    git(work, "commit", "-qam", "theirs")
    git(work, "checkout", "-q", "main")
    (work / "a.txt").write_text("ours\n")
    git(work, "commit", "-qam", "ours")
    return work


@pytest.fixture
def tools(root):
    made = BlockingToolbox(coding(root))
    yield made
    made.close()


def ran(tools, script):
    result = tools.call("bash", {"command": f"set -e\n{script}"})
    assert result.ok, result.text
    assert result.request is None, result.request
    assert result.details.code == 0, result.text
    return result


def asked(tools, script):
    """What a person is asked about a command's changes."""
    result = tools.call("bash", {"command": script})
    assert result.request is not None, result.text
    return result.request.rule


WORK = {
    "commit": "echo two >> b.txt; echo new > c.txt; git add -A; git commit -qm second",
    "branch": "git checkout -q -b feature/one; echo x > x; git add x; git commit -qm x; git checkout -q main",
    "merge": "git merge -q other || { echo both > a.txt; git add a.txt; git commit -qm merged; }",
    "merge-in-progress": "git merge -q other || true",
    "rebase": "git checkout -q other; git rebase -q main ||"
    "{ echo both > a.txt; git add a.txt; git rebase --continue; }",
    "rebase-in-progress": "git checkout -q other; git rebase -q main || true",
    "cherry-pick": "git cherry-pick other || { echo both > a.txt; git add a.txt; git cherry-pick --continue; }",
    "stash": "echo two >> b.txt; git stash -q; git stash list | grep -q stash",
    "stash-pop": "echo two >> b.txt; git stash -q; git stash pop -q; git diff --quiet && exit 1 || true",
    "tag": "git tag v1; git tag -a v2 -m two; git tag -l | grep -q v2",
    "bisect": "for i in 1 2 3 4 5; do echo $i > b.txt; git commit -qam $i; done;"
    "git bisect start HEAD main~5 -- ; git bisect run sh -c '! grep -q 4 b.txt' | tail -1",
    "bisect-reset": "git bisect start HEAD HEAD~1; git bisect reset",
    "worktree": "git worktree add -q sub/tree -b tree; cd sub/tree;"
    "echo w > w; git add w; git commit -qm w; git status",
    "worktree-removed": "git worktree add -q tree; git worktree remove tree; git worktree prune",
    "submodule": "git init -q -b main lib; (cd lib; echo l > l; git add l; git commit -qm l);"
    "git -c protocol.file.allow=always submodule --quiet add ./lib used; git commit -qm used; cat used/l",
    "clone": "git clone -q . copy; cd copy; echo c > c; git add c; git commit -qm c",
    "bare": "git clone -q --bare . store.git; git remote add store $PWD/store.git; git push -q store main",
    "gc": "for i in 1 2 3; do echo $i > b.txt; git commit -qam $i; done; git gc -q; git log --oneline | wc -l",
    "settings": "git config user.name Agent; git config user.email a@example.org; git config pull.rebase true;"
    "git remote add origin https://example.org/a.git; git config branch.main.remote origin",
    "amend-and-reset": "echo z > b.txt; git commit -qam z; git commit -q --amend; git reset -q --hard HEAD~1",
    "index-only": "git rm -q --cached b.txt; git update-index --refresh; git reset -q",
    "branches-deleted": "git branch -D other; git pack-refs --all; git branch -m main trunk",
    "tracked-branches": "git clone -q --bare . hub.git; git remote add origin $PWD/hub.git; git fetch -q;"
    "git checkout -q -b mine --track origin/other; git push -q -u origin HEAD:refs/heads/mine;"
    "git checkout -q main; git push -q -u origin main; git branch -m main trunk; git branch -q -D mine",
    "fetched-pack": "git init -q far; cd far; for i in 1 2 3 4; do echo $i > f; git add f; git commit -qm $i;"
    "done; cd ..; git -c fetch.unpackLimit=1 fetch -q far HEAD:refs/heads/far",
    "cloned-by-pack": "git clone -q file://$PWD copy; git clone -q --depth 1 file://$PWD cut; cd cut; git log",
    "repacked": "git repack -q -a -d; echo more > c.txt; git add c.txt; git commit -qm c; git repack -q -a -d -f",
    "cruft": "echo x | git hash-object -w --stdin; git -c gc.cruftPacks=true gc -q --cruft",
    "long-ids": "git init -q --object-format=sha256 long; cd long; echo x > x; git add x; git commit -qm x;"
    "git repack -q -a -d; git gc -q",
    "nested-submodules": "add='git -c protocol.file.allow=always submodule --quiet add'; top=$PWD;"
    "git init -q -b main one; (cd one; git commit -q --allow-empty -m 1);"
    "git init -q -b main two; (cd two; $add $top/one deep/one; git commit -qm 2);"
    "$add ./two libs/two; git commit -qm two;"
    "git -c protocol.file.allow=always submodule --quiet update --init --recursive; cd libs/two/deep/one;"
    "echo x > x; git add x; git commit -qm x",
    "notes-and-revert": "git notes add -m seen; git revert --no-edit HEAD",
    "am": "git format-patch -q -1 --stdout other > p; git checkout -q -b fixed main~1; git am -q p; rm p",
    "rebase-merges": "git checkout -q -b side main~1; git commit -q --allow-empty -m s; git checkout -q other;"
    "git merge -q --no-edit side; git rebase -q --rebase-merges main~1",
    "touched-again": "git gc -q; git add -A; git commit -q --allow-empty -m x; git hash-object -w a.txt",
    "rm-lock": "touch .git/index.lock",
}


@pytest.mark.parametrize("name", WORK)
def test_git_works_without_a_question_lands_and_is_undone_byte_for_byte(name, root, tools):
    before = tree(root)
    result = ran(tools, WORK[name])
    git(root, "fsck", "--no-dangling")
    git(root, "status")
    assert tree(root) != before or name == "rm-lock", result.text
    if name == "rm-lock":
        assert "left this lock" in result.text
        return
    undone = tools.call("undo", {"scope": "session", "name": "default"})
    assert undone.ok and undone.request is None, undone.text
    assert tree(root) == before


MOVED_TO = (
    "moved() { git init -q n; echo '[core] fsmonitor = ./evil' >> n/.git/config; mkdir -p .git/modules/$1;"
    "rm -r n/.git/hooks; mv n/.git .git/modules/$1/$2; }; moved"
)
OBJECTS = (
    "ZERO=0000000000000000000000000000000000000000; file_of() { echo .git/objects/${1:0:2}/${1:2}; }\n"
    "put() { cat $(file_of $(echo $1 | git hash-object -w --stdin)); }\n"
)
PLANTED = {
    "hook": ("cp evil .git/hooks/post-checkout", ".git/hooks/post-checkout"),
    "hook of a new repository": (
        "git init -q n; cp evil n/.git/hooks/post-checkout",
        "n/.git/hooks/post-checkout",
    ),
    "hooksPath": ("git config core.hooksPath $PWD/hooked", "core.hookspath"),
    "monitor over two lines": (
        "printf '[core]\\n\\tfsmonitor = \\\\\\n%s\\n' $PWD/evil >> .git/config",
        "core.fsmonitor",
    ),
    "included file": (
        "printf '[core]\\nfsmonitor = evil' > plain; git config include.path ../plain",
        "include.path",
    ),
    "alias": ("git config alias.st '!./evil'", "alias.st"),
    "filter": (
        "git config filter.x.clean ./evil; echo '* filter=x' > .git/info/attributes",
        "filter.x.clean",
    ),
    "worktree settings": ("git config extensions.worktreeConfig true", "extensions.worktreeconfig"),
    "repository elsewhere": ("git init -q n; mv n/.git fake; echo 'gitdir: ../fake' > n/.git", "n/.git"),
    "common folder": ("git init -q n; mv n/.git fake; echo ../fake > .git/commondir", ".git/commondir"),
    "alternates": ("echo /home/x/.git/objects > .git/objects/info/alternates", "objects/info/alternates"),
    "ref that is a link": ("ln -s /etc/passwd .git/refs/heads/x", ".git/refs/heads/x"),
    "rebase that runs": (
        "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i -x ./evil HEAD~1; true",
        "git-rebase-todo",
    ),
    "submodule named like a reflog": (f"{MOVED_TO} x/logs/refs y", "modules/x/logs/refs/y/config"),
    "submodule named like a pack": (f"{MOVED_TO} x/objects pack", "modules/x/objects/pack/config"),
    "submodule named like a rebase": (f"{MOVED_TO} x rebase-merge", "modules/x/rebase-merge/config"),
    "another push": ("git config branch.main.pushRemote https://example.org/x", "branch.main.pushremote"),
    "another fetch": (
        "git remote add o $PWD; git config remote.o.fetch '+refs/heads/*:refs/heads/*'",
        "remote.o.fetch",
    ),
    "word in use": ("git config alias.st 'reset --hard'", "alias.st"),
    "object with another content": (
        f"{OBJECTS}f=$(file_of $(git rev-parse HEAD:b.txt)); chmod u+w $f; put x > $f",
        ".git/objects/",
    ),
    "object under a false name": (
        f"{OBJECTS}mkdir -p .git/objects/ab; put x > .git/objects/ab/${{ZERO:2}}",
        ".git/objects/ab/",
    ),
    "pack with a false index": (
        "git gc -q; cd .git/objects/pack; chmod u+w *.idx; echo | dd of=$(ls *.idx) bs=1 seek=1037 conv=notrunc",
        ".git/objects/pack/",
    ),
    "replacement": ("git replace HEAD HEAD~1", ".git/refs/replace/"),
    "packed replacement": ("git replace HEAD HEAD~1; git pack-refs --all", ".git/packed-refs"),
    "graft": ("echo $(git rev-parse HEAD) > .git/info/grafts", ".git/info/grafts"),
    "cut history": ("git rev-parse HEAD > .git/shallow", ".git/shallow"),
    "other letters": ("mkdir n; cp -r .git n/.GIT; cp evil n/.GIT/hooks/post-checkout", ".GIT"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_asks_and_the_persons_own_git_runs_none_of_it(name, root, tools, tmp_path):
    mark = tmp_path / "mark"
    (root / "evil").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (root / "evil").chmod(0o755)
    (root / "hooked").mkdir()
    for hook in ("pre-commit", "post-checkout", "post-commit"):
        (root / "hooked" / hook).write_bytes((root / "evil").read_bytes())
        (root / "hooked" / hook).chmod(0o755)
    script, told = PLANTED[name]
    assert told in asked(tools, script)
    for words in (
        "status",
        "commit -q --allow-empty -m x",
        "checkout -q -b y",
        "st",
        "rebase --continue",
        "diff",
    ):
        env = os.environ | {"GIT_EDITOR": "true"}
        subprocess.run(["git", *words.split()], cwd=root, env=env, capture_output=True, check=False)
    assert not mark.exists()


def test_caches_of_git_are_made_by_the_persons_git_alone(root, tools):
    git(root, "commit-graph", "write", "--reachable")
    git(root, "repack", "-q", "-a", "-d")
    git(root, "multi-pack-index", "write")
    before = tree(root)
    done = ran(tools, "echo x > b.txt; git commit -qam x; git gc -q; git multi-pack-index write")
    objects = root / ".git/objects"
    assert not (objects / "info/commit-graph").exists()
    assert not (objects / "pack/multi-pack-index").exists()
    assert "git recreates it" in done.text
    assert git(root, "log", "-1", "--format=%s") == "x"
    git(root, "fsck", "--no-dangling")
    assert tools.call("undo", {"scope": "session", "name": "default"}).ok
    assert tree(root) == before


NAMED = {
    "hooks": ("config core.hooksPath tools", "echo x >> tools/run", "core.hookspath"),
    "filter": ("config filter.c.clean ./tools/run", "echo x >> tools/run", "filter.c.clean"),
    "included": ("config include.path ../tools/run", "echo x >> tools/run", "include.path"),
    "of the person": ("config --global core.fsmonitor tools/run", "rm tools/run", "core.fsmonitor"),
    "not there yet": ("config alias.x !tools/new", "echo x > tools/new", "alias.x"),
    "with its folder": ("config core.hooksPath tools/hooks", "mv tools other", "core.hookspath"),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_the_persons_settings_name_is_changed_after_a_question(name, root, tools, tmp_path):
    setting, script, key = NAMED[name]
    (root / "tools/hooks").mkdir(parents=True)
    (root / "tools/hooks/pre-commit").write_text("#!/bin/sh\n")
    (root / "tools/run").write_text("[core]\n")
    env = os.environ | {"HOME": str(tmp_path / "home")}
    subprocess.run(["git", *setting.split()], cwd=root, env=env, check=True)
    assert key in asked(tools, script)
    ran(tools, "echo x > unnamed")


@pytest.mark.parametrize("kind", ["hook", "hooks", "settings"])
def test_what_a_link_in_the_git_folder_leads_to_is_changed_after_a_question(kind, root, tools):
    (root / "tools").mkdir()
    (root / "tools/file").write_text((root / ".git/config").read_text())
    place = {"hook": "hooks/pre-commit", "hooks": "hooks", "settings": "config"}[kind]
    link = root / ".git" / place
    if link.is_dir():
        link.rename(root / ".git/hooks.old")
    link.unlink(missing_ok=True)
    link.symlink_to(root / "tools" if kind == "hooks" else root / "tools/file")
    assert "`tools/file`" in asked(tools, "echo '#' >> tools/file")
    wanted = {"path": "tools/file", "content": "x", "mode": "overwrite"}
    written = tools.call("write", wanted)
    assert written.request is not None, written.text


def test_a_branch_that_somebody_moved_since_is_a_conflict_and_all_of_the_repository_stays(root, tools):
    done = ran(tools, "echo two >> b.txt; git commit -qam agent")
    (root / "c.txt").write_text("person\n")
    git(root, "add", "c.txt")
    git(root, "commit", "-qm", "person")
    before = {path: found for path, found in tree(root).items() if path.startswith(".git")}
    undone = tools.call("undo", {"scope": "session", "name": "default"})
    assert "refs/heads/main" in undone.text
    assert "The repository was used since then; it was kept as it is." in undone.text
    assert {path: found for path, found in tree(root).items() if path.startswith(".git")} == before
    assert (root / "b.txt").read_text() == "one\n", done.text
    git(root, "fsck", "--no-dangling")


def test_objects_stay_where_somebody_may_have_built_on_them(root, tools):
    ran(tools, "git branch agents; echo two >> b.txt; git commit -qam agent")
    main = (root / ".git/refs/heads/main").read_text()
    git(root, "branch", "keep")
    undone = tools.call("undo", {"scope": "session", "name": "default"})
    assert undone.ok, undone.text
    assert (root / ".git/refs/heads/main").read_text() != main
    assert git(root, "show", "keep:b.txt") == "one\ntwo"
    assert "agents" not in git(root, "branch")
    git(root, "fsck", "--no-dangling")


@pytest.mark.parametrize("used", [("commit", "-q", "--allow-empty", "-m", "person"), ("branch", "keep")])
def test_a_repository_that_a_command_made_and_somebody_used_since_is_kept_whole(root, tools, used):
    ran(tools, "git init -q sub; cd sub; echo x > x; git add x; git commit -qm agent")
    git(root / "sub", *used)
    before = {path: found for path, found in tree(root).items() if path.startswith("sub/.git")}
    undone = tools.call("undo", {"scope": "session", "name": "default"})
    assert "The repository was used since then; it was kept as it is." in undone.text
    assert {path: found for path, found in tree(root).items() if path.startswith("sub/.git")} == before
    assert not (root / "sub/x").exists()
    assert git(root / "sub", "show", "HEAD:x") == "x"


def test_what_a_command_did_to_a_repository_does_not_land_on_what_somebody_did_meanwhile(root, tools):
    script = "echo x > new; git add new; git commit -qm agent; echo re''ady; read line"
    job = tools.call("bash", {"command": script, "background": True})
    number = job.details.job
    while "ready" not in tools.call("jobs", {"action": "output", "job": number}).text:
        pass
    git(root, "commit", "-q", "--allow-empty", "-m", "person")
    head = git(root, "rev-parse", "HEAD")
    tools.call("jobs", {"action": "send", "job": number, "text": "go\n"})
    ended = tools.call("jobs", {"action": "wait", "job": number, "timeout": 20})
    assert git(root, "rev-parse", "HEAD") == head, ended.text
    assert (root / "new").read_text() == "x\n"
    git(root, "fsck", "--no-dangling")
    assert git(root, "status", "--porcelain") == "?? new"


def test_tracked_fixtures_are_read_and_changed_like_any_file(root, tools):
    (root / "tests").mkdir()
    for name in ("cert.pem", ".env", ".netrc"):
        (root / "tests" / name).write_text(f"fixture of {name}\n")
    (root / "tests/.aws").mkdir()
    (root / "tests/.aws/credentials").write_text("fixture of aws\n")
    (root / "tests/.aws/mine").write_text("secret of mine\n")
    git(root, "add", "-f", "tests/cert.pem", "tests/.env", "tests/.netrc", "tests/.aws/credentials")
    git(root, "commit", "-qm", "fixtures")
    (root / "tests/.netrc").write_text("password hunter2\n")
    seen = tools.call(
        "bash", {"command": "git diff --stat; cat tests/cert.pem tests/.env tests/.aws/* tests/.netrc"}
    )
    assert all(f"fixture of {name}" in seen.text for name in ("cert.pem", ".env", "aws"))
    assert "hunter2" not in seen.text and "secret of mine" not in seen.text
    ran(tools, "echo more >> tests/cert.pem; git commit -qm more tests/cert.pem")
    assert (root / "tests/cert.pem").read_text() == "fixture of cert.pem\nmore\n"


def test_an_index_that_names_a_secret_does_not_show_it(root, tools):
    (root / ".env").write_text("KEY=hunter2\n")
    ran(
        tools,
        "git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:a.txt),.env; git commit -qm forged",
    )
    for script in ("cat .env", "git diff", "git add -f .env && git show :.env", "cp .env out; cat out"):
        assert "hunter2" not in tools.call("bash", {"command": script}).text
    assert "hunter2" not in tools.call("read", {"path": ".env"}).text
    assert (root / ".env").read_text() == "KEY=hunter2\n"


def test_what_a_command_makes_itself_lands_and_is_its_own_until_somebody_changes_it(root, tools):
    before = tree(root)
    ran(tools, "echo KEY=example > .env; echo cert > tls.pem; mkdir .ssh; echo Host x > .ssh/config")
    assert (root / ".env").read_text() == "KEY=example\n"
    assert "KEY=example" in ran(tools, "cat .env tls.pem; echo again >> .env").text
    assert (root / ".env").read_text() == "KEY=example\nagain\n"
    assert tools.call("undo", {"scope": "session", "name": "default"}).ok
    assert tree(root) == before
    ran(tools, "echo KEY=example > .env")
    (root / ".env").write_text("KEY=hunter2\n")
    assert "hunter2" not in tools.call("bash", {"command": "cat .env"}).text


def test_a_secret_that_was_there_is_neither_replaced_nor_removed_and_is_named(root, tools):
    (root / ".env").write_text("KEY=hunter2\n")
    (root / "many").mkdir()
    for number in range(300):  # so many are hidden by a layer, and look as if they were not there
        (root / "many" / f"{number}.pem").write_text("secret\n")
    result = tools.call("bash", {"command": "echo mine > .env; rm -rf many; echo x > plain"})
    assert (root / ".env").read_text() == "KEY=hunter2\n"
    assert len(list((root / "many").iterdir())) == 300
    assert (root / "plain").read_text() == "x\n"
    assert "rule `private`" in result.text and "`.env`" in result.text


def test_a_certificate_that_a_package_brings_is_installed_and_upgraded(root, tools):
    place = ".venv/lib/python3/site-packages/certifi"
    ran(tools, f"mkdir -p {place}; echo one > {place}/cacert.pem")
    ran(tools, f"cat {place}/cacert.pem; echo two > {place}/cacert.pem")
    assert (root / place / "cacert.pem").read_text() == "two\n"


def test_a_command_commits_as_the_person_and_sees_no_more_of_their_settings(root, tools):
    ran(tools, 'git commit -q --allow-empty -m x; test -z "$(git config core.pager)"')
    assert git(root, "log", "-1", "--format=%an <%ae>") == "Somebody <somebody@example.org>"
    ran(tools, "git -c user.name=Agent commit -q --allow-empty -m y")
    assert git(root, "log", "-1", "--format=%an") == "Agent"


def test_a_look_at_the_repository_changes_nothing(root, tools):
    (root / "a.txt").touch()
    result = ran(tools, "git status; git diff; git log -1")
    assert result.changes is None


def test_a_large_folder_that_a_command_removes_comes_back_byte_for_byte(root, tools):
    for number in range(600):
        file = root / "large" / str(number % 20) / f"{number}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"// {number}\n")
        os.utime(file, ns=(number, number))
    before = tree(root)
    times = {path: path.lstat().st_mtime_ns for path in root.rglob("*.js")}
    removed = ran(tools, "rm -rf large")
    assert not (root / "large").exists()
    assert [item.path for item in removed.changes.touched] == ["large"]
    assert tools.call("undo", {"scope": "session", "name": "default"}).ok
    assert tree(root) == before
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*.js")} == times
    assert tools.call("undo", {"scope": "session", "name": "default", "action": "redo"}).ok
    assert not (root / "large").exists()
    one = tools.call("undo", {"scope": "path", "name": "large/7/7.js"})
    assert one.ok, one.text
    assert (root / "large/7/7.js").read_text() == "// 7\n"
