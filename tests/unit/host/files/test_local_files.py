"""What only a disk has: owners, attributes, modes, handles, odd machines."""

import contextlib
import gc
import os
import resource
import stat
import subprocess
import sys
import textwrap
import time

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import NotFound, OutsideWorkspace, StorageFault, TooLarge, ToolError, WrongKind
from handtools.host.files import change_detection, local_files, syscalls
from handtools.host.files.file_locks import FileLocks
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.local_files import LocalFiles
from handtools.host.workspace_folders import combined_workspace

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="machine: not root")


def edit(root, path="a", before=b"old", after=b"new", **options):
    files = LocalFiles(root)
    files.perform(files.plan([Change.of(path, before=before, after=after, **options)]))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    return path


def test_python_runs_an_edit_of_the_same_size_made_at_once(tmp_path):
    source = tmp_path / "answer.py"
    source.write_bytes(b"print(0)\n")
    line = [sys.executable, "-c", "import answer"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for number in range(3):
        before, after = b"print(%d)\n" % number, b"print(%d)\n" % (number + 1)
        # As if no time had passed since the file that was compiled.
        now = time.time_ns()
        os.utime(source, ns=(now, max(now, source.stat().st_mtime_ns)))
        subprocess.run(line, cwd=tmp_path, env=environment, check=True, capture_output=True)
        edit(tmp_path, "answer.py", before, after)
        ran = subprocess.run(line, cwd=tmp_path, env=environment, check=True, capture_output=True)
        assert ran.stdout == b"%d\n" % (number + 1)


@pytest.mark.parametrize(("after", "ahead"), [(b"new", 3), (b"longer", 0)])
def test_a_file_of_another_size_or_from_the_future_gets_the_time_of_the_edit(file, after, ahead):
    moment = time.time_ns() + ahead * 1_000_000_000
    os.utime(file, ns=(moment, moment))
    edit(file.parent, after=after)
    assert file.stat().st_mtime_ns <= time.time_ns()


@as_root
def test_an_edit_keeps_owner_and_group(file):
    os.chown(file, 1234, 4321)
    edit(file.parent)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


@as_root
@pytest.mark.parametrize(
    "node", [Node("file", b"new"), Node("file", b"new", 0o750), Node("link", b"target")], ids=str
)
def test_what_root_creates_in_a_folder_of_another_user_belongs_to_that_user(tmp_path, node):
    os.chown(tmp_path, 1234, 4321)
    files = LocalFiles(tmp_path)
    files.perform(files.plan([Change("new", None, node)]))
    made = (tmp_path / "new").lstat()
    assert (made.st_uid, made.st_gid) == (1234, 4321)
    assert node.mode is None or stat.S_IMODE(made.st_mode) == node.mode


@pytest.mark.linux("extended attributes")
def test_an_edit_keeps_extended_attributes(file):
    os.setxattr(file, "user.note", b"kept")
    edit(file.parent)
    assert os.getxattr(file, "user.note") == b"kept"


@as_root
@pytest.mark.linux("extended attributes")
def test_an_edit_keeps_access_lists(file):
    everyone = b"\xff\xff\xff\xff"
    owner, user, group = b"\x01\0\x06\0" + everyone, b"\x02\0\x04\0\xd2\x04\0\0", b"\x04\0\x04\0" + everyone
    mask, other = b"\x10\0\x04\0" + everyone, b"\x20\0\0\0" + everyone
    access = b"\x02\0\0\0" + owner + user + group + mask + other
    os.setxattr(file, "system.posix_acl_access", access)
    edit(file.parent)
    assert os.getxattr(file, "system.posix_acl_access") == access


@as_root
@pytest.mark.linux("extended attributes")
def test_a_privilege_of_the_old_bytes_is_not_given_to_the_new(file):
    capability = b"\x01\0\0\x02" + b"\x20" + b"\0" * 15
    os.setxattr(file, "security.capability", capability)
    edit(file.parent)
    assert "security.capability" not in os.listxattr(file)


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o640])
def test_an_edit_keeps_the_bits_that_were_there(file, mode):
    file.chmod(mode)
    edit(file.parent)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_new_file_takes_the_users_mask(tmp_path):
    old = os.umask(0o027)
    try:
        edit(tmp_path, "n", None)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "n").stat().st_mode) == 0o640


