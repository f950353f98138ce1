"""Programs that know nothing of us write to the same files at the same time: none of their bytes are lost."""

import subprocess
import sys
import textwrap

import pytest

LINES = 80

OURS = textwrap.dedent("""
    import sys
    from handtools.core.changes import Change
    from handtools.core.errors import Busy, Stale
    from handtools.host.local_files import LocalFiles

    root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    files, refused = LocalFiles(root), 0
    for number in range(count):
        while True:
            old = files.read("shared")
            new = old + f"{name}-{number}\\n".encode()
            try:
                files.perform(files.plan([Change.of("shared", before=old, after=new)]))
                break
            except (Stale, Busy):
                refused += 1
    print(refused)
""")

APPENDER = textwrap.dedent("""
    import sys
    root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for number in range(count):
        with open(f"{root}/shared", "a") as file:
            file.write(f"{name}-{number}\\n")
    print(0)
""")

EDITOR = textwrap.dedent("""
    import os, sys
    root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for number in range(count):
        with open(f"{root}/shared", "rb") as file:
            content = file.read()
        with open(f"{root}/{name}.tmp", "wb") as file:
            file.write(content + f"{name}-{number}\\n".encode())
            os.fsync(file.fileno())
        os.rename(f"{root}/{name}.tmp", f"{root}/shared")
    print(0)
""")


def run(root, **programs):
    """Let programs run side by side; how often ours were refused."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(root), name, str(LINES)], stdout=subprocess.PIPE, text=True
        )
        for name, program in programs.items()
    ]
    refused = sum(int(process.communicate(timeout=60)[0]) for process in started)
    assert all(process.returncode == 0 for process in started)
    return refused


def lines_of(*names):
    return {f"{name}-{number}" for name in names for number in range(LINES)}


@pytest.mark.timeout(90)
def test_our_writers_and_an_appender_lose_nothing(tmp_path):
    (tmp_path / "shared").write_text("")
    refused = run(tmp_path, one=OURS, two=OURS, three=OURS, appender=APPENDER)
    found = (tmp_path / "shared").read_text().splitlines()
    assert len(found) == len(set(found))
    assert set(found) == lines_of("one", "two", "three", "appender")
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
    assert refused > 0


@pytest.mark.timeout(90)
def test_an_editor_that_renames_over_the_file_loses_nothing_to_us(tmp_path):
    (tmp_path / "shared").write_text("")
    run(tmp_path, one=OURS, two=OURS, three=OURS, editor=EDITOR)
    found = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert set(found) >= lines_of("editor")
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".handtools-")]
