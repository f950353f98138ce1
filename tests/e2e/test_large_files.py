"""A log of a gigabyte: a range and the tail of it, within the memory of a small process."""

import subprocess
import sys
from pathlib import Path

import pytest

GIGABYTE = 1 << 30
LIMIT_KB = 200 << 10
LINE = b"2026-01-01T00:00:00 INFO request %09d served in 12 ms by worker seven on host nine\n"
BLOCK = 100_000

PROGRAM = """
import sys
from pathlib import Path
from handtools import BlockingToolbox, reading

tools = BlockingToolbox(reading(sys.argv[1]))
head = tools.call("read", {"path": "big.log", "limit": 3})
middle = tools.call("read", {"path": "big.log", "start_line": 7_000_000, "limit": 2})
tail = tools.call("read", {"path": "big.log", "start_line": -2})
assert head.ok and middle.ok and tail.ok, (head.text, middle.text, tail.text)
print(head.text, middle.text, tail.text, sep="\\n")
# Not ru_maxrss: that begins with what the process weighed that started this one.
status = Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="machine: /proc tells the memory on Linux")
def test_a_range_and_the_tail_of_a_gigabyte_take_less_than_200_mb(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    lines = 0
    with (root / "big.log").open("wb") as log:
        while log.tell() < GIGABYTE:
            log.write(b"".join(LINE % n for n in range(lines + 1, lines + BLOCK + 1)))
            lines += BLOCK
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root)],
        env={"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Pytest keeps the folders of some runs; nobody wants to keep this one.
    (root / "big.log").unlink()
    assert done.returncode == 0, done.stderr
    *rows, peak = done.stdout.splitlines()
    assert rows[0].startswith("1\t") and "request 000000001 " in rows[0]
    assert f"(Showing lines 1-3 of {lines} total. Use start_line=4 to continue reading.)" in rows
    assert any(row.startswith("7000000\t") and "request 007000000 " in row for row in rows)
    assert f"request {lines:09} " in rows[-2]
    assert rows[-1] == f"(Showing lines {lines - 1}-{lines} of {lines} total.)"
    assert int(peak) < LIMIT_KB
