"""A full disk, a cut journal: no bytes of the user are lost, and the message is clear."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from handtools import Call, Toolbox, local_workspace
from handtools.toolbox import CODING


def box_at(root: Path, state: Path) -> Toolbox:
    root.mkdir(exist_ok=True)
    return Toolbox(CODING, workspace=local_workspace(root, state=state))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mount], capture_output=True, check=False
    )
    if done.returncode:
        if os.environ.get("CI"):
            pytest.fail(f"CI must be able to mount a tmpfs: {done.stderr!r}")
        pytest.skip("mounting needs root")
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


async def test_a_full_workspace_disk_leaves_the_old_file_whole(small_disk, tmp_path):
    box = box_at(small_disk / "work", tmp_path / "state")
    (small_disk / "work" / "a.txt").write_text("old\n")
    filler = small_disk / "filler"
    filler.write_bytes(os.urandom(900_000))
    result = await box.call("edit", {"path": "a.txt", "old_string": "old", "new_string": "new" * 200_000})
    assert result.fault.code == "storage"
    assert "disk is full" in result.text
    assert (small_disk / "work" / "a.txt").read_text() == "old\n"
    assert [path.name for path in (small_disk / "work").iterdir()] == ["a.txt"]
    filler.unlink()
    assert (await box.call("edit", {"path": "a.txt", "old_string": "old", "new_string": "new"})).ok


async def test_a_full_state_disk_refuses_the_change_before_anything_is_written(small_disk, tmp_path):
    box = box_at(tmp_path / "work", small_disk / "state")
    (tmp_path / "work" / "a.txt").write_text("old\n")
    assert (await box.call("read", {"path": "a.txt"})).ok
    with (small_disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        while True:
            file.write(b"x" * 4096)
    new = random.Random(1).randbytes(300_000).hex()
    result = await box.call("edit", {"path": "a.txt", "old_string": "old", "new_string": new})
    assert result.status == "error"
    assert result.fault.code == "host"
    assert "journal" in result.text
    assert (tmp_path / "work" / "a.txt").read_text() == "old\n"
    (small_disk / "filler").unlink()
    assert (await box.call("edit", {"path": "a.txt", "old_string": "old", "new_string": "new"})).ok
    await box.aclose()


@pytest.mark.parametrize("seed", range(12))
async def test_a_journal_cut_at_any_byte_costs_no_file_and_says_what_happened(seed, tmp_path, caplog):
    root, state = tmp_path / "work", tmp_path / "state"
    box = box_at(root, state)
    (root / "a.txt").write_text("version 0\n")
    for number in range(6):
        args = {"path": "a.txt", "old_string": f"version {number}", "new_string": f"version {number + 1}"}
        assert (await box.call("edit", args)).ok
    await box.aclose()
    journal = state / "journal.sqlite"
    chance = random.Random(seed)
    os.truncate(journal, chance.randrange(journal.stat().st_size) if seed else 0)

    again = box_at(root, state)
    assert (await again.call("read", {"path": "a.txt"})).ok
    assert (root / "a.txt").read_text() == "version 6\n"
    if seed:
        assert "damaged" in caplog.text
        assert list(state.glob("journal.sqlite.damaged-*"))
    call = Call(tool="edit", args={"path": "a.txt", "old_string": "version 6", "new_string": "version 7"})
    assert (await again.call(call)).ok
    assert (await again.call("undo", {"scope": "call", "name": call.id})).ok
    assert (root / "a.txt").read_text() == "version 6\n"


@pytest.mark.parametrize("seed", range(6))
async def test_a_write_ahead_log_cut_at_any_byte_costs_at_most_the_newest_records(seed, tmp_path):
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    (root / "a.txt").write_text("version 0\n")
    code = (
        "import anyio, os, sys\n"
        "from pathlib import Path\n"
        "from handtools import Toolbox, local_workspace\n"
        "from handtools.toolbox import CODING\n"
        "async def main():\n"
        "    box = Toolbox(CODING, workspace=local_workspace(sys.argv[1], state=sys.argv[2]))\n"
        "    for n in range(6):\n"
        "        args = {'path': 'a.txt', 'old_string': f'version {n}', 'new_string': f'version {n + 1}'}\n"
        "        assert (await box.call('edit', args)).ok\n"
        "    os._exit(0)\n"
        "anyio.run(main)\n"
    )
    subprocess.run([sys.executable, "-c", code, root, state], check=True)
    log = state / "journal.sqlite-wal"
    os.truncate(log, random.Random(seed).randrange(log.stat().st_size))
    box = box_at(root, state)
    assert (await box.call("read", {"path": "a.txt"})).ok
    assert (root / "a.txt").read_text() == "version 6\n"
    args = {"path": "a.txt", "old_string": "version 6", "new_string": "version 7"}
    call = Call(tool="edit", args=args)
    assert (await box.call(call)).ok
    assert (await box.call("undo", {"scope": "call", "name": call.id})).ok
