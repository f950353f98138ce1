"""Packs and their indexes, compared by a git that sees nothing else of the repository."""

import os
import subprocess

import pytest

from handtools.host.files.git_repository import verify_pack


@pytest.fixture(params=["sha1", "sha256"])
def pack(request, tmp_path):
    """The files of a pack by suffix, in a repository whose settings would run a program."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "pack.writeReverseIndex=true"]
        subprocess.run(
            ["git", *who, *words], cwd=tmp_path, env=os.environ | own, check=True, capture_output=True
        )

    git("init", "-q", f"--object-format={request.param}")
    for number in range(4):
        (tmp_path / "file").write_text(f"{'line ' * 500}{number}\n")
        git("add", "file")
        git("commit", "-qm", str(number))
    git("repack", "-q", "-a", "-d")
    return {file.suffix[1:]: file for file in (tmp_path / ".git/objects/pack").iterdir()}


def is_true(pack, *suffixes):
    files = {suffix: str(pack[suffix]) for suffix in suffixes}
    return verify_pack(files, len(pack["pack"].stem) - len("pack-"), "/nowhere")


def test_the_indexes_that_git_made_are_those_of_the_pack(pack):
    assert {"pack", "idx", "rev"} <= pack.keys()
    assert is_true(pack, "pack", "idx", "rev")
    assert is_true(pack, "pack", "idx")


@pytest.mark.parametrize("suffix", ["pack", "idx", "rev"])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_one_byte_that_differs_is_found(pack, suffix, place):
    pack[suffix].chmod(0o600)
    data = bytearray(pack[suffix].read_bytes())
    data[int(len(data) * place)] ^= 1
    pack[suffix].write_bytes(data)
    assert not is_true(pack, "pack", "idx", "rev")


def test_what_is_no_file_or_is_not_there_is_not_verified(pack, tmp_path):
    pack["idx"].rename(tmp_path / "other")
    assert not is_true(pack, "pack", "idx")
    pack["idx"].symlink_to(tmp_path / "other")
    assert not is_true(pack, "pack", "idx")


def test_without_a_git_nothing_is_verified(pack, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert not is_true(pack, "pack", "idx")
