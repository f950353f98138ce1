"""Running tools from the command line."""

import json

import pytest


def test_a_call_does_its_work_and_says_how_to_take_it_back(shell):
    ran = shell.run("call", "write", "path=a.txt", "content=hello")
    assert (ran.code, shell.text("a.txt")) == (0, "hello")
    assert ran.out == "Created a.txt (5 bytes).\n(Change 1.)\n"
    assert "handtools undo " in ran.err
    assert shell.run("undo", "1").code == 0
    assert not (shell.folder / "a.txt").exists()
    assert shell.run("undo", "9" * 40).code != 0


def test_arguments_come_as_json_from_stdin_and_as_pairs(shell):
    shell.write("a.txt", "one one")
    given = json.dumps({"path": "a.txt", "old_string": "one", "new_string": "two"})
    refused = shell.run("call", "edit", "--json", "-", stdin=given)
    assert refused.code == 1
    ran = shell.run("call", "edit", "--json", "-", "replace_all:=true", stdin=given)
    assert (ran.code, shell.text("a.txt")) == (0, "two two")


def test_a_failure_is_told_with_a_next_step(shell):
    ran = shell.run("call", "read", "path=missing.txt")
    assert ran.code == 1
    assert "missing.txt" in ran.err
    assert "\n  → " in ran.err
    assert not ran.out


@pytest.mark.usefixtures("commands_allowed")
def test_a_command_that_fails_is_a_failure_here_as_in_the_log(shell):
    ran = shell.run("call", "bash", "command=echo told; exit 3")
    assert (ran.code, "told" in ran.out) == (1, True)
    answer = shell.run("call", "bash", "command=exit 3", "--json")
    assert (answer.code, answer.json["status"]) == (1, "failed")
    assert {row["status"] for row in shell.run("log", "--json").rows} == {"failed"}


def test_a_tool_misspelt_is_answered_with_the_right_name(shell):
    assert "Did you mean edit?" in shell.run("call", "edi", "path=a").err


def test_arguments_that_are_no_object_are_a_usage_error(shell):
    for words in (["{"], ["[1]"], ["nothing"], ["path:=x"]):
        ran = shell.run("call", "read", *words)
        assert ran.code == 2, words
        assert "Try 'handtools call -h'" in ran.err
        assert "Traceback" not in ran.err


def test_the_same_id_again_returns_what_was_recorded(shell):
    first = shell.run("call", "write", "path=a", "content=x", "--id", "one", "--json")
    again = shell.run("call", "write", "path=a", "content=x", "--id", "one", "--json")
    assert again.json == first.json
    assert "used before" in again.err
    assert len(shell.run("log", "--json").rows) == 1


def test_what_must_be_asked_ends_pending_and_is_approved_later(shell):
    ran = shell.run("call", "write", "path=.envrc", "content=x")
    assert (ran.code, shell.text(".envrc")) == (3, None)
    why = ran.err.split("Reason: ")[1].split(" Continue with")[0]
    assert ran.err.count(why) == 1
    step = ran.err.split("→ ")[1].split("   or ")[0]
    approved = shell.run(*step.split()[1:])
    assert (approved.code, shell.text(".envrc")) == (0, "x")
    late = shell.run(*step.split()[1:])
    assert late.code == 1
    assert "ended as ok" in late.err


def test_a_denied_call_changes_nothing_and_is_recorded_so(shell):
    call_id = shell.run("call", "write", "path=.envrc", "content=x", "--json").json["call_id"]
    assert [row["call_id"] for row in shell.run("pending", "--json").rows] == [call_id]
    ran = shell.run("deny", call_id[:24], "-m", "use direnv")
    assert (ran.code, shell.text(".envrc")) == (0, None)
    shown = shell.run("show", call_id, "--json").json
    assert shown["call"]["status"] == "denied"
    assert "use direnv" in shown["result"]["fault"]["hint"]
    assert not shell.run("pending", "--json").rows


def test_yes_answers_what_is_asked_but_not_what_is_forbidden(shell):
    assert shell.run("call", "write", "path=.envrc", "content=x", "--yes").code == 0
    forbidden = shell.run("call", "write", "path=.env", "content=x", "--yes")
    assert (forbidden.code, shell.text(".env")) == (1, None)


