"""No path leaves the workspace, whatever it looks like and whatever is swapped in meanwhile."""

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import ToolError, UsageError
from handtools.core.files import PlannedWrite
from handtools.host.files import syscalls
from handtools.host.files.local_files import LocalFiles
from tests.e2e.path_attacks import MARK, PATHS, SECRET, SHARED, attacks, spring

SWAPS = int(os.environ.get("HANDTOOLS_SWAPS", "20000"))
RACE_SECONDS = 10.0
TEMPORARY = ".handtools-" + "f" * 24
PLANTED = Node("file", b"planted")
KNOWN = Node("file", SECRET)
FOLDER = Node("folder")
LINK = Node("link", b"/etc/passwd")

LOOKS = ["read", "facts", "names", "node", "locate"]
CHANGES = {
    "create": (None, PLANTED),
    "overwrite": (KNOWN, PLANTED),
    "overwrite the inside": (Node("file", b"inside\n"), PLANTED),
    "delete": (KNOWN, None),
    "make a folder": (None, FOLDER),
    "remove a folder": (FOLDER, None),
    "open a folder up": (FOLDER, Node("folder", mode=0o777)),
    "make a link": (None, LINK),
}


@pytest.fixture(params=["kernel", "walk", "old kernel"])
def machine(request, monkeypatch):
    """The ways a path can be resolved here."""
    if request.param == "old kernel":
        monkeypatch.setattr(syscalls, "_load_openat2", lambda: None)
        monkeypatch.setattr(syscalls, "_load_renameat2", lambda: None)
        monkeypatch.setattr(syscalls, "has_openat2", lambda: False)
        monkeypatch.setattr(syscalls, "can_reopen_path_handles", lambda: False)
        monkeypatch.setattr(syscalls, "try_read_lease", lambda fd: "unavailable")
    return request.param


def test_the_corpus_is_large_and_has_no_doubles():
    assert len(PATHS) == len(set(PATHS)) >= 80


@pytest.mark.timeout(60)
@pytest.mark.parametrize("look", LOOKS)
def test_no_path_shows_what_is_outside(tmp_path, machine, look):
    trap = spring(tmp_path)
    files = LocalFiles(trap.root, kernel=machine == "kernel")
    before = trap.state()
    for path in attacks(trap):
        with contextlib.suppress(ToolError):
            seen = repr(getattr(files, look)(path))
            if path not in SHARED and MARK not in path:
                assert MARK not in seen, path
                assert f"bytes={len(SECRET)}" not in seen, path
                assert "root:" not in seen, path
            if look == "locate":
                real = os.path.realpath(trap.root / files.locate(path))
                assert Path(real).is_relative_to(trap.root), path
    assert trap.state() == before


@pytest.mark.timeout(120)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_no_path_changes_what_is_outside(tmp_path, machine, change):
    trap = spring(tmp_path)
    files = LocalFiles(trap.root, kernel=machine == "kernel")
    before = trap.state()
    for path in attacks(trap):
        with contextlib.suppress(ToolError, UsageError):
            files.perform(files.plan([Change(path, *change)]))
    assert trap.state() == before
    assert [name for name in os.listdir(trap.root) if name.startswith(".handtools-")] in (
        [],
        [".handtools-" + "0" * 24],  # the corpus has a name like one of ours
    )


@pytest.mark.timeout(60)
def test_no_sweep_touches_what_is_outside(tmp_path, machine):
    trap = spring(tmp_path)
    (trap.outside / TEMPORARY).write_bytes(SECRET)
    files = LocalFiles(trap.root, kernel=machine == "kernel")
    before = trap.state()
    for path in attacks(trap):
        for known, after in CHANGES.values():
            with contextlib.suppress(ToolError, UsageError):
                files.sweep(PlannedWrite(Change(path, known, after), TEMPORARY))
    assert trap.state() == before


def test_a_pipe_with_a_waiting_writer_is_not_woken(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(tmp_path / 'pipe')!r}, 'w').write('x')"])
    try:
        files = LocalFiles(tmp_path)
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            for look in LOOKS:
                with contextlib.suppress(ToolError):
                    getattr(files, look)("pipe")
            with contextlib.suppress(ToolError):
                files.perform(files.plan([Change("pipe", Node("file", b""), None)]))
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()


SWAPPER = textwrap.dedent("""
    import ctypes, os, sys
    root, one, other = sys.argv[1:4]
    os.chdir(root)
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    count = 0
    one, other = one.encode(), other.encode()
    print("ready", flush=True)
    os.set_blocking(0, False)
    while True:
        for _ in range(500):
            exchange(-100, one, -100, other, 2)
        count += 500
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            pass
    print(count, flush=True)
""")


@contextlib.contextmanager
def swapping(root, one, other):
    """A process that swaps two names as fast as it can; yields a way to end it and count."""
    process = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(root), one, other],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield lambda: int(process.communicate(timeout=60)[0])
    finally:
        process.kill()
        process.communicate()


RACES = {
    "a folder on the way": ("d", "evil", "d/f"),
    "the file itself": ("g", "evil_file", "g"),
    "a folder in the middle": ("m", "evil_top", "m/folder/f"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "walk"])
@pytest.mark.parametrize("race", RACES.values(), ids=RACES.keys())
def test_a_link_swapped_in_at_any_moment_never_leads_out(tmp_path, race, kernel):
    one, other, path = race
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    for folder in (root / "d", root / "m" / "folder", outside / "folder"):
        folder.mkdir(parents=True)
    for inside in ("d/f", "g", "m/folder/f"):
        (root / inside).write_bytes(b"inside")
    for secret in ("f", "folder/f"):
        (outside / secret).write_bytes(SECRET)
    (root / "evil").symlink_to(outside)
    (root / "evil_file").symlink_to(outside / "f")
    (root / "evil_top").symlink_to(outside)
    files = LocalFiles(root, kernel=kernel)
    beside = str(Path(path).parent / "made")
    rounds = outcomes = 0
    ended = time.monotonic() + min(RACE_SECONDS, SWAPS / 10_000)
    with swapping(root, one, other) as stop:
        while time.monotonic() < ended:
            rounds += 1
            for look in LOOKS:
                with contextlib.suppress(ToolError):
                    seen = repr(getattr(files, look)(path))
                    assert MARK not in seen
                    assert f"bytes={len(SECRET)}" not in seen
                    outcomes += "inside" in seen
            for change in (
                Change.of(path, before=SECRET, after=b"planted"),
                Change.of(path, before=b"inside", after=b"inside"),
                Change.of(beside, before=None, after=b"planted"),
                Change.of(beside, before=b"planted", after=None),
            ):
                with contextlib.suppress(ToolError):
                    files.perform(files.plan([change]))
        swaps = stop()
    assert swaps >= SWAPS
    assert rounds > 20
    assert outcomes > 0
    found = {str(p.relative_to(outside)): p.read_bytes() for p in outside.rglob("*") if p.is_file()}
    assert found == {"f": SECRET, "folder/f": SECRET}
