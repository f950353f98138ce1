"""Words of git's settings that may be paths."""

import pytest

from handtools.host.files.paths_in_git_settings import setting_path_words


def words(key, value):
    return {word.word: word.is_whole_folder for word in setting_path_words(key, value)}


@pytest.mark.parametrize(
    ("key", "value", "word", "is_whole"),
    [
        ("core.hookspath", "tools/hooks", "tools/hooks", True),
        ("core.hookspath", "hooks", "hooks", True),
        ("core.hookspath", "my hooks", "my hooks", True),
        ("core.attributesfile", "attrs", "attrs", False),
        ("filter.c.clean", "./tools/clean.sh", "./tools/clean.sh", True),
        ("filter.c.clean", "python3 clean.py %f", "clean.py", False),
        ("filter.c.clean", "'my tools/x.sh' -v", "my tools/x.sh", True),
        ("core.fsmonitor", '"$(git rev-parse --show-toplevel)/tools/x" -v', "tools/x", True),
        ("core.pager", "$PWD/tools/page", "tools/page", True),
        ("core.sshcommand", "ssh -F ./cfg/ssh", "./cfg/ssh", True),
        ("core.editor", "edit --rc=cfg/rc", "cfg/rc", True),
        ("core.editor", "edit -I./inc", "./inc", True),
        ("diff.x.textconv", "PYTHONPATH=lib python -m x", "lib", True),
        ("alias.x", "!PATH=$PWD/bin:$PATH run", "bin", True),
        ("alias.x", "!cd tools && ./x.sh", "tools/./x.sh", False),
        ("alias.x", "!make -C build x.mk", "build/x.mk", False),
        ("credential.helper", "!f() { ./cred; }; f", "./cred", True),
        ("submodule.x.update", "!./up.sh", "./up.sh", True),
    ],
)
def test_a_word_that_may_be_a_path_is_found(key, value, word, is_whole):
    assert words(key, value)[word] == is_whole


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.lfs.process", "git-lfs filter-process"),
        ("filter.lfs.required", "true"),
        ("alias.st", "status"),
        ("alias.l", "!git log --oneline"),
        ("commit.template", "docs/message"),
        ("safe.directory", "/home/x/project"),
        ("gitflow.prefix.feature", "feature/"),
        ("pack.threads", "4"),
    ],
)
def test_what_is_no_path_is_not(key, value):
    assert words(key, value) == {}


def test_a_folder_that_an_alias_only_mentions_does_not_count_as_a_whole():
    assert words("alias.l", "!git ls-files src/") == {"src/": False}


def test_a_setting_with_very_many_words_is_cut():
    assert len(words("core.editor", " ".join(f"a/{number}" for number in range(5_000)))) <= 200