def test_an_answer_for_the_session_covers_the_next_call(shell):
    call_id = shell.run("call", "write", "path=.envrc", "content=x", "--json").json["call_id"]
    assert shell.run("approve", call_id, "--remember", "session").code == 0
    assert shell.run("call", "edit", "path=.envrc", "old_string=x", "new_string=y").code == 0
    words = ["call", "edit", "path=.envrc", "old_string=y", "new_string=z", "--session", "other"]
    assert shell.run(*words).code == 3


def test_another_folder_is_named_in_the_next_step_too(shell, tmp_path):
    ran = shell.run("call", "write", "path=.envrc", "content=x", "-C", str(shell.folder), cwd=tmp_path)
    assert f"-C {shell.folder}" in ran.err


def test_a_folder_that_is_not_there_is_a_usage_error(shell):
    assert shell.run("log", "-C", "nowhere").code == 2


def test_folders_that_have_no_record_together_are_named(shell, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    ran = shell.run("-C", str(one), "-C", str(other), "log")
    assert ran.code == 1
    assert f"No call is recorded for {one} and {other} together." in " ".join(ran.err.split())
    assert f"handtools -C {one} -C {other} call TOOL" in " ".join(ran.err.split())


def test_why_names_the_rule_and_does_nothing(shell):
    asked = shell.run("why", "write", '{"path": ".envrc", "content": "x"}', "--json")
    assert (asked.json["verdict"], asked.json["rule"]) == ("ask", "protected")
    denied = shell.run("why", "read", "path=.env")
    assert denied.out.startswith("deny  .env\n")
    assert "private" in denied.out
    assert shell.run("why", "write", "path=a", "content=x").out.startswith("allow")
    assert list(shell.folder.iterdir()) == []
    assert shell.run("log", "--json").rows == []


def test_why_on_a_call_that_can_not_be_is_an_error(shell):
    ran = shell.run("why", "raed", "path=a")
    assert ran.code == 1
    assert "Did you mean read?" in ran.err


def test_the_tools_are_listed_with_their_schemas(shell):
    rows = {row["name"]: row for row in shell.run("tools", "--json").rows}
    assert rows["read"]["reads_only"]
    assert not rows["edit"]["reads_only"]
    assert "old_string" in rows["edit"]["input_schema"]["properties"]
    does = {
        words[0]: words[1] for row in shell.run("tools").out.splitlines() if len(words := row.split()) > 1
    }
    assert (does["fetch"], does["edit"]) == ("reads", "changes")


@pytest.mark.linux("overlay")  # else what a command has changed can't be held back
def test_another_process_is_asked_once_about_many_changed_files(shell, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rule]]\nname = "kept"\nverdict = "deny"\npaths = ["many/kept/**"]\n')
    # A folder of so many files is carried as one, and taken apart again because one of them may not land.
    script = "mkdir -p many/kept && touch many/kept/a && for n in $(seq 300); do echo $n > many/$n; done"
    words = ["call", "bash", f"command={script}", "review:=true", "--json"]
    asked = shell.run(*words, HANDTOOLS_POLICY=str(policy), PYTHONHASHSEED="1")
    assert asked.code == 3, asked
    done = shell.run("approve", asked.json["call_id"], HANDTOOLS_POLICY=str(policy), PYTHONHASHSEED="2")
    assert done.code == 0, done
    assert shell.text("many/300") == "300\n"
    assert shell.text("many/kept/a") is None


def test_the_policy_pages_own_example_asks_about_commands(shell, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[defaults]\nrun = "ask"\n')
    words = ["call", "bash", "command=echo ran > here.txt"]
    assert shell.run(*words, HANDTOOLS_POLICY=str(policy)).code == 3
    assert shell.text("here.txt") is None
    policy.write_text('[defaults]\nrun = "allow"\n')
    assert shell.run(*words, HANDTOOLS_POLICY=str(policy)).code == 0


@pytest.mark.usefixtures("commands_allowed")
def test_a_job_is_refused_since_it_would_end_with_the_answer(shell):
    ran = shell.run("call", "bash", "command=touch made", "background:=true")
    assert ran.code == 2
    said = " ".join(ran.err.replace("│", " ").split())
    assert "A background job ends with the process that started it" in said
    assert "handtools mcp" in said
    assert "made" not in shell.run("call", "list").out
    assert shell.run("call", "bash", "command=touch made", "background:=false").code == 0
