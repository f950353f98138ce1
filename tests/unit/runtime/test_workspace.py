"""Recent files: the same bytes are the same node, and few are kept."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from handtools.core.changes import BackupRef, Change, Node
from handtools.runtime.workspace import MAX_RECENT_BYTES, MAX_RECENT_FILE_BYTES, RecentFiles
from handtools.testing.memory_toolbox import memory_toolbox


def test_a_file_that_is_read_again_is_the_node_it_was():
    recent = RecentFiles()
    first = recent.node("a", b"same " * 9)
    assert recent.node("a", b"".join([b"same "] * 9)) is first


@given(st.lists(st.tuples(st.sampled_from("ab"), st.binary(max_size=3), st.booleans())))
def test_a_node_is_always_of_the_bytes_that_were_read(steps: list[tuple[str, bytes, bool]]):
    recent = RecentFiles()
    for path, data, written in steps:
        if written:
            recent.keep(path, Node("file", data))
        else:
            assert recent.node(path, data) == Node("file", data)
            assert recent.node(path, data).digest == hashlib.sha256(data).hexdigest()


def test_large_files_and_all_beyond_a_limit_are_let_go():
    recent = RecentFiles()
    large = recent.node("large", b"x" * (MAX_RECENT_FILE_BYTES + 1))
    assert recent.node("large", large.data) is not large
    each = MAX_RECENT_BYTES // 8
    nodes = [recent.node(str(number), bytes(each)) for number in range(9)]
    assert recent.node("0", nodes[0].data) is not nodes[0]
    assert recent.node("8", nodes[8].data) is nodes[8]


def test_a_file_with_a_mode_or_in_the_vault_is_no_plain_one():
    recent = RecentFiles()
    for node in (Node("file", b"x", 0o755), Node("file", b"x", held=BackupRef("ref", "stat:1", 1))):
        recent.keep("a", node)
        assert recent.node("a", b"x") == Node("file", b"x")


async def test_the_record_names_what_was_there_though_another_wrote_the_file_meanwhile():
    box = memory_toolbox({"a": b"one\n"})
    await box.call("edit", {"path": "a", "old_string": "one", "new_string": "two"})
    files = box.workspace.files
    files.perform(files.plan([Change.of("a", before=b"two\n", after=b"six\n")]))
    await box.call("edit", {"path": "a", "old_string": "six", "new_string": "ten"})
    entries = box.workspace.journal.entries
    newest, oldest = entries.selected("path", "a")
    assert [entries.node(trace).data for trace in (oldest.before, oldest.after)] == [b"one\n", b"two\n"]
    assert [entries.node(trace).data for trace in (newest.before, newest.after)] == [b"six\n", b"ten\n"]
