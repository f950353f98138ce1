"""The contract of Store."""

import os
import time

import pytest

from handtools.core.errors import UsageError
from handtools.host.files.folder_blob_store import FolderBlobStore


@pytest.fixture
def store(tmp_path):
    return FolderBlobStore(tmp_path / "deep" / "store")


def test_what_is_put_is_got_back(store):
    store.put(b"\0bytes\n", name="a")
    assert store.get("a") == b"\0bytes\n"


def test_the_same_name_again_keeps_the_first_bytes(store):
    store.put(b"1", name="a")
    store.put(b"2", name="a")
    assert store.get("a") == b"1"


def test_what_is_dropped_is_gone_and_may_be_dropped_again(store):
    store.put(b"1", name="a")
    store.drop("a")
    store.drop("a")
    with pytest.raises(KeyError):
        store.get("a")


def test_what_was_never_put_is_a_key_error(store):
    with pytest.raises(KeyError):
        store.get("a")
    store.drop("a")
    assert store.names() == []


def test_a_part_and_the_size_need_not_the_whole(store):
    store.put(b"0123456789", name="a")
    assert store.part("a", 3, 4) == b"3456"
    assert store.part("a", 8, None) == b"89"
    assert store.part("a", 20, 5) == b""
    assert store.size("a") == 10
    for missing in (lambda: store.part("b", 0, 1), lambda: store.size("b")):
        with pytest.raises(KeyError):
            missing()


def test_what_is_written_as_it_comes_can_be_read_meanwhile(store):
    store.put(b"", name="first")
    store.blob_path("a").write_bytes(b"so far")
    assert store.get("a") == b"so far"


def test_old_things_go_first_and_then_the_oldest_until_the_rest_fits(store):
    now = time.time()
    for name, age, size in (
        ("old", 1000, 1),
        ("older", 90, 9000),
        ("newer", 50, 9000),
        ("newest", 0, 9000),
    ):
        store.put(b"x" * size, name=name)
        os.utime(store.blob_path(name), (now - age, now - age))
    assert store.tidy(max_bytes=1 << 30, max_age=500) == 1
    assert store.names() == ["newer", "newest", "older"]
    assert store.tidy(max_bytes=24 << 10, max_age=500) == 1
    assert store.names() == ["newer", "newest"]


def test_names_are_listed(store):
    for name in ("b", "a", "c.txt"):
        store.put(b"", name=name)
    assert store.names() == ["a", "b", "c.txt"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "/a", "a/b", ".a", "a\0", "a\n", "a" * 201, "ä", "-a"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(store, name):
    for use in (lambda: store.put(b"", name=name), lambda: store.drop(name)):
        with pytest.raises(UsageError):
            use()
    for look in (store.get, store.size, lambda name: store.part(name, 0, 1)):
        with pytest.raises(KeyError):
            look(name)


def test_only_the_owner_can_look(store, tmp_path):
    store.put(b"secret", name="a")
    folder = tmp_path / "deep" / "store"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "a").stat().st_mode & 0o777 == 0o600


def test_a_write_cut_short_is_never_seen(store, tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    store.put(b"first", name="first")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Exception, match="full"):
        store.put(b"1", name="a")
    assert store.names() == ["first"]
    assert [path.name for path in (tmp_path / "deep" / "store").iterdir()] == ["first"]
