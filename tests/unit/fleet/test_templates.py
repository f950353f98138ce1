import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from handtools.core.errors import NotFound, StorageFault, TooLarge, UsageError
from handtools.fleet import tar_archives
from handtools.fleet.tar_archives import pack_folder
from handtools.fleet.templates import TemplateStore, digest_of_folder
from handtools.host.files import git_repository


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
    plain = gzip.decompress(packed.getvalue())
    wanted = store.add_folder(source).digest
    forms = (gzip.compress, bz2.compress, lzma.compress, zstandard.compress, bytes)
    assert {store.add_tarball(io.BytesIO(pack(plain))).digest for pack in forms} == {wanted}


Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str, data: bytes = b"", *, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(data)
    return info, data


def tarball(*members: Member) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    packed.seek(0)
    return packed


def test_a_tarball_is_unpacked_as_it_is(tmp_path: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    first, again = member("a/b", b"b", mode=0o640), member("a/c", kind=tarfile.LNKTYPE, link="a/b")
    first[0].mtime = 1_000_000_000
    absolute = member("l", kind=tarfile.SYMTYPE, link="/nowhere/at/all")
    hidden = member(".wh.a", b"only a name")
    made = store.add_tarball(tarball(first, again, absolute, hidden))
    assert sorted(os.listdir(made.tree)) == [".wh.a", "a", "l"]
    assert os.path.samefile(made.tree / "a/b", made.tree / "a/c")
    found = (made.tree / "a/b").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime) == (0o640, 1_000_000_000)
    assert os.readlink(made.tree / "l") == "/nowhere/at/all"


def test_no_privilege_and_no_device_comes_with_a_tarball_or_a_folder(tmp_path: Path, source: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    special = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    made = store.add_tarball(
        tarball(
            *(member(f"special{number}", kind=kind) for number, kind in enumerate(special)),
            member("su", b"x", mode=0o6755),
            member("shared", kind=tarfile.DIRTYPE, mode=0o3777),
        )
    )
    found = {name: stat.S_IMODE((made.tree / name).stat().st_mode) for name in os.listdir(made.tree)}
    assert found == {"su": 0o755, "shared": 0o1777}
    (source / "run.sh").chmod(0o4755)
    (source / "pkg").chmod(0o2755)
    (source / "pkg" / "a.py").chmod(0o6644)
    made = store.add_folder(source)
    modes = [(made.tree / name).stat().st_mode for name in ("run.sh", "pkg", "pkg/a.py")]
    assert [stat.S_IMODE(mode) for mode in modes] == [0o755, 0o755, 0o644]


def bypass_of_the_filter(outside: Path) -> list[Member]:
    """CVE-2025-4517: links whose real path is too long for the standard library to follow."""
    long, members, path = "d" * 247, [], ""
    for step in "abcdefghijklmnop":
        members.append(member(os.path.join(path, long), kind=tarfile.DIRTYPE, mode=0o755))
        members.append(member(os.path.join(path, step), kind=tarfile.SYMTYPE, link=long))
        path = os.path.join(path, long)
    link = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    members.append(member(link, kind=tarfile.SYMTYPE, link="../" * 16))
    target = link + "/" + "../" * 12 + str(outside).lstrip("/")
    return [*members, member("escape", kind=tarfile.SYMTYPE, link=target), member("escape/pwned", b"x")]


HOSTILE: list[Callable[[Path], list[Member]]] = [
    bypass_of_the_filter,
    lambda _: [member("../outside/pwned", b"x")],
    lambda outside: [member(str(outside / "pwned"), b"x")],
    lambda outside: [
        member("l", kind=tarfile.SYMTYPE, link=str(outside)),
        member("l/pwned", b"x"),
    ],
    lambda outside: [
        member("l", kind=tarfile.LNKTYPE, link=str(outside / "victim")),
        member("l", b"changed"),
    ],
    lambda _: [member("l", kind=tarfile.LNKTYPE, link="../outside/victim"), member("l", b"changed")],
    lambda _: [member("l", kind=tarfile.SYMTYPE, link=".."), member("l/outside/pwned", b"x")],
    lambda _: [member("a" * 70_000, b"x")],
    lambda _: [member("a/b", b"x"), member("a", b"x"), member("a/b", b"x")],
]


@pytest.mark.parametrize("members", HOSTILE)
def test_no_tarball_writes_outside(tmp_path: Path, members: Callable[[Path], list[Member]]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("victim")
    store = TemplateStore(tmp_path / "store")
    try:
        store.add_tarball(tarball(*members(outside)))
    except UsageError:
        assert os.listdir(tmp_path / "store") == []
    assert sorted(os.listdir(tmp_path)) == ["outside", "store"]
    assert os.listdir(outside) == ["victim"]
    assert (outside / "victim").read_text() == "victim"


def test_a_tarball_that_leads_out_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = TemplateStore(tmp_path / "store")
    with pytest.raises(UsageError, match="Can't unpack the archive: it contains a path outside itself"):
        store.add_tarball(tarball(member("../outside", b"x")))
    with pytest.raises(UsageError, match="Can't unpack"):
        store.add_tarball(tmp_path / "missing.tar")
    assert not (tmp_path / "outside").exists()
    assert os.listdir(tmp_path / "store") == []


def sparse_file(size: int) -> bytes:
    """An archive with a file that is a hole of some bytes."""
    info = member("hole")[0]
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(size)}
    data = f"1\n{size}\n0\n".encode().ljust(512, b"\0")
    info.size = len(data)
    return tarball((info, data)).getvalue()


def long_header(size: int) -> bytes:
    """An archive whose first header says that the name which follows has so many bytes."""
    info = member("././@LongLink", kind=tarfile.GNUTYPE_LONGNAME)[0]
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)