def test_a_mode_that_changes_while_the_new_file_is_made_is_not_lost(file, monkeypatch):
    real = FolderHandle.create_file

    def create_file(self, name, mode):
        file.chmod(0o600)
        return real(self, name, mode)

    monkeypatch.setattr(FolderHandle, "create_file", create_file)
    with pytest.raises(Exception, match="has changed since"):
        edit(file.parent)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["a"]


def test_thousands_of_workspaces_hold_nothing_open(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    many = [LocalFiles(tmp_path) for _ in range(3000)]
    assert {files.read("a") for files in many} == {b"x"}
    # What earlier tests left may be let go of meanwhile.
    assert set(os.listdir("/proc/self/fd")) <= before


def test_no_outcome_leaves_a_handle_open(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "d").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "in").symlink_to("d")
    os.mkfifo(tmp_path / "pipe")
    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    paths = ["a", "d", "out", "out/passwd", "in", "in/x", "pipe", "no", "a/x", "no/x", "..", "d/x/y"]
    for files in (LocalFiles(tmp_path, kernel=True), LocalFiles(tmp_path, kernel=False)):
        for path in paths:
            for use in (files.read, files.facts, files.names, files.node, files.locate):
                with contextlib.suppress(ToolError):
                    use(path)
            odd = Change.of(path if path != "a" else "d/a", before=b"odd", after=b"")
            with pytest.raises(ToolError):
                files.perform(files.plan([Change.of("a", before=b"old", after=b"new"), odd]))
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_workspace_made_anew_is_seen(tmp_path):
    root = tmp_path / "root"
    files = LocalFiles(root)
    with pytest.raises(NotFound):
        files.read("a")
    for content in (b"1", b"2"):
        root.mkdir()
        (root / "a").write_bytes(content)
        assert files.read("a") == content
        (root / "a").unlink()
        root.rmdir()


def test_a_workspace_swapped_for_a_link_is_refused(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    files = LocalFiles(root)
    root.rmdir()
    root.symlink_to("/etc")
    with pytest.raises((NotFound, OutsideWorkspace)):
        files.read("passwd")


def test_a_workspace_given_through_a_link_is_opened(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_bytes(b"x")
    (tmp_path / "alias").symlink_to("real")
    files = LocalFiles(tmp_path / "alias")
    assert files.read("a") == b"x"
    assert files.read(str(tmp_path / "alias" / "a")) == b"x"
    assert files.read(str(tmp_path / "real" / "a")) == b"x"


def test_a_file_over_the_limit_is_read_in_parts_only(file, monkeypatch):
    monkeypatch.setattr(local_files, "WHOLE_LIMIT_BYTES", 2)
    with pytest.raises(TooLarge):
        LocalFiles(file.parent).read("a")
    assert LocalFiles(file.parent).read("a", start=1, size=2) == b"ld"


def test_a_file_that_the_system_makes_up_is_read(tmp_path):
    assert LocalFiles("/proc/self").read("status").startswith(b"Name:")


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_file_is_told_as_other_and_never_opened(tmp_path, kind):
    import socket

    if kind == "pipe":
        os.mkfifo(tmp_path / "x")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "x"))
    files = LocalFiles(tmp_path)
    assert files.facts("x").kind == "other"
    assert [facts.kind for facts in files.names(".")] == ["other"]
    for look in (files.read, files.node):
        with pytest.raises(WrongKind):
            look("x")


def test_our_temporaries_are_not_listed(file):
    (file.parent / (".handtools-" + "a" * 24)).write_bytes(b"")
    (file.parent / ".handtools-notes").write_bytes(b"")
    names = [facts.path for facts in LocalFiles(file.parent).names(".")]
    assert names == [".handtools-notes", "a"]


@pytest.mark.parametrize("number", [5, 28, 30, 122])
def test_a_disk_that_refuses_leaves_the_old_file_and_nothing_else(file, monkeypatch, number):
    def refuse(fd):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageFault, match="Nothing was changed"):
        edit(file.parent)
    assert file.read_bytes() == b"old"
    assert os.listdir(file.parent) == ["a"]


def test_a_folder_that_cannot_be_made_durable_takes_the_change_back(file, monkeypatch):
    def refuse(self):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(FolderHandle, "sync", refuse)
    with pytest.raises(StorageFault):
        edit(file.parent)
    assert file.read_bytes() == b"old"
    assert os.listdir(file.parent) == ["a"]


