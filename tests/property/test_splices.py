"""Versions of a file as differences: every one comes back as it was, and what nobody uses is gone."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from handtools import Call, Change, ChangeSet
from handtools.core.changes import Node
from handtools.runtime.journal import Journal
from handtools.runtime.journal.blobs import MIN_COMPRESSED_BLOB_BYTES, BlobDelta
from handtools.runtime.journal.change_entries import Transaction
from handtools.testing.memory_toolbox import MemoryFiles, MemoryStore
from handtools.text.diffs.alignment import common_ends

few = st.binary(max_size=40) | st.text("ab", max_size=40).map(str.encode)
filling = bytes(range(32, 127)) * (MIN_COMPRESSED_BLOB_BYTES // 60)
versions = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60), few), min_size=1, max_size=12)


@given(few, few, few, few)
def test_shared_ends_are_equal_and_as_long_as_can_be(start: bytes, one: bytes, other: bytes, end: bytes):
    a, b = start * 400 + one + end * 400, start * 400 + other + end * 400
    head, tail = common_ends(a, b)
    least = min(len(a), len(b))
    assert a[:head] == b[:head] and a[len(a) - tail :] == b[len(b) - tail :]
    assert head == least or a[head] != b[head]
    assert head + tail == least or a[len(a) - tail - 1] != b[len(b) - tail - 1]


@given(few, few, few)
def test_what_is_between_the_ends_goes_back_between_them(head: bytes, middle: bytes, tail: bytes):
    base, data = head + b"old" + tail, head + middle + tail
    splice = BlobDelta("ab" * 32, len(head), len(tail))
    assert BlobDelta.read(splice.header + b"more") == splice
    assert splice.rebuild_blob(splice.middle(data), base) == data


def recorded(journal: Journal, path: str, contents: list[bytes]) -> list[int]:
    """Each content follows the one before it in a call of its own."""
    files, made = MemoryFiles(), []
    for before, after in itertools.pairwise(contents):
        changes = ChangeSet.of(Change.of(path, before=before, after=after))
        steps = files.plan(changes)
        entry = journal.entries.intend(Call(tool="edit", args={}), Transaction(changes), steps)
        assert entry is not None
        journal.entries.finish(entry)
        made.append(entry)
    return made


def edited(steps: list[tuple[int, int, bytes]], first: bytes = filling) -> list[bytes]:
    contents = [first]
    for start, size, new in steps:
        last = contents[-1]
        contents.append(last[:start] + new + last[start + size :])
    return contents


@given(versions)
def test_every_version_comes_back_as_it_was(steps: list[tuple[int, int, bytes]]):
    journal, contents = Journal(":memory:", MemoryStore()), edited(steps)
    made = recorded(journal, "a", contents)
    entries = journal.entries
    for entry, before, after in zip(made, contents, contents[1:], strict=False):
        [touch] = entries.touches(entry)
        assert entries.node(touch.before) == Node("file", before)
        assert entries.node(touch.after) == Node("file", after)


@given(versions, versions)
def test_forgetting_one_path_leaves_the_other_and_nothing_else(
    one: list[tuple[int, int, bytes]], other: list[tuple[int, int, bytes]]
):
    journal, contents = Journal(":memory:", MemoryStore()), edited(one)
    recorded(journal, "secret", contents)
    # The other file begins as a copy of what the first one was at last.
    copies = edited(other, contents[-1])
    made = recorded(journal, "copy", copies)
    journal.retention.forget("secret")
    with journal._database.reading() as connection:
        left = {digest for (digest,) in connection.execute("SELECT digest FROM blobs")}
    assert left == {Node("file", data).digest for data in copies}
    for entry, after in zip(made, copies[1:], strict=True):
        [touch] = journal.entries.touches(entry)
        assert journal.entries.node(touch.after) == Node("file", after)
    journal.retention.forget("copy")
    assert journal.retention.kept_bytes() == 0
