"""Questions about real commands, whose shell goes on while the answer is out."""

from dataclasses import replace

import pytest

from handtools import Call, Policy, Reply, coding
from handtools.runtime.policy.rules import Rule

pytestmark = pytest.mark.anyio
YES = Reply(allow=True)
MOVING = Rule("moving", "allow", "It only goes elsewhere.", commands=("cd",))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    for name in ("build", "important"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "f.txt").write_text(name)
    return tmp_path / "work"


def bash(script, name, **args):
    return Call(tool="bash", args={"command": script, **args}, session="s", id=name)


async def test_a_command_does_not_run_in_another_folder_than_the_one_that_was_asked_about(folder):
    async with coding(folder, policy=Policy().with_rules([MOVING]), runner="plain") as box:
        assert (await box.call(bash("cd build", "first"))).ok
        asked = await box.call(bash("rm ./*.txt", "second"))
        assert asked.request.title == "bash wants to run rm ./*.txt in build"
        assert (await box.call(bash("cd ../important", "third"))).ok
        again = await box.resume("second", YES)
        assert again.status == "pending"
        assert again.request.title.endswith("rm ./*.txt in important")
        assert (await box.resume("second", YES)).status == "pending"
        assert (folder / "build/f.txt").exists()
        assert (folder / "important/f.txt").exists()
        assert (await box.call(bash("cd ../build", "fourth"))).ok
        third = await box.resume("second", replace(YES, fingerprint=again.request.fingerprint))
        done = await box.resume("second", replace(YES, fingerprint=third.request.fingerprint))
        assert done.ok
    assert not (folder / "build/f.txt").exists()
    assert (folder / "important/f.txt").exists()


async def test_a_function_that_an_earlier_command_defined_is_in_the_question(folder):
    asked = []

    async def approver(approval):
        asked.append(approval)
        return YES

    async with coding(folder, approver=approver, runner="plain") as box:
        await box.call(
            bash(
                "make() { echo planted > build/f.txt; }; alias ll='ls -l'; export PATH=$PWD/bin:$PATH", "a"
            )
        )
        assert (await box.call(bash("make test", "b"))).ok
    preview = asked[1].preview
    assert "#       echo planted > build/f.txt" in preview
    assert "alias ll=" in preview
    assert "# set before: PATH=" in preview
    assert preview.endswith("\nmake test")
    assert asked[1].remembered.startswith("run exactly `make test` [")
    assert (folder / "build/f.txt").read_text() == "planted\n"


@pytest.mark.parametrize(
    "script", ["sh build/s.sh", "sh {folder}/build/s.sh", "cd build; sh s.sh", "build/s.sh"]
)
async def test_the_script_that_runs_is_the_one_that_was_there_when_it_was_asked_about(folder, script):
    program = folder / "build/s.sh"
    program.write_text("#!/bin/sh\necho fine\n")
    program.chmod(0o755)
    async with coding(folder, runner="plain") as box:
        asked = await box.call(bash(script.format(folder=folder), "first"))
        assert "# file: build/s.sh (20 bytes)" in asked.request.preview
        program.write_text("#!/bin/sh\necho evil > planted\n")
        again = await box.resume("first", replace(YES, fingerprint=asked.request.fingerprint))
        assert again.status == "pending"
        assert again.request.fingerprint != asked.request.fingerprint
        program.write_text("#!/bin/sh\necho fine\n")
        # What was asked first is there again, and is asked about once more: the last question counts.
        third = await box.resume("first", replace(YES, fingerprint=again.request.fingerprint))
        done = await box.resume("first", replace(YES, fingerprint=third.request.fingerprint))
    assert done.ok
    assert "fine" in done.text
    assert not (folder / "planted").exists()


async def test_settings_that_a_command_left_in_its_home_are_in_the_next_question(folder):
    policy = Policy(defaults={"run": "ask"})
    async with coding(folder, policy=policy) as box:
        if not box.workspace.commands.confined:
            pytest.skip("machine: nothing confines commands")
        write = "echo '[alias] st = status' | tee .gitconfig .config/git/config"
        script = f"cd; mkdir -p .config/git; touch .bash_history; {write}"
        first = await box.call(bash(script, "first"))
        assert "in home" not in first.request.preview
        assert (await box.resume("first", YES)).ok
        second = await box.call(bash("git st", "second"))
    told = "# left in home (settings, aliases):\n#   ~/.gitconfig\n#   ~/.config/git/config\n"
    assert told in second.request.preview