HIDDEN = textwrap.dedent("""
    import asyncio, os, sys, tempfile
    import anyio, anyio._backends._asyncio
    for name in ("fcntl", "ctypes", "pwd", "grp", "resource", "termios"):
        sys.modules[name] = None
    for name in ("O_PATH", "O_NOFOLLOW", "pread", "fchown", "listxattr", "setxattr", "getxattr"):
        if hasattr(os, name):
            delattr(os, name)
    if "no-handles" in sys.argv:
        os.supports_dir_fd = set()

    from handtools.core.changes import Change, Node
    from handtools.core.errors import Busy, Stale
    from handtools.host.files import syscalls
    from handtools.host.files.local_files import LocalFiles
    from handtools.host.files.file_locks import FileLocks
    from handtools.host.files.folder_blob_store import FolderBlobStore

    assert not syscalls.has_openat2()
    root = tempfile.mkdtemp()
    files = LocalFiles(root)
    files.perform(files.plan([Change("d", None, Node("folder")), Change.of("d/a", before=None, after=b"1")]))
    files.perform(files.plan([Change.of("d/a", before=b"1", after=b"2")]))
    try:
        missing = Change.of("d/b", before=b"", after=b"")
        files.perform(files.plan([Change.of("d/a", before=b"2", after=b"3"), missing]))
        raise SystemExit("not stale")
    except Stale:
        pass
    assert files.read("d/a") == b"2"
    assert [facts.path for facts in files.names("d")] == ["d/a"]

    async def locked():
        async with FileLocks(root + "/l").hold(["a"], timeout=0):
            try:
                async with FileLocks(root + "/l").hold(["a"], timeout=0.01):
                    raise SystemExit("not busy")
            except Busy:
                pass
    anyio.run(locked)
    store = FolderBlobStore(root + "/s")
    store.put(b"x", name="x")
    assert store.get("x") == b"x"
    print("works")
""")


@pytest.mark.parametrize("machine", ["no-modules", "no-handles"])
def test_a_machine_without_the_posix_modules_is_good_enough(machine):
    command = [sys.executable, "-c", HIDDEN, machine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "works\n", done.stderr


async def hold_once(folder):
    async with FileLocks(folder).hold(["a"], timeout=0):
        pass


def test_a_lock_folder_that_cannot_be_made_is_a_clear_fault(tmp_path):
    import anyio

    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Exception, match="not a folder"):
        anyio.run(hold_once, tmp_path / "file" / "locks")


@pytest.mark.linux("openat2", "O_PATH", "leases", "exchange by rename")
def test_the_kernel_of_this_machine_is_tested(tmp_path):
    """The tests above mean little if they ran without the calls they are about."""
    (tmp_path / "a").write_bytes(b"")
    assert syscalls.has_openat2()
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    assert syscalls.try_read_lease(fd) == "held"
    os.close(fd)
    (tmp_path / "b").write_bytes(b"b")
    syscalls.rename_exchange(None, str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "a").read_bytes() == b"b"


def test_a_link_node_keeps_the_bytes_of_its_target(tmp_path):
    files = LocalFiles(tmp_path)
    node = Node("link", b"caf\xe9/\xff")
    files.perform(files.plan([Change("l", None, node)]))
    assert files.node("l") == node


def test_a_link_behind_a_link_that_climbs_is_followed_to_its_end(tmp_path):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / ".env").write_bytes(b"secret")
    (tmp_path / "deep" / "down" / "first").symlink_to("../../other/second")
    (tmp_path / "other" / "second").symlink_to("../.env")
    assert LocalFiles(tmp_path).locate("deep/down/first") == ".env"


@pytest.mark.linux("folder handles")
def test_a_folder_that_becomes_a_link_while_a_path_is_resolved_is_followed_to_its_end(
    tmp_path, monkeypatch
):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to("old")
    look = os.stat

    def look_and_swap(name, **options):
        found = look(name, **options)
        if name == "old" and stat.S_ISDIR(found.st_mode):
            os.rename(tmp_path / "old", tmp_path / "away")
            os.symlink("new", tmp_path / "old")
        return found

    monkeypatch.setattr(os, "stat", look_and_swap)
    assert LocalFiles(tmp_path).locate("link/file") == "new/file"


