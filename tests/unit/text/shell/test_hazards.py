"""Words that make a harmless-looking command write, delete or run something."""

import shlex
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handtools.text.shell import hazards
from handtools.text.shell.hazards import (
    HAZARD_EFFECTS,
    HAZARD_PATTERNS,
    SINGLE_DASH_PROGRAMS,
    find_hazards,
    parse_hazard_table,
)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("find . -delete", "-delete"),
        ("find . -name x -exec rm {} ;", "-exec"),
        ("find . -fprintf out %p", "-fprintf"),
        ("fd x -X rm", "-X"),
        ("git log --output=x", "--output=x"),
        ("git log --outp x", "--outp"),
        ("git diff --no-index /etc/passwd a", "--no-index"),
        ("git -c core.pager=x log", "-c"),
        ("git grep -Oless x", "-Oless"),
        ("git push -f", "-f"),
        ("git push origin +main", "+main"),
        ("git push origin :old", ":old"),
        ("git clean -fdx", "-fdx"),
        ("git checkout -- a", "--"),
        ("git checkout .", "."),
        ("git clone ext::x y", "ext::x"),
        ("git bisect run x", "run"),
        ("sort -o a b", "-o"),
        ("sort -ro a b", "-ro"),
        ("sort -oa b", "-oa"),
        ("sort --out=a b", "--out=a"),
        ("less +!id a", "+!id"),
        ("man -P id ls", "-P"),
        ("rg --pre id x", "--pre"),
        ("sed -i s/a/b/ x", "-i"),
        ("sed -n s/a/b/w\\ out x", "s/a/b/w out"),
        ("sed 1e x", "1e"),
        ("sed s/a/b/e x", "s/a/b/e"),
        ("awk BEGIN{system(1)}", "BEGIN{system(1)}"),
        ("tar --to-command=x -xf a", "--to-command=x"),
        ("tar --checkpoint-action=exec=x -cf a b", "--checkpoint-action=exec=x"),
        ("curl -o a x", "-o"),
        ("curl -so a x", "-so"),
        ("wget -O a x", "-O"),
        ("make SHELL=x test", "SHELL=x"),
        ("go test -exec x ./...", "-exec"),
        ("uniq a b", "b"),
        ("/usr/bin/find . -delete", "-delete"),
        ("rsync -e x a b", "-e"),
        ("date -s x", "-s"),
    ],
)
def test_a_word_with_consequences_is_named(command, word):
    assert word in [hazard.word for hazard in find_hazards(tuple(shlex.split(command)))]


def spellings(row):
    """The ways in which a program takes an option or a word of the table."""
    words = [row.program, *([row.task] if row.task else [])]
    shape = row.shape
    if not shape.startswith("-"):
        ways = [[shape]]
    elif shape.startswith("--") and len(shape) > 2:
        ways = [[shape, "x"], [f"{shape}=x"], [shape[:-1], "x"]]
    elif len(shape) == 2 and shape != "--" and row.program not in SINGLE_DASH_PROGRAMS:
        ways = [[shape, "x"], [f"{shape}x"], [f"-q{shape[1]}", "x"]]
    else:
        ways = [[shape, "x"], [f"{shape}=x"]] if shape != "--" and len(shape) > 2 else [[shape, "x"]]
    if row.program == "go":
        ways += [[f"-{shape}", "x"]]
    return [(*words, *way) for way in ways]


@pytest.mark.parametrize(
    "row", parse_hazard_table(), ids=lambda row: f"{row.program} {row.task} {row.shape}"
)
def test_every_spelling_of_the_table_is_seen_and_told(row):
    for words in spellings(row):
        told = {hazard.effect for hazard in find_hazards(words)}
        assert row.effect in told, words


@pytest.mark.parametrize("pattern", HAZARD_PATTERNS, ids=lambda each: f"{each.programs} {each.example}")
def test_every_pattern_of_the_table_is_seen_and_told(pattern):
    for program in pattern.programs.split(","):
        assert HAZARD_EFFECTS[pattern.effect] in {
            hazard.effect for hazard in find_hazards((program, pattern.example))
        }


def test_the_table_says_each_thing_once():
    listed = [(row.program, row.task, row.shape) for row in parse_hazard_table()]
    assert len(set(listed)) == len(listed)
    assert len(listed) > 250


