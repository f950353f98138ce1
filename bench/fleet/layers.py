"""Workspaces of layers: how long one takes to make from a warm template, its disk, and a fork of 64."""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from handtools.fleet.workspaces import WorkspaceStore

TEMPLATE_FILES = 20_000
FORKS = 64
FILES_PER_FOLDER = 100


def rows(*, quick: bool) -> Iterator[Figure]:
    """Milliseconds and kilobytes of a workspace; seconds of a fork."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        for number in range(TEMPLATE_FILES):
            place = source / f"d{number // FILES_PER_FOLDER}"
            if number % FILES_PER_FOLDER == 0:
                place.mkdir(parents=True)
            (place / f"f{number}.py").write_text(f"value = {number}\n")
        store = WorkspaceStore(Path(folder, "fleet"))
        template = store.templates.add_folder(source).digest
        if store.new_workspace_kind != "overlay":
            print("fleet: overlays can't be mounted here; the rows of layers are left out.")
            return
        try:
            yield from _rows(store, template, 20 if quick else 100)
        finally:
            store.close_all()


def _rows(store: WorkspaceStore, template: str, rounds: int) -> Iterator[Figure]:
    store.create(template)
    taken, disk = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        made = store.create(template)
        os.listdir(store.files_folder(made.id))
        taken.append(time.perf_counter() - began)
        disk.append(_disk_bytes(store, made.id))
    name = f"workspace of a template of {TEMPLATE_FILES:,} files"
    yield Figure(name=name, value=statistics.median(taken) * 1000, unit="ms", goal=30.0)
    yield Figure(name=f"{name}: disk", value=max(disk) / 1000, unit="kB", goal=1000.0)
    taken = []
    for number in range(3):
        parent = store.create(template)
        (store.files_folder(parent.id) / "changed.txt").write_text(str(number))
        began = time.perf_counter()
        forks = store.fork(parent.id, FORKS)
        taken.append(time.perf_counter() - began)
        for fork in forks:
            assert (store.files_folder(fork.id) / "changed.txt").read_text() == str(number)
    yield Figure(name=f"fork of {FORKS}", value=statistics.median(taken), unit="s", goal=1.0)


def _disk_bytes(store: WorkspaceStore, name: str) -> int:
    """What a workspace's own folders take, without looking through its mount."""
    total = 0
    place = store.files_folder(name).parent
    for top, folders, files in os.walk(place):
        folders[:] = [each for each in folders if Path(top, each) != store.files_folder(name)]
        total += sum(os.lstat(Path(top, each)).st_blocks * 512 for each in (*folders, *files))
    return total
