"""Programs that know nothing of us write to the same files at the same time: none of their bytes are lost."""

import subprocess
import sys
import textwrap

import pytest

OUR_LINES, THEIR_LINES = 100, 600

OURS = textwrap.dedent("""
    import sys
    import anyio
    from handtools.core.changes import Change
    from handtools.core.errors import Busy, Stale
    from handtools.host.files.local_files import LocalFiles
    from handtools.host.files.file_locks import FileLocks

    async def main(root, name, count):
        files, locks = LocalFiles(root), FileLocks(f"{root}-locks")
        for number in range(count):
            while True:
                old = files.read("shared")
                new = old + f"{name}-{number}\\n".encode()
                async with locks.hold(["shared"], timeout=60):
                    try:
                        files.perform(files.plan([Change.of("shared", before=old, after=new)]))
                        break
                    except (Stale, Busy):
                        continue

    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
""")

APPENDER = textwrap.dedent("""
    import sys
    root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for number in range(count):
        with open(f"{root}/shared", "a") as file:
            file.write(f"{name}-{number}\\n")
""")

EDITOR = textwrap.dedent("""
    import os, sys
    root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for number in range(count):
        with open(f"{root}/shared", "rb") as file:
            content = file.read()
        with open(f"{root}/{name}.tmp", "wb") as file:
            file.write(content + f"{name}-{number}\\n".encode())
        os.rename(f"{root}/{name}.tmp", f"{root}/shared")
""")


def run(root, **programs):
    """Let programs run side by side; those that know nothing of us write more, to be there all the time."""
    counts = {name: OUR_LINES if program is OURS else THEIR_LINES for name, program in programs.items()}
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(root), name, str(counts[name])])
        for name, program in programs.items()
    ]
    assert [process.wait(timeout=60) for process in started] == [0] * len(started)
    return {f"{name}-{number}" for name, count in counts.items() for number in range(count)}


@pytest.mark.timeout(90)
def test_our_writers_and_an_appender_lose_nothing(tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "shared").write_text("")
    written = run(root, one=OURS, two=OURS, three=OURS, appender=APPENDER)
    found = (root / "shared").read_text().splitlines()
    assert len(found) == len(set(found))
    assert set(found) == written
    assert [path.name for path in root.iterdir()] == ["shared"]


@pytest.mark.timeout(90)
def test_an_editor_that_renames_over_the_file_loses_nothing_to_us(tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "shared").write_text("")
    written = run(root, one=OURS, two=OURS, three=OURS, editor=EDITOR)
    found = [line for path in root.iterdir() for line in path.read_text().splitlines()]
    assert set(found) >= {line for line in written if line.startswith("editor")}
    assert not [path.name for path in root.iterdir() if path.name.startswith(".handtools-")]