BOMBS = {
    "a hole of 8 TB": lambda: sparse_file(8 << 40),
    "a header of 6 GB": lambda: long_header(6 << 30),
    "headers of headers": lambda: b"".join(
        member("././@LongLink", bytes(10), kind=tarfile.GNUTYPE_LONGNAME)[0].tobuf(tarfile.GNU_FORMAT)
        + bytes(512)
        for _ in range(5_000)
    ),
    "zeros without end": lambda: gzip.compress(tarball(member("zeros", bytes(4 << 20))).getvalue()),
    "many files": lambda: tarball(*(member(f"{number}") for number in range(2_000))).getvalue(),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_archive_unpacks_to_no_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tar_archives.ArchiveBudget.__init__, "__defaults__", (2 << 20, 1_000))
    store = TemplateStore(tmp_path / "store")
    with pytest.raises((UsageError, TooLarge)):
        store.add_tarball(io.BytesIO(BOMBS[name]()))
    assert os.listdir(tmp_path / "store") == []


def committed(folder: Path) -> Path:
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "one")
    return folder


def test_a_commit_becomes_a_template_with_a_repository(tmp_path: Path, source: Path) -> None:
    committed(source)
    first = _git(source, "rev-parse", "HEAD").strip()
    (source / "later.txt").write_text("not committed\n")
    store = TemplateStore(tmp_path / "store")
    made = store.add_git_commit(source)
    assert sorted(os.listdir(made.tree)) == [".git", "link", "pkg", "run.sh"]
    assert _git(made.tree, "status", "--porcelain") == ""
    assert _git(made.tree, "log", "--format=%H %s") == f"{first} one\n"
    assert _git(made.tree, "fsck", "--strict") == ""
    assert store.add_git_commit(source, "HEAD").digest == made.digest
    plain = store.add_git_commit(source, with_repository=False)
    assert sorted(os.listdir(plain.tree)) == ["link", "pkg", "run.sh"]
    with pytest.raises(UsageError, match="no commit 'no-such-branch'"):
        store.add_git_commit(source, "no-such-branch")
    # A workspace can commit on it, and the next commit has it as its parent.
    (made.tree / "run.sh").write_text("false\n")
    _git(made.tree, "commit", "-qam", "two")
    assert _git(made.tree, "rev-parse", "HEAD~1").strip() == first


