"""Ignoring: which names ignore files leave out."""

import re

import pytest

from handtools.text.search.gitignore import (
    MAX_IGNORE_RULES,
    IgnoreFile,
    IgnoreRules,
    ignored_paths,
    is_skipped_by_walk,
)


def ignores(**texts: str) -> IgnoreRules:
    return IgnoreRules().into("", {".gitignore": texts.get("git", ""), ".ignore": texts.get("plain", "")})


@pytest.mark.parametrize(
    ("rules", "path", "folder", "expected"),
    [
        ("*.log", "a/b.log", False, "ignore"),
        ("*.log\n!keep.log", "a/keep.log", False, "keep"),
        ("!keep.log\n*.log", "a/keep.log", False, "ignore"),
        ("build/", "build", True, "ignore"),
        ("build/", "build", False, None),
        ("/a", "a", True, "ignore"),
        ("/a", "b/a", True, None),
        ("a/b", "a/b", False, "ignore"),
        ("a/b", "x/a/b", False, None),
        ("a/**", "a", True, None),
        ("a/**", "a/x", False, "ignore"),
        ("**/x", "a/b/x", False, "ignore"),
        ("# x", "# x", False, None),
        (r"\#x", "#x", False, "ignore"),
        ("x  ", "x", False, "ignore"),
        ("x\r\ny\r", "y", False, "ignore"),
        ("{a", "{a", False, None),
        ("**/x\n!*/", "x/y", False, None),
    ],
)
def test_the_last_rule_about_a_path_decides(rules, path, folder, expected):
    assert ignores(git=rules).verdict(path, folder=folder) == expected


def test_plain_ignore_files_are_stronger_than_those_of_git():
    assert ignores(git="*.log", plain="!a.log").verdict("a.log", folder=False) == "keep"


def test_a_deeper_file_is_stronger_and_speaks_about_its_folder():
    deep = ignores(git="*.log").into("sub", {".gitignore": "!keep.log\n/x"})
    assert deep.verdict("sub/keep.log", folder=False) == "keep"
    assert deep.verdict("sub/x", folder=False) == "ignore"
    assert deep.verdict("sub/y/x", folder=False) is None
    assert deep.verdict("sub/b.log", folder=False) == "ignore"


def test_hidden_names_are_left_out_unless_a_rule_keeps_them():
    assert is_skipped_by_walk(IgnoreRules(), ".a", folder=False, hidden=False)
    assert not is_skipped_by_walk(IgnoreRules(), ".a", folder=False, hidden=True)
    assert not is_skipped_by_walk(ignores(git="!.a"), ".a", folder=False, hidden=False)


def test_paths_are_ignored_with_the_folder_above_them_and_by_the_files_on_their_way():
    texts = {"": "*.log\nout/\n", "sub": "!keep.log\nlocal"}

    def enter(rules: IgnoreRules, folder: str) -> IgnoreRules:
        return rules.into(folder, {".gitignore": texts[folder]} if folder in texts else {})

    paths = ["a.log", "a.py", "out/deep/a.py", "out", "sub/keep.log", "sub/local/b", "local"]
    assert ignored_paths(paths, enter) == {"a.log", "out/deep/a.py", "out", "sub/local/b"}


def test_a_rule_of_a_folder_that_is_ignored_is_not_asked():
    asked = []

    def enter(rules: IgnoreRules, folder: str) -> IgnoreRules:
        asked.append(folder)
        return rules.into(folder, {".gitignore": "node_modules\n" if not folder else "!*"})

    assert ignored_paths(["node_modules/a/b.js"], enter) == {"node_modules/a/b.js"}
    assert asked == [""]


@pytest.mark.parametrize("line", ["a", "a  \t ", "a\\  ", "a\\", "a\\ \\  ", "  a", "\\  "])
def test_blanks_at_the_end_of_a_rule_do_not_count_but_for_an_escaped_one(line):
    named = re.sub(r"(?<!\\)[ \t]+\Z", "", line)
    meant = re.sub(r"\\(.)", r"\1", named)
    assert IgnoreFile(line).verdict(meant, folder=False) == IgnoreFile(named).verdict(meant, folder=False)


def test_a_line_of_many_blanks_is_read_in_one_pass():
    assert IgnoreFile("a" + " " * 300_000 + "x\nb").verdict("b", folder=False) == "ignore"


def test_so_many_rules_of_a_file_count_and_no_more():
    many = IgnoreFile("".join(f"n{number}\n" for number in range(2 * MAX_IGNORE_RULES)))
    assert many.verdict(f"n{MAX_IGNORE_RULES - 1}", folder=False) == "ignore"
    assert many.verdict(f"n{MAX_IGNORE_RULES}", folder=False) is None
