"""What we call plain is exactly what bash executes."""

import os
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handtools.runtime.approval.gate import always_allow_prefix
from handtools.text.shell import quote_words, read_script
from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.script_commands import parse_bash, plain_commands
from handtools.text.shell.word_unquoting import OpaqueScript, unquote_word

RECORD = """
answer=$1
command_not_found_handle() { printf '%s\\0' "$#" "$@" >&9; return "$answer"; }
readonly PATH=/nowhere ; unset HOME BASH_ENV
eval -- "$2" </dev/null >/dev/null 2>&1
"""
BUILTINS = frozenset({".", ":", "-", "[", "]", "e", "@"})

pieces = st.sampled_from([
    "foo", "bar", "x", "-a", "--b=c", "1", "2", " ", " ", " ", "\t", "\n", "'", '"', "\\", "$", "`", "*", "?",
    "[", "]", "{", "}", "{}", "~", "=", ":", "#", " # ", "!", ";", ";;", "&", "&&", " && ", "|", "||", " | ",
    "|&", "<", ">", ">&", "2>&1", " 2>/dev/null", ">/dev/null", "&>/dev/null", "(", ")", "'a b'", '"c d"',
    "\\ ", "\\\n", "\r", "$x", "$(", "if", "then", "fi", "time", "é", "\u00a0", "a=b", "%", "^", ",", "+",
    "a[1]=2", "<<x", "\\'", '\\"', "{a,b}", "x\\", "-",
])  # fmt: skip
scripts = st.lists(pieces, max_size=12).map("".join)
odd = st.sampled_from("ab '\"\\$`*?[]{}~=:#!;&|<>()\t\n-")
words = st.text(odd | st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
names = st.from_regex(r"[f-z]{2,4}9", fullmatch=True)
commands = st.tuples(names, st.lists(words, max_size=4)).map(lambda pair: (pair[0], *pair[1]))


def executed(script: str, *, answer: int) -> list[tuple[str, ...]]:
    """The programs that bash would start, with their words."""
    reading, writing = os.pipe()
    try:
        subprocess.run(
            ["/bin/bash", "--norc", "-c", f"exec 9>&{writing}\n{RECORD}", "bash", str(answer), script],
            pass_fds=(writing,),
            env={"LC_ALL": "C.UTF-8"},
            check=False,
            cwd="/",
            timeout=20,
            capture_output=True,
        )
    finally:
        os.close(writing)
    with open(reading, "rb") as record:
        fields = record.read().decode("utf-8", "surrogateescape").split("\0")[:-1]
    found, place = [], 0
    while place < len(fields):
        count = int(fields[place])
        found.append(tuple(fields[place + 1 : place + 1 + count]))
        place += count + 1
    return found


def plain(script: str) -> tuple[tuple[str, ...], ...] | None:
    try:
        return plain_commands(script, parse_bash(script))
    except OpaqueScript:
        return None


def assert_bash_agrees(script: str) -> None:
    """Under success every command after `&&` runs, under failure every one after `||`: together, all."""
    ours = plain(script)
    if ours is None or any(each[0] in BUILTINS or "/" in each[0] for each in ours):
        return  # bash does these by itself, or looks for a file
    theirs = executed(script, answer=0) + executed(script, answer=1)
    assert set(theirs) == set(ours)


@given(scripts)
@example("foo\\\nbar")
@example("foo \\\n bar")
@example("foo #bar\nx")
@example("foo 2>&1 x")
@example("foo x2>/dev/null")
@example("foo 2 >/dev/null")
@example("foo a=~ b=c:~")
@example("foo {}{}")
@example("foo '\n' && bar")
@example("foo \u00a0 bar")
def test_what_is_called_plain_is_what_bash_runs(script):
    assert_bash_agrees(script)


@given(
    st.lists(commands, min_size=1, max_size=3),
    st.sampled_from([" && ", " || ", "; ", " | ", "\n", ";", "|"]),
)
def test_quoted_words_come_back_from_us_and_from_bash(parts, joint):
    script = joint.join(quote_words(part) for part in parts)
    ours = plain(script)
    if ours is None:  # control characters, or what the grammar can't take: refused, never misread
        control = any(ord(char) < 32 or ord(char) in {0x7F, 0x85, 0x2028, 0x2029} for char in script)
        assert control or ("{" in script and any(ord(char) > 0xFFFF for char in script))
        return
    assert list(ours) == parts
    assert_bash_agrees(script)


@given(words)
def test_a_quoted_word_reads_as_itself(word):
    assert unquote_word(quote_words(("x", word))[2:]) == word


@given(scripts)
def test_what_bash_refuses_is_never_plain(script):
    if plain(script):
        checked = subprocess.run(
            ["/bin/bash", "-n"], input=script.encode(), capture_output=True, check=False, env={}
        )
        assert checked.returncode == 0


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text):
    script = read_script(text)
    assert not (script.parts and script.opaque)
    for part in script.parts:
        find_hazards(part)
        always_allow_prefix(part)


@pytest.mark.parametrize("depth", [2_000, 5_000])
def test_deep_nesting_is_opaque_and_quick(depth):
    assert read_script("(" * depth + "ls" + ")" * depth).opaque
    assert read_script("$(" * depth).opaque


@pytest.mark.parametrize("joint", [" && ", " | ", "; ", "\n"])
def test_a_long_list_is_plain_all_the_same(joint):
    assert read_script(joint.join(["foo a"] * 1_300)).parts == (("foo", "a"),) * 1_300


@pytest.mark.parametrize("code", [0x10000, 0x28FD2, 0xF5481, 0x10FFFF])
def test_a_character_beyond_the_tables_of_the_grammar_is_survived(code):
    assert read_script(f"echo {{{chr(code)}3").opaque
