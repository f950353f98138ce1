import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from handtools.core.errors import UsageError
from handtools.fleet.templates import TemplateStore


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text("a = 1\n")
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("pkg/a.py")
    return folder


def test_the_same_content_gives_the_same_template(tmp_path: Path, source: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    first = store.add_folder(source)
    os.utime(source / "run.sh", (1, 1))
    assert store.add_folder(source).digest == first.digest
    assert store.digests() == [first.digest]
    assert (first.files, first.bytes) == (2, 11)
    (source / "run.sh").chmod(0o644)
    assert store.add_folder(source).digest != first.digest


def test_a_template_does_not_change_with_its_source(tmp_path: Path, source: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    made = store.add_folder(source)
    (source / "pkg" / "a.py").write_text("a = 2\n")
    assert (made.tree / "pkg" / "a.py").read_text() == "a = 1\n"


def test_a_tarball_and_its_folder_are_one_template(tmp_path: Path, source: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(source, ".")
    packed.seek(0)
    assert store.add_tarball(packed).digest == store.add_folder(source).digest


def test_a_tarball_that_leads_out_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("../outside")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    packed.seek(0)
    with pytest.raises(UsageError, match="can't be unpacked"):
        store.add_tarball(packed)
    assert not (tmp_path / "outside").exists()
    assert os.listdir(tmp_path / "store") == []


def test_a_commit_becomes_a_template_with_a_repository(tmp_path: Path, source: Path) -> None:
    _git(source, "init", "-q", "-b", "main")
    _git(source, "add", "-A")
    _git(source, "commit", "-qm", "one")
    (source / "later.txt").write_text("not committed\n")
    store = TemplateStore(tmp_path / "store")
    made = store.add_git_commit(source)
    assert sorted(os.listdir(made.tree)) == [".git", "link", "pkg", "run.sh"]
    assert _git(made.tree, "status", "--porcelain") == ""
    assert store.add_git_commit(source, "HEAD").digest == made.digest
    plain = store.add_git_commit(source, with_repository=False)
    assert sorted(os.listdir(plain.tree)) == ["link", "pkg", "run.sh"]
    with pytest.raises(UsageError, match="git can't"):
        store.add_git_commit(source, "no-such-branch")


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "safe.directory=*"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
