"""Looking at the record: log, show, diff, versions."""

import subprocess


def test_the_log_is_newest_first_and_says_what_was_touched(shell):
    first = shell.write("a.txt", "one\n")
    second = shell.edit("a.txt", "one", "two")
    shell.run("call", "read", "path=missing")
    rows = shell.run("log", "--json").rows
    assert [row["tool"] for row in rows] == ["read", "edit", "write"]
    assert rows[1]["changes"] == [{"path": "a.txt", "action": "changed"}]
    table = shell.run("log").out.splitlines()
    assert table[0].split()[:6] == ["WHEN", "CALL", "CHANGE", "TOOL", "TOUCHED", "STATUS"]
    assert "error not_found" in table[1]
    assert second[:7] in table[2]
    assert "~a.txt" in table[2]
    assert first[:7] in table[3]
    assert "+a.txt" in table[3]


def test_pages_of_the_log_join_without_gap_or_overlap(shell):
    made = [shell.call("think", "--session", "s", thought=str(number)) for number in range(5)]
    shell.call("think", thought="elsewhere")
    first = shell.run("log", "--session", "s", "-n", "2", "--json").rows
    words = ["log", "--session", "s", "-n", "9", "--json", "--before", str(first[-1]["seq"])]
    rest = shell.run(*words).rows
    assert [row["id"] for row in first + rest] == made[::-1]
    assert f"--before {first[-1]['seq']}" in shell.run("log", "--session", "s", "-n", "2").err


def test_the_ids_in_the_log_name_one_call_each(shell):
    for call_id in ("toolu_0001", "toolu_0002", "toolu_00021"):
        shell.call("think", "--id", call_id, thought="x")
    shown = [line.split()[1] for line in shell.run("log").out.splitlines()[1:]]
    assert shown == ["toolu_00021", "toolu_0002", "toolu_0001"]
    for short in shown:
        assert shell.run("show", short, "--json").json["call"]["id"] == short
    several = shell.run("show", "toolu_")
    assert several.code == 1
    assert "Several calls" in several.err


def test_show_has_the_arguments_the_result_and_the_diff(shell):
    shell.write("a.txt", "one\n")
    call_id = shell.edit("a.txt", "one", "two", "--session", "s", "--turn", "t")
    shown = shell.run("show", call_id[:24])
    for part in (call_id, "s/t", "old_string: one", "Replaced 1 in a.txt.", "-one\n+two\n"):
        assert part in shown.out
    assert shown.out.count("-one\n") == 1
    assert shell.run("show", call_id, "--json").json["diff"].endswith("-one\n+two\n")


def test_an_unknown_call_is_one_clear_line_and_a_next_step(shell):
    shell.write("a.txt", "x")
    ran = shell.run("show", "nothing")
    assert ran.code == 1
    assert ran.err == "✗ No call `nothing` is recorded here.\n  → `handtools log` lists the calls.\n"


def test_a_diff_from_a_pipe_applies(shell):
    shell.write("a.txt", "one\r\ntwo\r\nx \x1b[31m\n")
    call_id = shell.edit("a.txt", "two", "zwei")
    assert shell.run("undo").code == 0
    patch = shell.run("diff", call_id).out
    subprocess.run(["git", "apply", "-"], cwd=shell.folder, input=patch.encode(), check=True)
    assert (shell.folder / "a.txt").read_bytes() == b"one\r\nzwei\r\nx \x1b[31m\n"


def test_diff_alone_is_what_stands_of_the_last_session(shell):
    shell.write("old.txt", "x\n", "--session", "before")
    shell.write("a.txt", "one\n", "--session", "now")
    shell.edit("a.txt", "one", "two", "--session", "now")
    shell.write("b.txt", "b\n", "--session", "now")
    shell.run("undo", "--path", "b.txt")
    diff = shell.run("diff").out
    assert diff == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+two\n"
    assert shell.run("diff", "old.txt", "--json").json["changes"] == [
        {"path": "old.txt", "action": "created"}
    ]


def test_a_folder_without_a_record_says_where_one_is(shell):
    nested = shell.folder / "deep"
    nested.mkdir()
    assert "handtools call" in shell.run("log").err
    shell.write("a.txt", "x")
    ran = shell.run("log", cwd=nested)
    assert ran.code == 1
    assert f"-C {shell.folder}" in ran.err


def test_versions_lists_what_undo_can_bring_back(shell):
    shell.write("a.txt", "one")
    shell.edit("a.txt", "one", "two")
    shell.edit("a.txt", "two", "three")
    numbers = [row["number"] for row in shell.run("versions", "a.txt", "--json").rows]
    assert len(numbers) == 3
    assert shell.run("undo", "--path", "a.txt", "--version", str(numbers[-1])).code == 0
    assert shell.text("a.txt") == "one"


def test_forget_lets_go_of_the_bytes_and_leaves_the_file(shell):
    call_id = shell.write("a.txt", "a secret")
    refused = shell.run("forget", "a.txt")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert shell.run("versions", "a.txt").code == 0
    assert shell.run("forget", "a.txt", "--yes").code == 0
    assert shell.text("a.txt") == "a secret"
    assert shell.run("undo", call_id).code == 1
    assert "a secret" not in shell.run("show", call_id, "--json").out
    kept = b"".join(file.read_bytes() for file in shell.state.rglob("*") if file.is_file())
    assert b"a secret" not in kept
