"""The contract of Store."""

import pytest

from handtools.core.errors import UsageError
from handtools.host.store import FolderStore


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "deep" / "store")


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


def test_names_are_listed(store):
    for name in ("b", "a", "c.txt"):
        store.put(b"", name=name)
    assert store.names() == ["a", "b", "c.txt"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "/a", "a/b", ".a", "a\0", "a\n", "a" * 201, "ä", "-a"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(store, name):
    for use in (lambda: store.put(b"", name=name), lambda: store.get(name), lambda: store.drop(name)):
        with pytest.raises(UsageError):
            use()


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
