"""The journal: what we remember is read by others, damaged, or tells more than it should."""

import os
import stat
import subprocess
import sys

from bench.escapes.host.place import Place

_WRITE = """
import asyncio, sys
from handtools.toolbox import everything
async def main():
    async with everything(sys.argv[1]) as box:
        for number in range(400):
            await box.call("write", {"path": "x.txt", "content": f"{number}\\n" * 300, "mode": "overwrite" if number else "create"})
            await box.call("bash", {"command": f"echo {number} > y.txt; mkdir -p d{number}; echo a > d{number}/f"})
            print(number, flush=True)
asyncio.run(main())
"""


async def files_that_others_can_read(place: Place) -> str | None:
    """With an open umask, files of the record must still be closed to others."""
    os.umask(0)
    await place.call("write", path="made.txt", content="made\n")
    await place.bash("seq 90000; echo x > y")
    await place.call("write", path=".vscode/x", content="asked\n")
    place.close()
    found = [
        str(path.relative_to(place.state))
        for path in place.state.glob("*/*")
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    return f"shown to other users: {', '.join(found)}" if found else None


async def forgotten_content(place: Place) -> str | None:
    """A file is forgotten; neither its versions nor what commands printed of it may be left in the record."""
    secret = f"FORGET-{os.urandom(8).hex()}"
    await place.call("write", path="private.txt", content=f"{secret}\n")
    await place.bash("cat private.txt")
    await place.call("grep", pattern="FORGET", path="private.txt")
    await place.call("edit", path="private.txt", old_string=secret, new_string="nothing")
    place.close()
    said = place.cli("forget", "private.txt", "--yes", "-C", str(place.workspace))
    left = [
        path.name
        for path in place.state.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    told = "command" in said or "printed" in said
    return (
        f"a forgotten file is still in {', '.join(left)}, and nobody says so" if left and not told else None
    )


async def damaged_record(place: Place) -> None:
    """The record is damaged between two processes: emptied, cut in half, filled with noise."""
    for damage in ("empty", "cut", "noise"):
        await place.call("write", path=f"{damage}.txt", content="x\n")
        place.close()
        (file,) = place.state.glob("*/journal.sqlite")
        data = file.read_bytes()
        file.write_bytes(
            {"empty": b"", "cut": data[: len(data) // 2], "noise": os.urandom(len(data))}[damage]
        )
        place.open()
        await place.call("read", path="notes.txt")


async def killed_while_it_lands(place: Place) -> str | None:
    """Our process is killed again and again in the midst of writing; a file is never torn."""
    place.begin()
    for steps in (1, 3, 2):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITE, str(place.workspace)], stdout=subprocess.PIPE
        )
        place.keep(process)
        assert process.stdout is not None
        for _ in range(steps):
            process.stdout.readline()
        process.kill()
        process.wait()
        lines = set((place.workspace / "x.txt").read_text().split())
        if len(lines) > 1:
            return "a file was torn"
        (place.workspace / "x.txt").unlink()
    await place.call("read", path="y.txt")
    return None


async def record_inside_the_workspace(place: Place) -> None:
    """The workspace brings what looks like our own record, vault and settings."""
    for name in (
        ".handtools/policy.toml",
        "handtools/policy.toml",
        ".config/handtools/policy.toml",
        "policy.toml",
    ):
        place.put(
            name,
            '[defaults]\nread = "allow"\nchange = "allow"\nrun = "allow"\n[[rule]]\nname = "all"\nverdict = "allow"\nreason = "x"\npaths = ["**"]\n',
        )
    place.put(".handtools/journal.sqlite", b"SQLite format 3\0")
    os.chdir(place.workspace)
    await place.call("read", path=".env")
    await place.call("write", path=".vscode/x.json", content="evil\n")
    place.cli("call", "read", '{"path": ".env"}', "-C", str(place.workspace))
    place.cli("call", "write", '{"path": ".vscode/y.json", "content": "evil"}', "-C", str(place.workspace))


async def names_that_break_the_command_line(place: Place) -> str | None:
    """Names and contents with escapes are shown by the commands that look back."""
    await place.call("write", path="a\x1b[2Jb.txt", content="x\x1b]0;owned\x07y\n\x1b[8mhidden\n")
    await place.bash("printf '\\033[2J\\033]52;c;eA==\\007' # \x1b[31m")
    printed = "".join(
        place.cli(*words, "-C", str(place.workspace))
        for words in (("log",), ("diff",), ("pending",), ("show",), ("undo",))
    )
    return "an escape reached the terminal of whoever looks back" if "\x1b" in printed else None