def test_a_commit_is_found_in_a_bare_repository_and_by_any_name(tmp_path: Path, source: Path) -> None:
    committed(source)
    (source / "run.sh").write_text("false\n")
    _git(source, "commit", "-qam", "two")
    _git(source, "tag", "-a", "-m", "x", "v1", "HEAD~1")
    _git(source, "branch", "side/line", "HEAD~1")
    _git(source, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~1")
    _git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    _git(source, "gc", "-q")
    store = TemplateStore(tmp_path / "store")
    first = store.add_git_commit(source, "HEAD~1").digest
    for place, name in (
        (source, "v1"),
        (source, "side/line"),
        (source, "refs/heads/side/line"),
        (source, _git(source, "rev-parse", "HEAD~1").strip()[:9]),
        (source / "pkg", "main~1"),
        (tmp_path / "tree", "HEAD"),
        (tmp_path / "bare.git", "HEAD^"),
    ):
        assert store.add_git_commit(place, name).digest == first, (place, name)


def test_a_commit_is_the_same_template_whatever_the_umask(tmp_path: Path, source: Path) -> None:
    committed(source)
    store = TemplateStore(tmp_path / "store")
    wanted = store.add_git_commit(source).digest
    umask = os.umask(0o077)
    try:
        assert store.add_git_commit(source).digest == wanted
    finally:
        os.umask(umask)


SETTINGS = """
[core]
	repositoryFormatVersion = 1
	fsmonitor = "{run}"
	sshCommand = "{run}"
	hooksPath = {hooks}
	pager = "{run}"
	alternateRefsCommand = "{run}"
	attributesFile = {hooks}/attributes
[extensions]
	partialClone = origin
[remote "origin"]
	url = ssh://nowhere/x
	promisor = true
	uploadpack = "{run}"
[filter "x"]
	smudge = "{run}"
	clean = "{run}"
	process = "{run}"
	required = true
[uploadpack]
	packObjectsHook = "{run}"
[alias]
	archive = "!{run}"
	checkout-index = "!{run}"
[diff "x"]
	textconv = "{run}"
[gpg]
	program = "{run}"
[include]
	path = {hooks}/more
"""
HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman")


def hostile_settings(repository: Path, tmp_path: Path) -> Path:
    """Have every setting and hook that we know leave a mark; the path of that mark."""
    mark, run, hooks = tmp_path / "mark", tmp_path / "run.sh", tmp_path / "hooks"
    run.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    run.chmod(0o755)
    hooks.mkdir()
    for hook in HOOKS:
        for folder in (hooks, repository / ".git" / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / hook).symlink_to(run)
    (hooks / "attributes").write_text("* filter=x diff=x\n")
    (hooks / "more").write_text("[core]\n\tautocrlf = true\n")
    (repository / ".git" / "config").write_text(SETTINGS.format(run=run, hooks=hooks))
    return mark


@pytest.mark.parametrize("with_repository", [True, False])
def test_no_setting_filter_or_hook_of_the_source_is_used(
    tmp_path: Path, source: Path, with_repository: bool
) -> None:
    (source / ".gitattributes").write_text("* filter=x diff=x\n*.bin filter=lfs -text\n")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"
    (source / "large.bin").write_text(pointer)
    committed(source)
    store = TemplateStore(tmp_path / "store")
    wanted = store.add_git_commit(source, with_repository=with_repository).digest
    mark = hostile_settings(source, tmp_path)
    made = store.add_git_commit(source, with_repository=with_repository)
    assert made.digest == wanted
    assert (made.tree / "large.bin").read_text() == pointer
    assert (made.tree / "run.sh").read_bytes() == b"true\n"
    if with_repository:
        assert "run.sh" not in (made.tree / ".git" / "config").read_text()
        assert _git(made.tree, "status", "--porcelain") == ""
    assert not mark.exists()
    subprocess.run(["git", "status"], cwd=source, capture_output=True, check=False)
    assert mark.exists(), "git in the repository itself does run them"


@pytest.mark.parametrize("missing", ["HEAD", "HEAD^{tree}", "HEAD:run.sh"])
def test_missing_objects_are_an_error_and_nothing_is_fetched(
    tmp_path: Path, source: Path, missing: str
) -> None:
    committed(source)
    name = _git(source, "rev-parse", missing).strip()
    (source / ".git" / "objects" / name[:2] / name[2:]).unlink()
    mark = hostile_settings(source, tmp_path)
    store = TemplateStore(tmp_path / "store")
    with pytest.raises(UsageError, match="Use a full clone"):
        store.add_git_commit(source)
    assert not mark.exists()
    assert os.listdir(tmp_path / "store") == []


def test_objects_elsewhere_and_replaced_ones_are_not_read(tmp_path: Path, source: Path) -> None:
    committed(source)
    _git(tmp_path, "clone", "-q", "--shared", str(source), "shared")
    store = TemplateStore(tmp_path / "store")
    with pytest.raises(UsageError, match="Use a full clone"):
        store.add_git_commit(tmp_path / "shared")
    old = _git(source, "rev-parse", "HEAD:run.sh").strip()
    (source / "other").write_text("replaced\n")
    _git(source, "replace", old, _git(source, "hash-object", "-w", "other").strip())
    assert (store.add_git_commit(source).tree / "run.sh").read_text() == "true\n"


def test_an_object_that_is_not_what_its_name_says_is_refused(tmp_path: Path, source: Path) -> None:
    committed(source)
    for what, forged in (("HEAD:run.sh", b"blob 6\0false\n"), ("HEAD", b"commit 3\0abc")):
        name = _git(source, "rev-parse", what).strip()
        place = source / ".git" / "objects" / name[:2] / name[2:]
        before = place.read_bytes()
        place.chmod(0o644)
        place.write_bytes(zlib.compress(forged))
        with pytest.raises(UsageError, match="Can't read the commit"):
            TemplateStore(tmp_path / "store").add_git_commit(source)
        place.write_bytes(before)
    TemplateStore(tmp_path / "store").add_git_commit(source)


def commit_of(repository: Path, *entries: tuple[str, str, bytes | str]) -> str:
    """A commit of a tree that git itself would not write: mode, name, and content or an object's id."""
    raw = b""
    for mode, name, content in entries:
        found = content if isinstance(content, str) else _object(repository, "blob", content)
        raw += f"{mode} {name}".encode() + b"\0" + bytes.fromhex(found)
    tree = _object(repository, "tree", raw)
    return _git(repository, "commit-tree", "-m", "x", tree).strip()


def _object(repository: Path, kind: str, data: bytes) -> str:
    (repository / "raw").write_bytes(data)
    return _git(repository, "hash-object", "-w", "-t", kind, "--literally", "raw").strip()


def test_a_tree_that_leads_out_writes_nothing_outside(tmp_path: Path, source: Path) -> None:
    committed(source)
    outside = tmp_path / "outside"
    outside.mkdir()
    inner = _object(source, "tree", b"100644 pwned\0" + bytes.fromhex(_object(source, "blob", b"x")))
    for commit in (
        commit_of(source, ("40000", "..", inner)),
        commit_of(source, ("40000", ".git", inner)),
        commit_of(source, ("40000", ".", inner)),
        commit_of(source, ("40000", "../outside", inner)),
        commit_of(source, ("120000", "l", str(outside).encode()), ("40000", "l", inner)),
        commit_of(source, ("40000", "l", inner), ("120000", "l", str(outside).encode())),
        commit_of(source, ("106755", "s", b"x")),
    ):
        store = TemplateStore(tmp_path / "store")
        for with_repository in (True, False):
            try:
                made = store.add_git_commit(source, commit, with_repository=with_repository)
            except UsageError:
                continue
            modes = [os.lstat(os.path.join(top, each)).st_mode for top, _, files in os.walk(made.tree)
                     for each in files]  # fmt: skip
            assert not any(mode & 0o6000 for mode in modes)
        assert os.listdir(outside) == []
        assert not any(name.startswith("pwned") for name in os.listdir(tmp_path / "store"))


def test_trees_that_name_each_other_many_times_are_refused(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(source)
    tree = _object(source, "tree", b"100644 a\0" + bytes.fromhex(_object(source, "blob", b"x")))
    for _ in range(12):
        rows = [b"40000 %d\0" % number + bytes.fromhex(tree) for number in range(10)]
        tree = _object(source, "tree", b"".join(rows))
    commit = _git(source, "commit-tree", "-m", "x", tree).strip()
    limits = git_repository.programs.ProgramLimits(seconds=60.0, output_bytes=1 << 20)
    monkeypatch.setattr(git_repository, "_LISTING_LIMITS", limits)
    with pytest.raises(TooLarge):
        TemplateStore(tmp_path / "store").add_git_commit(source, commit)
    assert os.listdir(tmp_path / "store") == []


def stored(store: TemplateStore, digest: str) -> io.BytesIO:
    """A template as it is kept in an object store."""
    packed = io.BytesIO()
    pack_folder(store.get_template(digest).tree, packed)
    return io.BytesIO(zstandard.compress(packed.getvalue()))


def test_a_stored_template_is_the_same_on_another_host(tmp_path: Path, source: Path) -> None:
    (source / "shared").mkdir()
    (source / "shared").chmod(0o1777)
    (source / "pkg" / "a.py").chmod(0o464)
    os.link(source / "pkg" / "a.py", source / "pkg" / "same")
    here, there = TemplateStore(tmp_path / "here"), TemplateStore(tmp_path / "there")
    digest = here.add_folder(source).digest
    made = there.restore_template(digest, stored(here, digest))
    assert digest_of_folder(made.tree) == digest
    assert os.path.samefile(made.tree / "pkg" / "a.py", made.tree / "pkg" / "same")
    commit = here.add_git_commit(committed(source)).digest
    made = there.restore_template(commit, stored(here, commit))
    assert (made.digest, _git(made.tree, "status", "--porcelain")) == (commit, "")


def test_a_stored_template_with_other_content_is_refused(tmp_path: Path, source: Path) -> None:
    here, there = TemplateStore(tmp_path / "here"), TemplateStore(tmp_path / "there")
    digest = here.add_folder(source).digest
    (source / "run.sh").write_text("false\n")
    other = here.add_folder(source).digest
    for packed in (stored(here, other), io.BytesIO(b"no archive"), tarball(member("../x", b"x"))):
        with pytest.raises(StorageFault, match=f"template {digest[:12]} is damaged or was replaced"):
            there.restore_template(digest, packed)
    assert os.listdir(tmp_path / "there") == []


def test_a_stored_repository_brings_no_settings_and_no_other_objects(tmp_path: Path, source: Path) -> None:
    here, there = TemplateStore(tmp_path / "here"), TemplateStore(tmp_path / "there")
    digest = here.add_git_commit(committed(source)).digest
    own = here.get_template(digest).tree / ".git"
    (own / "config").write_text("[core]\n\tfsmonitor = touch pwned\n")
    (own / "hooks").mkdir()
    (own / "hooks" / "post-checkout").write_text("touch pwned\n")
    made = there.restore_template(digest, stored(here, digest))
    assert "fsmonitor" not in (made.tree / ".git" / "config").read_text()
    assert not (made.tree / ".git" / "hooks").exists()
    assert _git(made.tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("digest", ["../x", "x", "", "/etc", "0" * 63, "0" * 64 + "/../x"])
def test_what_is_no_digest_names_no_template(tmp_path: Path, source: Path, digest: str) -> None:
    store = TemplateStore(tmp_path / "store")
    packed = stored(store, store.add_folder(source).digest)
    with pytest.raises((NotFound, StorageFault)):
        store.restore_template(digest, packed) if digest else store.get_template(digest)
    with pytest.raises(NotFound):
        store.has_template(digest)
    assert len(os.listdir(tmp_path / "store")) == 1
    assert sorted(os.listdir(tmp_path)) == ["source", "store"]


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "safe.directory=*"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
