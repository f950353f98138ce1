"""Several processes and a person on one checkout."""

import subprocess
import sys


def test_nothing_is_lost_between_eight_processes_and_a_person():
    done = subprocess.run(
        [sys.executable, "-m", "bench", "concurrency"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
