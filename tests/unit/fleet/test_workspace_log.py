"""Segments of a log: what a host writes is read again, and nothing else is."""

import json
import os
import resource
import struct
from pathlib import Path
from typing import Any

import pytest
import zstandard

from handtools.core.errors import StorageFault, TooLarge
from handtools.fleet import workspace_log
from handtools.fleet.workspace_log import PathState, Segment, apply_path_states, read_path_states

HEAD: dict[str, Any] = {
    "writer": "w",
    "whole": False,
    "fence": False,
    "paths": [],
    "kept": 0,
    "sizes": [0, 0],
}


def stored(head: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A segment with any head at all."""
    line = head if isinstance(head, bytes) else json.dumps(head).encode()
    return zstandard.compress(struct.pack(">I", len(line) if length is None else length) + line + data)


def test_a_segment_is_read_as_it_was_written() -> None:
    states = (
        PathState("a", "file", 0o640, b"data", 7),
        PathState("\udcff/l", "link", 0, b"/nowhere"),
        PathState("d", "folder", 0o1777),
        PathState("t", "tree", 0o700),
        PathState("gone", "gone"),
    )
    kept = (PathState("outputs/x", "file", 0o600, b"out"), PathState("vault/r/before", "tree", 0o700))
    for segment in (
        Segment(b"journal", b"log", states, "writer", kept),
        Segment(None, b"log", states, "writer"),
        Segment(b"", b"", (), "writer"),
        Segment.takeover_fence("writer"),
    ):
        assert Segment.unpack(segment.pack()) == segment
        listed = Segment.unpack(segment.pack(), with_data=False)
        assert [each._replace(data=b"") for each in segment.paths] == list(listed.paths)
        assert (listed.writer, listed.is_fence) == (segment.writer, segment.is_fence)
        assert (listed.database is None) == (segment.database is None)


ROW = ["a", "file", 0o644, 0]
BAD_HEADS: list[Any] = [
    b"",
    b"{",
    b"[" * 100_000,
    [],
    "x",
    {},
    *({key: value for key, value in HEAD.items() if key != missing} for missing in HEAD),
    *(HEAD | {key: odd} for key in HEAD for odd in ("x", None, -1, [None], {"a": 1}, 1.5, [[]])
      if (key, odd) != ("writer", "x")),
    HEAD | {"kept": True},
    HEAD | {"kept": 1},
    HEAD | {"sizes": [0]},
    HEAD | {"sizes": [0, 0, 0]},
    HEAD | {"sizes": [0, True]},
    HEAD | {"sizes": [1 << 60, 0]},
    HEAD | {"sizes": [1, 0]},
    *(HEAD | {"paths": [row], "sizes": [0, 0, 0]} for row in (
        "a", [], ["a"], [*ROW, 0], [5, "file", 0, 0], ["a", "socket", 0, 0], ["a", ["file"], 0, 0],
        ["a", "file", "0", 0], ["a", "file", -1, 0], ["a", "file", 1 << 20, 0], ["a", "file", True, 0],
        ["a", "file", 0, 1 << 80], ["a", "file", 0, 0.5], ["a" * (1 << 19), "file", 0, 0],
    )),
    *(HEAD | {"paths": [[path, kind, 0o644, 0]], "sizes": [0, 0, 0], "kept": 1} for path, kind in (
        ("journal.sqlite", "file"), ("journal.sqlite", "link"), ("journal.sqlite-wal", "link"), ("vault", "link"),
        ("outputs/x", "link"), ("outputs/x/y", "file"), ("outputs/x", "tree"), ("outputs", "link"),
        ("vault", "tree"), ("lock", "file"), ("sessions/x", "folder"), ("vault/../x", "file"),
    )),
]  # fmt: skip


@pytest.mark.parametrize("head", BAD_HEADS)
def test_what_no_host_writes_is_refused(head: Any) -> None:
    with pytest.raises(StorageFault):
        Segment.unpack(stored(head))
    assert Segment.unpack(stored(HEAD)) == Segment(None, b"", (), "w")


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"segment",
        stored(HEAD)[:-3],
        stored(HEAD, b"more than it says"),
        stored(HEAD, length=1 << 31),
        stored(HEAD, length=1 << 20),
        zstandard.ZstdCompressor(write_content_size=False).compress(b"x"),
    ],
)
def test_what_is_damaged_is_refused(packed: bytes) -> None:
    with pytest.raises(StorageFault):
        Segment.unpack(packed)


def test_a_small_segment_takes_no_more_memory_than_it_may() -> None:
    zeros = zstandard.ZstdCompressor(level=19).compress(b"0" * (300 << 20))
    lying = stored(HEAD | {"sizes": [3 << 30, 0]}, bytes(64))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for packed in (zeros, lying):
        with pytest.raises(StorageFault):
            Segment.unpack(packed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


def test_more_than_can_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_log, "MAX_SEGMENT_BYTES", 10_000)
    large = PathState("large", "file", 0o644, bytes(20_000))
    with pytest.raises(TooLarge, match="at once"):
        Segment(None, b"", (large,), "writer").pack()
    assert Segment(None, b"", (large._replace(data=bytes(5_000)),), "writer").pack()


def test_a_log_restores_no_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_log, "MAX_RESTORED_BYTES", 10_000)
    states = [PathState(f"{number}", "file", 0o644, bytes(900)) for number in range(20)]
    with pytest.raises(TooLarge):
        apply_path_states(str(tmp_path), states)
    # Of one path only the last state is written.
    apply_path_states(str(tmp_path), [each._replace(path="one") for each in states])


def test_a_folder_that_became_a_link_is_restored_as_a_link(tmp_path: Path) -> None:
    root, again, other = (tmp_path / name for name in ("root", "again", "other"))
    for each in (root, again, other):
        each.mkdir(0o700)
    (root / "d" / "sub").mkdir(parents=True)
    for each in (root / "d", root / "d" / "sub"):
        each.chmod(0o777)
    states = read_path_states(str(root), {"d": False, "d/sub": False})
    (root / "d" / "sub").rmdir()
    (root / "d").rmdir()
    (root / "d").symlink_to(other)
    (other / "sub").mkdir(0o700)
    states += read_path_states(str(root), {"d": False, "d/sub": False})
    apply_path_states(str(again), states)
    assert os.readlink(again / "d") == str(other)
    assert [each.stat().st_mode & 0o777 for each in (other, other / "sub")] == [0o700, 0o700]


def test_a_folder_that_its_owner_may_not_write_to_is_restored_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "old").write_text("old")
    (tmp_path / "closed").chmod(0o555)
    states = [
        PathState("closed/new", "file", 0o444, b"new"),
        PathState("made", "folder", 0o500),
        PathState("made/x", "file", 0o400, b"x"),
    ]
    for _ in range(2):
        apply_path_states(str(tmp_path), states)
    assert sorted(os.listdir(tmp_path / "closed")) == ["new", "old"]
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("closed", "made", "made/x")] == [
        0o555,
        0o500,
        0o400,
    ]
    for each in ("closed", "made"):
        (tmp_path / each).chmod(0o700)


@pytest.mark.parametrize("path", ["..", "../outside", "a/../../outside", "/etc"])
def test_no_path_outside_is_read_for_a_log(tmp_path: Path, path: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("secret")
    with pytest.raises(StorageFault):
        read_path_states(str(tmp_path / "root"), {path: True})
