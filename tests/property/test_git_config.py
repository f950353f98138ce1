"""Git's configuration files are read as git itself reads them."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handtools.text.git_config import MAX_GIT_CONFIG_BYTES, BadGitConfig, GitConfigKey, parse_git_config

QUIET = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
pieces = st.sampled_from(
    [
        "[core]", "[CORE]", '[remote "origin"]', '[remote "Ori\\"gin"]', "[a.B]", '[a.B "c.D"]', "[", "]", '"',
        "\\",
        "\n", "\r\n", " ", "=", "#", ";", "\\\n", "\\n", '\\"', "\\x", "hooksPath", "k-1", "1", "url = x y", "v",
        "é",
        '"a # b"', ' = "quoted \\\n on"', "\ufeff", "-", ".", "[]", '[x ""]', "alias.x",
    ]
)  # fmt: skip
files = st.lists(pieces, max_size=12).map("".join)


def read_by_git(data, tmp_path):
    file = tmp_path / "config"
    file.write_bytes(data)
    done = subprocess.run(
        ["git", "config", "--file", str(file), "--list", "-z"], env=QUIET, capture_output=True, check=False
    )
    if done.returncode:
        return None
    found = {}
    for row in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, sign, value = row.partition("\n")
        found[key] = (*found.get(key, ()), value if sign else None)
    return found


@settings(max_examples=250, deadline=None)
@given(text=files)
def test_a_file_is_read_as_git_reads_it_or_not_at_all(text, tmp_path_factory):
    theirs = read_by_git(text.encode(), tmp_path_factory.mktemp("config"))
    try:
        ours = parse_git_config(text.encode())
    except BadGitConfig:
        ours = None
    # What git refuses we may not take for harmless, and the other way round git must not see more than we do.
    assert ours == theirs


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_a_refusal(data):
    try:
        parse_git_config(data)
    except BadGitConfig:
        return


@given(
    section=st.text("abc-", min_size=1),
    inner=st.text(min_size=1).filter(lambda t: "\n" not in t and "\0" not in t),
)
def test_a_subsection_is_kept_as_it_is_written(section, inner):
    quoted = inner.replace("\\", "\\\\").replace('"', '\\"')
    written = f'[{section} "{quoted}"]\n\tName = x\n'.encode("utf-8", "surrogatepass")
    found = parse_git_config(written)
    (key,) = found
    assert GitConfigKey.of(key).section == section
    assert GitConfigKey.of(key).name == "name"


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("core.bare", ("core", None, "bare")),
        ("remote.a.b.url", ("remote", "a.b", "url")),
        ("a..k", ("a", "", "k")),
    ],
)
def test_a_key_is_split_at_its_first_and_last_dot(key, parts):
    found = GitConfigKey.of(key)
    assert (found.section, found.subsection, found.name) == parts


@pytest.mark.parametrize("text", ["b = c\n" * 60_000, "b = " + "c " * 200_000], ids=["lines", "blanks"])
def test_a_long_configuration_is_read_in_one_pass(text):
    values = parse_git_config(f"[a]\n{text}".encode())["a.b"]
    assert "".join(value or "" for value in values).count("c") in {60_000, 200_000}


def test_a_long_name_of_a_subsection_is_read_in_one_pass():
    with pytest.raises(BadGitConfig, match="not closed"):
        parse_git_config(b'[a "' + b"b" * 400_000)


def test_a_configuration_that_is_too_long_is_refused():
    with pytest.raises(BadGitConfig, match="longer than"):
        parse_git_config(b"#" * (MAX_GIT_CONFIG_BYTES + 1))
