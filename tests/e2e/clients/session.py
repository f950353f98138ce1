"""The scripted session: a folder, a policy, and what the model calls in it, all in one process of a client."""

import contextlib
import json
import os
import re
import secrets
import signal
import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.clients.client import HANDTOOLS, Client, Place
from tests.e2e.clients.processes import running, wait
from tests.e2e.clients.scripted_model import ScriptedModel, Step
from tests.e2e.clients.wires.shapes import Json, Returned

TEA = '''"""Tea."""


def brew(leaves: str, minutes: int) -> str:
    """Say what is brewed."""
    return f"{leaves} tea after {minutes} minutes"


if __name__ == "__main__":
    print(brew("green", 3))
'''
SKILL = "---\nname: tea\ndescription: How tea is made here.\n---\nWarm the pot first.\n"
POLICY = """\
unattended = "ask"

[[rule]]
name = "migrations"
verdict = "ask"
reason = "A person looks at migrations."
effects = ["change"]
paths = ["migrations/**"]

[[rule]]
name = "no web"
verdict = "deny"
reason = "Nobody visits the web here."
effects = ["visit"]
"""
PATCH = '''\
*** Begin Patch
*** Add File: notes/pot.md
+Warm the pot.
*** Update File: src/tea.py
@@ def brew(leaves: str, minutes: int) -> str:
-    """Say what is brewed."""
+    """Say what is brewed, and for how long."""
*** End Patch
'''
MIGRATION = "create table tea (leaves text);"
STARTS_SECONDS = 300
"""How long a client may take until it has played the script; this machine may be busy."""
ENDS_SECONDS = 20


def png(side: int = 32) -> bytes:
    """A small picture, made here."""
    pixels = (bytes((x * 8, y * 8, 128)) for y in range(side) for x in range(side))
    flat = b"".join(pixels)
    rows = b"".join(b"\0" + flat[n : n + side * 3] for n in range(0, len(flat), side * 3))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def lay(place: Place) -> None:
    """The folder, a home and a policy beside it."""
    for path, content in {
        "work/src/tea.py": TEA,
        "work/README.md": "# Tea\n\nGreen, black, or none.\n",
        "work/.agents/skills/tea/SKILL.md": SKILL,
        "policy.toml": POLICY,
    }.items():
        file = place.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    (place.work / "picture.png").write_bytes(png())
    place.home.mkdir()
    (place.root / "tmp").mkdir()


TWELVE: dict[str, Step] = {
    "read": Step("read", {"path": "src/tea.py"}),
    "grep": Step("grep", {"pattern": "brew", "path": "src"}),
    "edit": Step(
        "edit", {"path": "src/tea.py", "old_string": 'brew("green", 3)', "new_string": 'brew("black", 4)'}
    ),
    "bash": Step("bash", {"command": "python3 src/tea.py; ls -1; echo oops >&2; exit 3"}),
    "failing edit": Step(
        "edit", {"path": "src/tea.py", "old_string": "return f'{leaf} tea'", "new_string": "return leaves"}
    ),
    "its correction": Step(
        "edit", {"path": "src/tea.py", "old_string": "tea after", "new_string": "tea, after"}
    ),
    "patch": Step("patch", {"patch": PATCH}),
    "undo": Step("undo", {"scope": "path", "name": "src/tea.py"}),
    "fetch refused": Step("fetch", {"url": "https://docs.example.org/tea"}),
    "skill": Step("skill", {"name": "tea"}),
    "jobs": Step("jobs", {"action": "list"}),
    "list": Step("list", {"path": "."}),
}


def script(place: Place, mark: str) -> dict[str, Step]:
    """The twelve steps, and one or two for each capability that they leave out; the last never ends by itself."""
    progress = "for n in 1 2 3; do echo step $n; sleep 0.3; done"
    return TWELVE | {
        "image": Step("read", {"path": "picture.png"}),
        "much": Step("bash", {"command": "seq 1 300000"}),
        "read on": Step(
            "read", lambda got: {"path": output_path(got[-1]), "start_line": 150_000, "limit": 3}
        ),
        "ask": Step("write", {"path": "migrations/1.sql", "content": MIGRATION + "\n"}),
        "asked": Step("read", {"path": "migrations/1.sql"}, before=lambda got: approve(place, got[-1])),
        "progress": Step("bash", {"command": progress}),
        "never": Step("bash", {"command": f"sleep {mark}"}),
    }


def text(returned: Returned) -> str:
    return "\n".join(returned.texts)


def output_path(returned: Returned) -> str:
    found = re.search(r"output:\w+\.log", text(returned))
    return found[0] if found else "output:missing"


def approve(place: Place, returned: Returned) -> None:
    """What a person types in another window when a call waits for them."""
    waiting = re.search(r"handtools approve (\w+)", text(returned))
    if waiting:
        _handtools(place, "approve", waiting[1])


def _handtools(place: Place, *words: str) -> str:
    command = [HANDTOOLS, *words, "-C", str(place.work)]
    env = place.env | place.own_env
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@dataclass(frozen=True)
class Session:
    """What came of it."""

    place: Place
    offered: Sequence[str]
    """The full names of the tools that the model was offered first."""
    returned: Mapping[str, Returned]
    """What the model was given at each step."""
    sent: Sequence[Json]
    """What the client sent to our server."""
    answers: Sequence[Json]
    """What our server sent to the client."""
    ended: str
    """What it took to end the client while its last command ran: a signal's name."""
    left: Sequence[str]
    """What of that command was still running afterwards."""
    record: Sequence[Json]
    """The recorded calls, newest first."""
    printed: str
    """What the client printed: for reports."""


def play(client: Client, root: Path) -> Session:
    """One client, from its start to its interruption."""
    place = Place(root)
    lay(place)
    mark = f"86399.{secrets.randbelow(10**9):09}"
    steps = script(place, mark)
    model = ScriptedModel(list(steps.values()), client.prefix)
    with model.serve(), (root / "printed").open("wb") as printed:
        words, env = client.launch(place, model.url)
        process = subprocess.Popen(
            [*client.command, *words],
            env=place.env | env, cwd=place.work, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            start_new_session=True,
        )  # fmt: skip
        try:
            came = wait(lambda: running(mark), STARTS_SECONDS, process)
            ended = _end(process) if came else ""
            wait(lambda: not running(str(place.work)), ENDS_SECONDS)  # our server ends with its client
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    report = (root / "printed").read_text(errors="replace")
    assert came, f"{client.name} did not get there.\n{model.report()}\n{report[-4000:]}"
    return Session(
        place, model.offered[0], dict(zip(steps, model.returned, strict=False)),
        _messages(place.log), _messages(place.answers), ended, running(mark),
        [json.loads(line) for line in _handtools(place, "log", "--json").splitlines()], report,
    )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> str:
    """Interrupt a client as Ctrl-C does: with all that it started in its group; one that stays is killed."""
    for how in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_SECONDS / 2)
            return how.name
    return "none"


def _messages(log: Path) -> list[Json]:
    found = []
    for line in log.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):  # the last may be cut off
            found.append(json.loads(line))
    return found
