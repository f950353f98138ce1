"""Another writer steps in at the worst moment: whose bytes are where afterwards."""

import os
import subprocess
import sys
import threading

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import Busy, Stale, StorageFault
from handtools.host.files import kernel_leases, syscalls
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.local_files import LocalFiles

KERNELS = ["leases", "no leases", "no exchange"]


@pytest.fixture(params=KERNELS)
def files(request, tmp_path, monkeypatch):
    """A workspace; with and without the kernel's help in noticing writers and exchanging names."""
    if request.param == "no leases":
        monkeypatch.setattr(syscalls, "try_read_lease", lambda fd: "unavailable")
    if request.param == "no exchange":
        monkeypatch.setattr(syscalls, "_load_renameat2", lambda: None)
    return LocalFiles(tmp_path)


@pytest.fixture
def interloper(monkeypatch):
    """Let someone act just before or after the nth use of a folder's method."""

    def act(method, action, *, when="before", turn=1):
        real, uses = getattr(FolderHandle, method), 0

        def used(self, *names):
            nonlocal uses
            uses += 1
            if uses == turn and when == "before":
                action()
            result = real(self, *names)
            if uses == turn and when == "after":
                action()
            return result

        monkeypatch.setattr(FolderHandle, method, used)

    return act


def renames_over(path, data):
    """An editor that saves by temporary and rename."""

    def save():
        other = path.with_name(f"editor-{data.decode()}")
        other.write_bytes(data)
        other.rename(path)

    return save


def appends(path, data):
    """A program that appends in place, from a thread, for it may have to wait for us."""

    def append():
        with open(path, "ab") as file:
            file.write(data)

    thread = threading.Thread(target=append)

    def begin():
        thread.start()
        thread.join(0.1)

    begin.done = thread.join
    return begin


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def perform(files, *changes):
    files.perform(files.plan(changes))


EDIT = Change.of("a", before=b"old", after=b"new")


