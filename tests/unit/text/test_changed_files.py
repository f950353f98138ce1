"""What a call changed, in one sentence."""

import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.changed_files import (
    MAX_CHANGED_FILE_ROWS,
    MAX_NAMES_PER_FOLDER,
    ChangedFile,
    changed_files_text,
    enclosing_derived_folder,
)
from handtools.text.token_estimate import estimate_tokens


def told(*changes: str, ignored: tuple[str, ...] = ()) -> str:
    return changed_files_text([ChangedFile(*each.split(" ", 1)) for each in changes], ignored)


def test_few_files_are_named_by_what_happened_to_them():
    assert told("created a.py", "created src/b.py", "created src/c.py", "deleted d.py") == (
        "created a.py, src/{b.py, c.py}; deleted d.py"
    )


def test_a_folder_is_not_named_beside_what_is_in_it():
    assert told("created src", "created src/deep", "created src/deep/a.py") == "created src/deep/a.py"
    assert told("created empty") == "created empty"


def test_a_codemod_is_told_by_its_folder_and_its_number():
    changes = [f"changed src/app/view_{number:02}.py" for number in range(40)]
    assert told(*changes) == "changed 40 in src/app/ (view_00.py, view_01.py …)"


def test_many_folders_become_those_above_them():
    changes = [f"changed src/part{number}/deep/a.py" for number in range(30)]
    assert told(*changes) == "changed 30 in src/ (part0/deep/a.py, part1/deep/a.py …)"


def test_derived_and_ignored_files_are_counted():
    changes = [f"created .venv/lib/python3/site-packages/p{number}/__init__.py" for number in range(500)]
    changes += ["created build/out.bin", "changed setup.py", "created src/__pycache__/setup.pyc"]
    assert told(*changes, ignored=("build/out.bin",)) == (
        "changed setup.py; 502 ignored (.venv, build, src/__pycache__)"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            ["changed .git/index", "created .git/objects/ab/cd", "changed .git/refs/heads/main",
             "changed .git/logs/HEAD", "created .git/COMMIT_EDITMSG"],
            "git: branch main",
        ),
        (["changed .git/HEAD", "created .git/refs/heads/fix/a"], "git: HEAD, new branch fix/a"),
        (["created .git/refs/tags/v1", "deleted .git/refs/heads/old"], "git: new tag v1, deleted branch old"),
        (["changed .git/index", "created .git/objects/ab/cd"], "git: index"),
        (["created .git/objects/pack/a.pack"], "git: its own files"),
        (["created lib/.git/HEAD", "created lib/.git/config"], "git in lib: new repository"),
        (["created .git"], "git: new repository"),
        (["created .git/modules/a/HEAD", "created .git/modules/a/hooks/x"], "git: submodules"),
        (["created a.py", "changed .git/config"], "created a.py; git: config"),
        (["created node_modules/a/.git/HEAD"], "1 ignored (node_modules)"),
    ],
)  # fmt: skip
def test_a_repository_is_told_in_gits_words(changes, text):
    assert told(*changes) == text


def test_a_single_ignored_file_is_named():
    assert told("created build/out.bin", ignored=("build/out.bin",)) == ("1 ignored (build/out.bin)")


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("web/node_modules/a/b.js", "web/node_modules"),
        ("a.egg-info/PKG-INFO", "a.egg-info"),
        ("src/venv.py", ""),
        ("node_modules.md", ""),
    ],
)
def test_what_tools_fill_by_themselves_goes_by_the_folders_name(path, folder):
    assert enclosing_derived_folder(path) == folder


names = st.sampled_from(["a", "b", "c", "src", "lib", "node_modules", "x.py", "y.py"])
paths = st.lists(names, min_size=1, max_size=6).map("/".join)
changed = st.dictionaries(paths, st.sampled_from(["created", "changed", "deleted"]), max_size=120)


@given(changed, st.sets(paths))
def test_nothing_is_lost_and_the_sentence_stays_short(touched: dict[str, str], ignored: set[str]):
    changes = [ChangedFile(verb, path) for path, verb in touched.items()]
    text = changed_files_text(changes, ignored)
    kept = [path for path in touched if not any(other.startswith(f"{path}/") for other in touched)]
    assert _counted(text) == len(kept)
    assert estimate_tokens(text) < 60 + MAX_CHANGED_FILE_ROWS * MAX_NAMES_PER_FOLDER * 24
    shown = [path for path in kept if path not in ignored and not enclosing_derived_folder(path)]
    if len(shown) == 1:
        assert f"{touched[shown[0]]} {shown[0]}" in text


def _counted(text: str) -> int:
    """How many paths a sentence speaks of."""
    total = count()
    rest = re.sub(r"([\d,]+) (?:in \S+/|ignored) \([^)]*\)", _taken(total), text)
    rest = re.sub(r"\b(?:created|changed|deleted) ", "", rest)
    named = [each for each in re.split(r"[;,]\s*|\{|\}", rest) if each and not each.endswith("/")]
    return len(named) + next(total)


def _taken(total: "count[int]"):
    def take(found: "re.Match[str]") -> str:
        for _ in range(int(found[1].replace(",", ""))):
            next(total)
        return ""

    return take
