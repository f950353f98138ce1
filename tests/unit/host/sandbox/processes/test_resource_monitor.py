"""Watching: what a tree of processes uses together, counted from outside."""

import os
import subprocess
import sys
import time

import pytest

from handtools.host.sandbox.processes.memory_and_disk_monitor import (
    MAX_POLL_SECONDS,
    MIN_POLL_SECONDS,
    ResourceMonitor,
    WatchedFolder,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: /proc is Linux's")


def watch(*, memory=None, layer="", most_bytes=1 << 40, files=1000, scratch=False):
    folders = [WatchedFolder(str(layer), str(layer), most_bytes, files, scratch=scratch)] if layer else []
    return ResourceMonitor(memory, (), folders)


def holding(code):
    """A process that holds something, once it has said so."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"import os\n{code}\nprint(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child.stdout.readline()
    return child


def over(limits, children):
    for folder in limits.folders:
        folder.counted = 0.0  # as if the last count were long ago
    return limits.look(lambda: [child.pid for child in children])


def ended(children):
    for child in children:
        child.communicate(b"\n")


def test_the_memory_of_several_is_added_up():
    children = [holding("kept = bytearray(b'x') * (40 << 20)") for _ in range(2)]
    try:
        assert over(watch(memory=70 << 20), children) == "memory"
        assert over(watch(memory=70 << 20), children[:1]) == ""
    finally:
        ended(children)


@pytest.mark.linux("fork")
def test_pages_that_are_shared_count_once():
    code = """
kept = bytearray(b'x') * (60 << 20)
for _ in range(2):
    if os.fork() == 0:
        os.read(0, 1)
        os._exit(0)
"""
    parent = holding(code)
    try:
        with open(f"/proc/{parent.pid}/task/{parent.pid}/children") as file:
            pids = [parent.pid, *map(int, file.read().split())]
        assert watch(memory=150 << 20).look(lambda: pids) == ""
        assert watch(memory=40 << 20).look(lambda: pids) == "memory"
    finally:
        for pid in pids[1:]:
            os.kill(pid, 9)
        ended([parent])


@pytest.mark.linux("memory files")
def test_memory_in_files_that_nobody_maps_counts():
    child = holding("fd = os.memfd_create('x'); os.write(fd, bytes(60 << 20))")
    try:
        assert over(watch(memory=50 << 20), [child]) == "memory"
    finally:
        ended([child])


def test_a_layer_is_counted_in_bytes_and_in_files(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "large").write_bytes(os.urandom(300_000))
    assert over(watch(layer=tmp_path, most_bytes=200_000), []) == "bytes"
    assert over(watch(layer=tmp_path, most_bytes=400_000), []) == ""
    assert over(watch(layer=tmp_path, files=1), []) == "files"


def test_a_hole_takes_no_room(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    assert over(watch(layer=tmp_path, most_bytes=1 << 20), []) == ""


def test_a_layer_that_is_gone_is_not_over(tmp_path):
    assert over(watch(layer=tmp_path / "gone"), []) == ""


def test_it_looks_again_soon_but_not_all_the_time(tmp_path):
    limits = watch(layer=tmp_path)
    limits.look(list)
    assert 0 < limits.due - time.monotonic() <= MAX_POLL_SECONDS
    assert limits.due - time.monotonic() > MIN_POLL_SECONDS / 2
