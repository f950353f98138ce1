"""Disks that refuse: full, read-only, closed to us. The old file stays, nothing is left beside it."""

import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import StorageFault
from handtools.host.files.local_files import LocalFiles
from handtools.toolbox import CODING, Toolbox, local_workspace

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="machine: not Linux"),
    pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="machine: not root"),
]


@pytest.fixture
def small(tmp_path):
    """A file system of one megabyte."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=40", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def everything(disk):
    return {
        str(path.relative_to(disk)): path.read_bytes() if path.is_file() else None
        for path in disk.rglob("*")
    }


def perform(root, *changes):
    files = LocalFiles(root)
    files.perform(files.plan(changes))


def test_a_full_disk_refuses_the_write_and_keeps_the_old_file(small):
    (small / "a").write_bytes(b"old")
    before = everything(small)
    with pytest.raises(StorageFault, match="full"):
        perform(small, Change.of("a", before=b"old", after=b"x" * 2_000_000))
    assert everything(small) == before
    perform(small, Change.of("a", before=b"old", after=b"x" * 100_000))


def test_a_disk_that_fills_up_midway_takes_the_earlier_files_back(small):
    (small / "gone").write_bytes(b"delete me")
    changes = [
        Change("d", None, Node("folder")),
        Change.of("gone", before=b"delete me", after=None),
        *[Change.of(f"d/{n}", before=None, after=b"x" * 300_000) for n in range(5)],
    ]
    before = everything(small)
    with pytest.raises(StorageFault, match="full"):
        perform(small, *changes)
    assert everything(small) == before
    perform(small, *changes[:4])


def test_a_disk_without_room_for_another_name_refuses(small):
    (small / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        for number in range(100):
            (small / f"n{number}").touch()
    before = everything(small)
    with pytest.raises(StorageFault, match="full"):
        perform(small, Change.of("a", before=b"old", after=b"new"))
    assert everything(small) == before
    perform(small, Change.of("a", before=b"old", after=None))


@pytest.mark.parametrize(
    "change",
    [
        Change.of("a", before=b"old", after=b"new"),
        Change.of("a", before=b"old", after=None),
        Change.of("n", before=None, after=b"new"),
        Change("d", None, Node("folder")),
        Change("l", None, Node("link", b"a")),
        Change("e", Node("folder"), None),
    ],
)
def test_a_read_only_disk_refuses_every_change_and_can_be_read(small, change):
    (small / "a").write_bytes(b"old")
    (small / "e").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    before = everything(small)
    with pytest.raises(StorageFault, match="read-only"):
        perform(small, change)
    assert everything(small) == before
    assert LocalFiles(small).read("a") == b"old"


NOBODY = textwrap.dedent("""
    import os, sys
    from handtools.core.changes import Change, Node
    from handtools.core.errors import StorageFault, ToolError
    from handtools.host.files import os_errors, transaction, transaction
    from handtools.host.files.local_files import LocalFiles

    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    files = LocalFiles(sys.argv[1])
    OLD = Node("file", b"old")

    def refused(use, *args):
        try:
            use(*args)
        except StorageFault as fault:
            assert "permission" in str(fault) or "not allow" in str(fault), fault
        else:
            raise SystemExit(f"not refused: {use} {args}")

    def perform(*changes):
        files.perform(files.plan(changes))

    refused(files.read, "closed/a")
    refused(files.facts, "closed/a")
    refused(files.names, "closed")
    refused(files.read, "secret")
    refused(perform, Change.of("fixed/a", before=b"old", after=b"new"))
    refused(perform, Change.of("fixed/n", before=None, after=b"new"))
    refused(perform, Change.of("fixed/a", before=b"old", after=None))
    refused(perform, Change("fixed/d", None, Node("folder")))
    refused(perform, Change.of("open/mine", before=None, after=b"x"), Change.of("fixed/n", before=None, after=b""))
    refused(perform, Change.of("sticky/a", before=b"old", after=b"new"))
    refused(perform, Change.of("sticky/a", before=b"old", after=None))
    assert files.read("fixed/a") == b"old"

    # Another's file in a folder we may write to: no lease, so the bytes are compared a second time.
    perform(Change.of("open/a", before=b"old", after=b"new"))
    assert files.read("open/a") == b"new"
    # A folder that we may enter but not list.
    perform(Change.of("blind/a", before=b"old", after=b"new"))
    print("done")