def test_a_file_replaced_just_before_the_swap_keeps_the_other_bytes(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("exchange", renames_over(tmp_path / "a", b"theirs"))
    with pytest.raises(Stale):
        perform(files, EDIT)
    assert contents(tmp_path) == {"a": b"theirs"}


def test_a_file_replaced_with_the_same_bytes_just_before_the_swap_is_noticed_too(
    files, tmp_path, interloper
):
    (tmp_path / "a").write_bytes(b"old")
    interloper("exchange", renames_over(tmp_path / "a", b"old"))
    with pytest.raises(Stale):
        perform(files, EDIT)
    assert contents(tmp_path) == {"a": b"old"}


def test_a_file_replaced_just_after_the_swap_is_the_other_writers(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("exchange", renames_over(tmp_path / "a", b"theirs"), when="after")
    perform(files, EDIT)
    assert contents(tmp_path) == {"a": b"theirs"}


def test_two_replacements_around_the_swap_lose_neither(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("exchange", renames_over(tmp_path / "a", b"first"))
    interloper("exchange", renames_over(tmp_path / "a", b"second"), turn=2)
    with pytest.raises(Stale, match="its version is kept as") as refusal:
        perform(files, EDIT)
    found = contents(tmp_path)
    assert sorted(found.values()) == [b"first", b"second"]
    assert all(name == "a" or name in str(refusal.value) for name in found)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_append_around_the_swap_is_kept(files, tmp_path, interloper, moment):
    (tmp_path / "a").write_bytes(b"old")
    os.link(tmp_path / "a", tmp_path / "same")  # a way to the old file once its name is another's
    append = appends(tmp_path / "same", b"+theirs")
    interloper("exchange", append, when=moment)
    with pytest.raises(Stale):
        perform(files, EDIT)
    append.done()
    assert contents(tmp_path) == {"a": b"old+theirs", "same": b"old+theirs"}


def test_an_append_while_the_folder_is_made_durable_is_kept(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    os.link(tmp_path / "a", tmp_path / "same")
    append = appends(tmp_path / "same", b"+theirs")
    interloper("sync", append)
    with pytest.raises(Stale):
        perform(files, EDIT)
    append.done()
    assert contents(tmp_path) == {"a": b"old+theirs", "same": b"old+theirs"}


@pytest.mark.linux("leases")
def test_whoever_reads_before_theirs_is_back_finds_theirs(tmp_path, interloper):
    """The reader found our file by name; that its bytes are not the file's is not for it to see."""
    (tmp_path / "a").write_bytes(b"old")
    seen = []
    reader = threading.Thread(target=lambda: seen.append((tmp_path / "a").read_bytes()))

    def read():
        reader.start()
        reader.join(0.1)

    interloper("exchange", renames_over(tmp_path / "a", b"theirs"))
    interloper("exchange", read, when="after")
    with pytest.raises(Stale):
        perform(LocalFiles(tmp_path), EDIT)
    reader.join()
    assert seen == [b"theirs"]
    assert contents(tmp_path) == {"a": b"theirs"}


def test_whoever_writes_before_theirs_is_back_is_kept_in_sight(tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    append = appends(tmp_path / "a", b"+more")
    interloper("exchange", renames_over(tmp_path / "a", b"theirs"))
    interloper("exchange", append, when="after")
    with pytest.raises(Stale, match="its version is kept as"):
        perform(LocalFiles(tmp_path), EDIT)
    append.done()
    assert sorted(contents(tmp_path).values()) == [b"new+more", b"theirs"]


def test_the_newer_of_two_replacements_has_the_name(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("exchange", renames_over(tmp_path / "a", b"first"))
    interloper("exchange", renames_over(tmp_path / "a", b"second"), when="after")
    with pytest.raises(Stale):
        perform(files, EDIT)
    assert (tmp_path / "a").read_bytes() == b"second"


def test_bytes_written_into_our_new_file_before_it_is_taken_back_are_kept(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").write_bytes(b"changed")

    def build_on_ours_and_save_the_other():
        with open(tmp_path / "a", "ab") as file:
            file.write(b"+theirs")
        renames_over(tmp_path / "b", b"editor")()

    interloper("exchange", build_on_ours_and_save_the_other, turn=2)
    with pytest.raises(Stale, match="was left as it is"):
        perform(files, EDIT, Change.of("b", before=b"changed", after=b"new"))
    assert contents(tmp_path) == {"a": b"new+theirs", "b": b"editor"}


@pytest.mark.linux("leases")
@pytest.mark.parametrize("step", [EDIT, Change.of("a", before=b"old", after=None)])
def test_a_file_that_someone_has_open_for_writing_is_busy(tmp_path, monkeypatch, step):
    monkeypatch.setattr(kernel_leases, "WRITER_WAIT_SECONDS", 0.02)
    (tmp_path / "a").write_bytes(b"old")
    with open(tmp_path / "a", "ab") as writer:
        with pytest.raises(Busy):
            perform(LocalFiles(tmp_path), step)
        writer.write(b"+theirs")
    assert contents(tmp_path) == {"a": b"old+theirs"}


def test_a_writer_that_closes_in_time_is_waited_for(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(kernel_leases, "WRITER_WAIT_SECONDS", 30)
    writer = open(tmp_path / "a", "ab")  # noqa: SIM115
    real = syscalls.try_read_lease

    def lease(fd):
        answer = real(fd)
        writer.close()
        return answer

    monkeypatch.setattr(syscalls, "try_read_lease", lease)
    perform(LocalFiles(tmp_path), EDIT)
    assert contents(tmp_path) == {"a": b"new"}


def test_a_file_created_meanwhile_is_kept(files, tmp_path, interloper):
    interloper("move_new", lambda: (tmp_path / "a").write_bytes(b"theirs"))
    with pytest.raises(Stale):
        perform(files, Change.of("a", before=None, after=b"new"))
    assert contents(tmp_path) == {"a": b"theirs"}


def test_a_file_is_replaced_where_names_are_neither_exchanged_nor_linked(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(syscalls, "_load_renameat2", lambda: None)
    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a").write_bytes(b"old")
    perform(LocalFiles(tmp_path), EDIT)
    assert contents(tmp_path) == {"a": b"new"}


def test_a_replacement_that_the_disk_refuses_leaves_no_second_name(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(syscalls, "_load_renameat2", lambda: None)
    monkeypatch.setattr(os, "replace", refuse)
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(StorageFault):
        perform(LocalFiles(tmp_path), EDIT)
    assert contents(tmp_path) == {"a": b"old"}
    assert (tmp_path / "a").stat().st_nlink == 1


DELETE = Change.of("a", before=b"old", after=None)


def test_a_file_replaced_just_before_it_is_deleted_is_put_back(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("move_new", renames_over(tmp_path / "a", b"theirs"))
    with pytest.raises(Stale):
        perform(files, DELETE)
    assert contents(tmp_path) == {"a": b"theirs"}


def test_a_file_replaced_before_and_created_after_a_deletion_loses_neither(files, tmp_path, interloper):
    (tmp_path / "a").write_bytes(b"old")
    interloper("move_new", renames_over(tmp_path / "a", b"first"))
    interloper("move_new", lambda: (tmp_path / "a").write_bytes(b"second"), when="after")
    with pytest.raises(Stale, match="its version is kept as"):
        perform(files, DELETE)
    found = contents(tmp_path)
    assert found.pop("a") == b"second"
    assert list(found.values()) == [b"first"]


def test_a_created_file_that_someone_wrote_to_is_not_taken_back(files, tmp_path, interloper):
    (tmp_path / "b").write_bytes(b"other")
    interloper("move_new", lambda: (tmp_path / "a").write_bytes(b"built on it"), when="after")
    interloper("exchange", renames_over(tmp_path / "b", b"editor"))
    with pytest.raises(Stale, match="`a` was changed"):
        perform(
            files,
            Change.of("a", before=None, after=b"new"),
            Change.of("b", before=b"other", after=b"x"),
        )
    assert contents(tmp_path) == {"a": b"built on it", "b": b"editor"}


def test_a_folder_that_someone_filled_is_not_removed(files, tmp_path, interloper):
    (tmp_path / "d").mkdir()
    (tmp_path / "a").write_bytes(b"old")
    interloper("remove_folder", lambda: (tmp_path / "d" / "x").write_bytes(b"theirs"))
    with pytest.raises(Stale):
        perform(files, DELETE, Change("d", Node("folder"), None))
    assert (tmp_path / "d" / "x").read_bytes() == b"theirs"
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_made_folder_that_someone_uses_stays(files, tmp_path, interloper):
    interloper("create_folder", lambda: (tmp_path / "d" / "x").write_bytes(b"theirs"), when="after")
    with pytest.raises(Stale, match="was kept"):
        perform(files, Change("d", None, Node("folder")), DELETE)
    assert (tmp_path / "d" / "x").read_bytes() == b"theirs"


@pytest.mark.parametrize("change", [EDIT, DELETE, Change.of("n", before=None, after=b"new")])
@pytest.mark.parametrize("method", ["exchange", "move_new", "create_file", "sync"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_at_any_moment_takes_everything_back(
    files, tmp_path, interloper, change, method, when
):
    (tmp_path / "a").write_bytes(b"old")

    def interrupt():
        raise KeyboardInterrupt

    interloper(method, interrupt, when=when)
    try:
        perform(files, change)
    except KeyboardInterrupt:
        # What was made but not yet noted down may stay for the sweep; the target may not differ.
        left = [name for name in contents(tmp_path) if name.startswith(".handtools-")]
        assert len(left) <= (method == "create_file")
        assert (tmp_path / "a").read_bytes() == b"old"
        assert not (tmp_path / "n").exists()


def test_a_hard_link_is_broken_so_that_its_other_name_does_not_change(files, tmp_path):
    (tmp_path / "outside").write_bytes(b"old")
    os.link(tmp_path / "outside", tmp_path / "a")
    perform(files, EDIT)
    assert contents(tmp_path) == {"a": b"new", "outside": b"old"}


AS_ON_MACOS = """
import ctypes, sys
import handtools.core.changes, handtools.core.errors

class Library:
    def __init__(self, name, use_errno):
        pass

    def __getitem__(self, name):
        def call(*values):
            print(name, *values)
            return 0
        return call

sys.platform, ctypes.CDLL = "darwin", Library
from handtools.host.files import syscalls
syscalls.rename_exchange(3, "a", "b")
syscalls.rename_no_replace(None, "a", "b", into=4)
"""


@pytest.mark.linux("exchange by rename")
def test_macos_is_asked_by_the_call_that_it_documents():
    """The values are those of its manual page, renameatx_np(2); nobody of us ran it there."""
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_MACOS], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == [
        "renameatx_np 3 b'a' 3 b'b' 2",
        "renameatx_np -2 b'a' 4 b'b' 4",
    ], done.stderr