@pytest.mark.parametrize(
    ("script", "effect"),
    [
        ("1eid", "runs"), ("s/a/id/e", "runs"), ("sXaXidXe", "runs"), ("$!{eid\n}", "runs"), ("/a/e", "runs"),
        ("w/tmp/x", "writes"), ("/a/w/tmp/x", "writes"), ("s/a/b/w/tmp/zz", "writes"), ("1,5W out", "writes"),
        ("s/a/b/gpw out", "writes"), ("s,a,b,;e", "runs"), ("\\,a,e", "runs"), ("/a/I,/b/e id", "runs"),
        ("s/a\\/b/c/;e", "runs"), ("y/ab/cd/;w x", "writes"), ("s/a/b", "runs"), ("p\ne id", "runs"),
        ("?", "runs"),
        ("1~2d", ""), ("s/e/w/g", ""), ("s,w/e,e/w,", ""), ("/we/d", ""), ("1,5p", ""), ("$=", ""),
        ("a we go", ""),
        ("y/we/ew/", ""), ("/a/{s/b/c/;p}", ""), ("5q", ""), ("# e", ""), (":e;be", ""), ("1!G;h;$!d", ""),
    ],
)  # fmt: skip
def test_a_sed_script_is_read_and_not_guessed(script, effect):
    assert hazards.sed_script_effect(script) == effect
    assert bool(effect) == bool(find_hazards(("sed", "-n", script, "file")))
    assert bool(effect) == bool(find_hazards(("sed", "-ne", script)))
    assert bool(effect) == bool(find_hazards(("sed", f"--expression={script}", "we")))


pieces = st.sampled_from(
    [
        "s",
        "/",
        "a",
        "e",
        "w",
        "W",
        "g",
        "p",
        ",",
        ";",
        "\n",
        "1",
        "$",
        "!",
        "{",
        "}",
        "\\",
        "x",
        "I",
        " ",
        "y",
        "0",
        "b",
    ]
)


@pytest.mark.skipif(shutil.which("sed") is None, reason="machine: no sed here")
@given(st.lists(pieces, max_size=14).map("".join))
@example("s/a/b/e")
@example("/a/,/b/w x")
@example("s/\\/e/e/")
@example("b;e")
@example(":a;e")
@example("{b};e")
@example("v 4.2;e")
@example("s\\a\\b\\e")
def test_what_is_called_harmless_is_what_sed_takes_in_its_sandbox(script):
    if hazards.sed_script_effect(script) or not script:
        return
    checked = subprocess.run(
        ["sed", "--sandbox", "-n", "-e", script],
        input=b"", capture_output=True, check=False,
    )  # fmt: skip
    assert b"sandbox" not in checked.stderr


@pytest.mark.parametrize(
    ("command", "word"),
    [("uniq a b", "b"), ("xxd a b", "b"), ("git symbolic-ref HEAD refs/heads/x", "refs/heads/x"),
     ("git symbolic-ref -m why HEAD refs/heads/x", "refs/heads/x")],
)  # fmt: skip
def test_a_word_more_than_a_program_reads_is_one(command, word):
    assert word in [hazard.word for hazard in find_hazards(tuple(shlex.split(command)))]


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -5", "git status -s", "git diff --cached", "git commit -am done",
        "git push origin main",
        "git checkout main", "git add -A", "git switch -c new", "find . -name x -type f", "find . -newer a",
        "sort -rn a",
        "sort -k2,2 a", "less a.txt", "rg -n x src", "sed -n 1,5p a.py", "sed s/a/b/g a.py", "awk {print} a",
        "tar tf a.tar",
        "curl -sSL https://example.com", "make test", "sed -E s/w(e)/\\1w/g we", "sed -n /e/p w", "tar -tvf Files",
        "go test -run Exec ./...", "cargo test --release", "git config user.name", "gcc -DBAR -c a.c", "xxd a",
        "git symbolic-ref HEAD", "git symbolic-ref --short HEAD",
        "date +%F", "npm run test -- --watch", "go test ./...", "uniq -c a", "ls -la", "cat a",
        "grep -rn x .",
    ],
)  # fmt: skip
def test_what_only_looks_has_none(command):
    assert find_hazards(tuple(shlex.split(command))) == ()