@pytest.mark.linux("folder handles")
def test_a_folder_that_becomes_a_link_and_a_folder_again_ten_times_is_followed_to_its_end(
    tmp_path, monkeypatch
):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("old")
    look, swaps = os.stat, iter(range(20))

    def look_and_swap(name, **options):
        found = look(name, **options)
        if name == "old" and next(swaps, None) is not None:
            if stat.S_ISDIR(found.st_mode):
                os.rename(tmp_path / "old", tmp_path / "away")
                os.symlink("new", tmp_path / "old")
            else:
                os.unlink(tmp_path / "old")
                os.rename(tmp_path / "away", tmp_path / "old")
        return found

    monkeypatch.setattr(os, "stat", look_and_swap)
    assert LocalFiles(tmp_path).locate("link/file") == "old/file"


@pytest.mark.linux("openat2")
@pytest.mark.parametrize("spare", [0, 1])
def test_a_lack_of_handles_while_a_path_is_resolved_is_told(tmp_path, spare):
    """Nor is it taken for a kernel that lacks openat2, which is looked for once."""
    syscalls.has_openat2.cache_clear()
    (tmp_path / "a").mkdir()
    limits, opened = resource.getrlimit(resource.RLIMIT_NOFILE), [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened[0] + 16, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.dup(0))
        for _ in range(spare):
            os.close(opened.pop())
        with pytest.raises(ToolError, match="Too many files are open"):
            LocalFiles(tmp_path).locate("a/b")
    finally:
        for handle in opened:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert syscalls.has_openat2()


@pytest.mark.parametrize("name", ["é\n", "~é", "ü\\a", "a\n"])
def test_a_name_that_nobody_would_write_is_listed_and_read(tmp_path, name):
    (tmp_path / name).write_bytes(b"in it")
    files = LocalFiles(tmp_path)
    [listed] = files.names(".")
    assert files.facts(listed.path) is not None
    assert files.read(listed.path) == b"in it"


def test_in_a_workspace_given_through_a_link_a_path_is_refused_for_what_is_wrong_with_it(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OutsideWorkspace, match="contains a backslash"):
        LocalFiles(tmp_path / "link").locate(f"{tmp_path}/link/a\\b")


def test_the_top_of_several_folders_lists_those_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folders = [tmp_path / "x" / "api", tmp_path / "y" / "web"]
    for folder in folders:
        folder.mkdir(parents=True)
    files = LocalFiles(combined_workspace(folders))
    assert [(facts.path, facts.kind) for facts in files.names(".")] == [
        ("api", "folder"),
        ("web", "folder"),
    ]
    folders[0].rmdir()
    assert [facts.path for facts in files.names(".")] == ["web"]


def git(folder, *args):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", folder, *identity, *args], check=True, capture_output=True)


def rewritten(path, text):
    """Write a file in place so that only its ctime shows it, which moves in ticks of the kernel's clock."""
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def tracked(tmp_path, monkeypatch):
    """A workspace whose file `.env` git tracks, with a state that is old enough to be believed."""
    monkeypatch.setattr(change_detection, "MIN_BELIEVED_AGE_NS", -(10**12))
    (tmp_path / ".env").write_text("PORT=1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".env")
    files = LocalFiles(tmp_path)
    assert files.is_tracked_by_git(".env")
    return files


def test_a_tracked_file_is_no_longer_tracked_when_only_its_ctime_shows_a_change(tmp_path, tracked):
    rewritten(tmp_path / ".env", "KEY=99")
    assert not tracked.is_tracked_by_git(".env")
    rewritten(tmp_path / ".env", "PORT=1")
    assert tracked.is_tracked_by_git(".env")


def test_a_tracked_file_is_no_longer_tracked_when_the_index_drops_it(tmp_path, tracked):
    assert tracked.is_tracked_by_git(".env")
    git(tmp_path, "rm", "-q", "--cached", ".env")
    assert not tracked.is_tracked_by_git(".env")


def test_another_file_in_the_place_of_a_tracked_one_is_not_tracked(tmp_path, tracked):
    (tmp_path / "secret").write_text("KEY=99")
    (tmp_path / "secret").replace(tmp_path / ".env")
    assert not tracked.is_tracked_by_git(".env")


def test_the_state_of_a_file_is_believed_only_if_it_was_old_when_the_file_was_read(tmp_path):
    (tmp_path / "a").write_text("x")
    state = change_detection.file_state(str(tmp_path / "a"))
    second = 10**9
    assert not change_detection.will_show_changes(state, state[-1])
    assert not change_detection.will_show_changes(state, state[-1] + 2 * second)
    assert change_detection.will_show_changes(state, state[-1] + 2 * second + 1)
    assert not change_detection.will_show_changes((), time.time_ns())
