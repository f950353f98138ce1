"""Terminal output: what agents name, write and print reaches the person's terminal as an instruction to it."""

import re
import shutil
import subprocess
import sys

from bench.escapes.host.place import Place

ESCAPES = "\x1b]0;title\x07\x1b[2K\x1b[1A\u202e\x9b31m"
_STEERS = re.compile("\x1b\\]|\x1b\\[2K|\x1b\\[1A|\u202e|\x9b|\x07|\x1b\\[31mname")
COMMANDS = ("log", "pending", "versions {file}", "show {call}")


async def _done(place: Place) -> list[str]:
    """Calls with escapes in all that a model says; gives our commands that tell of them."""
    file = "a\x1b[31mname\u202e.txt"
    await place.call("write", path=file, content=f"{ESCAPES}\n", description=ESCAPES)
    await place.bash(f"printf '{ESCAPES}'; echo x > 'b{ESCAPES}'", description=ESCAPES)
    await place.call("write", path=".envrc", content=ESCAPES, description=ESCAPES)
    await place.call("read", path=ESCAPES)
    await place.call("grep", pattern=ESCAPES)
    calls = re.findall(r'"id": ?"([0-9a-f]+)"', place.cli("-C", str(place.workspace), "log", "--json"))[:3]
    place.close()
    lines = [line for line in COMMANDS if "{call}" not in line]
    lines += [line.replace("{call}", call) for line in COMMANDS if "{call}" in line for call in calls]
    return [line.replace("{file}", file) for line in lines]


def _steering(outputs: dict[str, str]) -> str | None:
    found = [line for line, seen in outputs.items() if _STEERS.search(seen)]
    return f"a terminal is steered by: {', '.join(map(ascii, found))}" if found else None


async def escapes_in_a_pipe(place: Place) -> str | None:
    """The person pipes what our commands print into a pager, which passes it on. A diff is a file of its own."""
    outputs = {}
    for line in await _done(place):
        outputs[line] = place.cli("-C", str(place.workspace), *line.split())
    return _steering(outputs)


async def escapes_at_a_terminal(place: Place) -> str | None:
    """The same at a terminal, where our own colours are all that may steer it."""
    script = shutil.which("script")
    if script is None:
        return None
    outputs = {}
    for line in await _done(place):
        words = " ".join(f"'{word}'" for word in line.split())
        command = f"{sys.executable} -m handtools -C {place.workspace} {words}"
        done = subprocess.run(
            [script, "-qec", command, "/dev/null"],
            cwd=place.outside,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        outputs[line] = done.stdout.decode("utf-8", "replace")
    return _steering(outputs)