""")


@pytest.fixture
def reachable():
    """A folder that others may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o711)
        yield Path(above) / "workspace"


def test_what_we_may_not_do_is_refused_with_nothing_half_done(reachable):
    root = reachable
    modes = {"closed": 0o700, "fixed": 0o755, "open": 0o777, "sticky": 0o1777, "blind": 0o733}
    for name, mode in modes.items():
        (root / name).mkdir(parents=True)
        (root / name / "a").write_bytes(b"old")
        (root / name).chmod(mode)
    (root / "secret").write_bytes(b"secret")
    (root / "secret").chmod(0o600)
    (root / "sticky" / "a").chmod(0o666)
    command = [sys.executable, "-c", NOBODY, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr
    names = {str(path.relative_to(root)) for path in root.rglob("*")}
    assert names == {*modes, *(f"{name}/a" for name in modes), "secret"}
    assert (root / "open" / "a").stat().st_uid == 65534


async def test_a_record_without_room_never_says_untouched_of_a_file_that_changed(small, tmp_path):
    """Room for the intent and none for the end of it, and everything around that: what is said is what is so."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "a").write_text("0")
    told = set()
    async with Toolbox(CODING, workspace=local_workspace(root, state=small)) as box:
        await box.call("read", {"path": "a"})
        for round_number in range(1, 60):
            free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
            with (small / "ballast").open("ab") as ballast:
                ballast.write(bytes(max(free - 4096 * (round_number % 15), 0)))
            content = f"{round_number}" * 900
            result = await box.call("write", {"path": "a", "content": content, "mode": "overwrite"})
            changed = (root / "a").read_text() == content
            assert changed or not result.ok, result.text
            assert result.ok or ("did change" in result.text) == changed, result.text
            told.add((result.ok, changed))
            os.truncate(small / "ballast", 0)
    assert (False, True) in told or (False, False) in told


def started(*args, limit=None, **variables):
    """What `handtools` says when it starts on a machine that refuses."""

    def fewer_files():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    command = [sys.executable, "-c", "from handtools.cli.entry import main; main()", *map(str, args)]
    return subprocess.run(
        command,
        env=os.environ | {name: str(value) for name, value in variables.items()},
        preexec_fn=fewer_files,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_server_without_handles_says_so_in_one_line(tmp_path):
    done = started("mcp", tmp_path, limit=6)
    assert done.returncode
    assert done.stderr == "handtools: too many open files. Raise the limit: ulimit -n 1024\n"


def test_a_home_that_is_read_only_is_named_with_another_way(small, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    (tmp_path / "work").mkdir()
    done = started("log", "--workspace", tmp_path / "work", HOME=small, XDG_STATE_HOME=small / "state")
    assert "Read-only file system" in done.stderr
    assert "Set HANDTOOLS_STATE to another folder" in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_full_disk_at_the_first_call_says_what_to_do(small, tmp_path):
    (tmp_path / "a").write_text("old")
    (small / "state").mkdir()
    free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
    (small / "ballast").write_bytes(bytes(free))
    workspace = local_workspace(tmp_path, state=small / "state")
    async with Toolbox(CODING, workspace=workspace) as box:
        refused = await box.call("write", {"path": "a", "content": "new", "mode": "overwrite"})
        assert "full" in refused.text
        assert "Free up space there, or set HANDTOOLS_STATE to a folder on another disk." in refused.text
        assert (tmp_path / "a").read_text() == "old"
        (small / "ballast").unlink()
        assert (await box.call("write", {"path": "a", "content": "new", "mode": "overwrite"})).ok
