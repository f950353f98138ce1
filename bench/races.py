"""Links that another program swaps all the time, inside and outside: what is opened must be what was judged.

A process exchanges files and folders of a workspace with links to private files, to protected folders and to
outside, as fast as it can, while reads, writes, searches, lists of skills and landings of commands go through the
same names. Counted are private bytes that were shown, files in a protected folder that nobody was asked about, and
anything from or in the folder outside. The last figure is of a reader that judges where a path leads and then
opens it by its name: if that one never loses, the race was none and the others mean nothing.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bench.figures import Figure
from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.changes import BackupRef, Change, ChangeSet, Node, sha256_hex
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.errors import ToolError
from handtools.core.search import SearchPatterns, SearchScope
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.skills import SkillFolders
from handtools.runtime.approval.gate import ApprovalGate
from handtools.runtime.guards.commands import GuardedCommands
from handtools.runtime.guards.files import GuardedFiles, GuardedSkills
from handtools.runtime.guards.search import GuardedSearch
from handtools.runtime.policy import Policy
from handtools.runtime.workspace import Workspace
from handtools.toolbox import local_workspace

PRIVATE, OUTSIDE = "PRIVATE-BYTES", "OUTSIDE-BYTES"
ROUNDS, QUICK_SECONDS = 100_000, 3.0
PAIRS = (
    ("pub", "pub-link"),
    ("d", "d-link"),
    ("o", "o-link"),
    ("e", "e-link"),
    (".agents/skills/a/SKILL.md", ".agents/skills/a/link"),
    (".agents/skills/b", ".agents/skills/b-link"),
)
SWAPPER = """
import ctypes, sys
rename = ctypes.CDLL(None).renameat2
root, pairs = sys.argv[1].encode(), [pair.encode().split(b'=') for pair in sys.argv[2:]]
while True:
    for pause in (0, 0, 30, 300, 3000):
        for one, other in pairs:
            rename(-100, root + b'/' + one, -100, root + b'/' + other, 2)
        for _ in range(pause):
            pass
"""
LAYER = "0123456789abcdef"
"""The item of the vault that stands for a command's layer."""


@dataclass
class Lost:
    """What got through, and how rounds ended."""

    private: int = 0
    outside: int = 0
    rounds: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def look(self, text: str) -> None:
        """Count what must not be in an answer."""
        self.private += PRIVATE in text
        self.outside += OUTSIDE in text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=int, help=f"of each kind ({ROUNDS:,}; {QUICK_SECONDS:g} s with --quick)"
    )
    parser.add_argument("--only", help="one kind: " + ", ".join(KINDS))


def run(options: argparse.Namespace) -> Iterable[Figure]:
    if not sys.platform.startswith("linux"):
        return
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        root = lay_out(base)
        for kind in [options.only] if options.only else KINDS:
            with swapped(root):
                lost = anyio.run(_rounds, base, kind, options.rounds, options.quick)
            left = _left(base)
            seen = ", ".join(f"{count:,} {end}" for end, count in lost.ends.most_common(5))
            print(f"{kind}: {lost.rounds:,} rounds ({seen})", file=sys.stderr)
            yield Figure(
                name=f"{kind}: private reads of {lost.rounds:,}", value=lost.private, unit="rounds", goal=0
            )
            yield Figure(name=f"{kind}: protected writes unasked", value=left[0], unit="files", goal=0)
            yield Figure(name=f"{kind}: outside", value=lost.outside + left[1], unit="rounds", goal=0)
        with swapped(root):
            loser = _by_name(base, 2.0)
        yield Figure(name="lost by a reader by name", value=loser, unit="rounds", goal=1, better="higher")


def lay_out(base: Path) -> Path:
    """A workspace with links to swap in."""
    root, out = base / "work", base / "out"
    skills = root / ".agents" / "skills"
    for folder in (
        out,
        *(root / name for name in ("d", "o", "e", ".ssh", ".vscode")),
        skills / "a",
        skills / "b",
    ):
        folder.mkdir(parents=True)
    (root / "pub").write_text("open pattern\n")
    for path in (root / ".env", root / ".ssh" / "f", root / ".ssh" / "SKILL.md"):
        path.write_text(f"{PRIVATE} pattern\n")
    for path in (root / "d" / "f", root / "o" / "f"):
        path.write_text("open pattern\n")
    for path in (out / "f", out / "SKILL.md"):
        path.write_text(f"{OUTSIDE} pattern\n")
    for name in ("a", "b"):
        (skills / name / "SKILL.md").write_text("---\nname: x\ndescription: open\n---\n")
    links = {"pub-link": ".env", "d-link": ".ssh", "o-link": "../out", "e-link": ".vscode"}
    skill_links = {".agents/skills/a/link": "../../../.env", ".agents/skills/b-link": "../../.ssh"}
    for name, target in (links | skill_links).items():
        (root / name).symlink_to(target)
    return root


@contextlib.contextmanager
def swapped(root: Path) -> Iterator[None]:
    """With another program at work."""
    pairs = [f"{one}={other}" for one, other in PAIRS]
    with subprocess.Popen([sys.executable, "-c", SWAPPER, str(root), *pairs]) as swapper:
        try:
            yield
        finally:
            swapper.send_signal(signal.SIGKILL)


async def _rounds(base: Path, kind: str, rounds: int | None, quick: bool) -> Lost:
    workspace = _workspace(base)
    lost, one = Lost(), KINDS[kind]
    end = time.monotonic() + QUICK_SECONDS if quick and not rounds else float("inf")
    most = rounds or ROUNDS
    try:
        while lost.rounds < most and time.monotonic() < end:
            lost.rounds += 1
            try:
                await one(Round(workspace, lost, f"{kind}{lost.rounds}"))
                lost.ends["done"] += 1
            except ToolError as refusal:
                lost.look(str(refusal))
                lost.ends[refusal.code] += 1
    finally:
        workspace.commands.close()
        workspace.journal.close()
    return lost


def _workspace(base: Path) -> Workspace:
    """The folder, without the skills of this machine: to look for those takes longer than all the rest."""
    root, state = base / "work", base / "state"
    (state / "layer").mkdir(parents=True, exist_ok=True)
    files = local_workspace(root, state=state).files
    return local_workspace(
        root, state=state, skills=SkillFolders(files, os.path.realpath(root), local=True)
    )


class Round:
    """One look or change, with what a tool holds."""

    def __init__(self, workspace: Workspace, lost: Lost, name: str) -> None:
        self.workspace, self.lost, self.name = workspace, lost, name
        self.number = lost.rounds
        call = Call(tool="bench", args={})
        self.gate = ApprovalGate(call, Policy(), _no, workspace.journal, _nothing)
        self.files = GuardedFiles(call, workspace, self.gate, _nothing)
        self.call = call

    async def read(self) -> None:
        """Through a link in the place of a file, of a folder, and to outside."""
        path = ("pub", "d/f", "o/f")[self.number % 3]
        self.lost.look((await self.files.read(path)).decode())

    async def write(self) -> None:
        """Into a folder that is a link to a protected one, or to outside, half of the time."""
        path = f"{('e', 'o', 'd')[self.number % 3]}/{self.name}"
        await self.files.apply(ChangeSet.of(Change.of(path, before=None, after=b"x")))

    async def grep(self) -> None:
        """Hits, counts and names below such folders."""
        search = GuardedSearch(self.workspace, self.gate)
        scope = SearchScope(root=(".", "d", "o", "pub")[self.number % 4], hidden=True)
        patterns = SearchPatterns(patterns=("pattern",))
        if self.number % 8 < 6:
            found = await search.hits(patterns, scope, most=50)
            self.lost.look(" ".join(hit.text for hit in found.hits))
        else:
            tallies = await search.tallies(
                SearchPatterns(patterns=(f"{PRIVATE}|{OUTSIDE}",)), scope, most=50
            )
            self.lost.private += bool(tallies.tallies)

    async def skill(self) -> None:
        """The list, and the files of one."""
        skills = GuardedSkills(self.workspace, self.gate)
        found = await skills.found(".")
        self.lost.look(" ".join(f"{skill.name} {skill.description}" for skill in found))
        for skill in found:
            await skills.bundle(skill)

    async def landing(self) -> None:
        """What a command wrote into its layer, while the folder it goes to is swapped."""
        backups = self.workspace.files.backups
        assert isinstance(backups, FolderBackups)
        path = f"{('e', 'o', 'd')[self.number % 3]}/{self.name}"
        ref = f"{LAYER}/upper/{path}"
        with FolderHandle.at(str(backups.folder.parent / "layer")) as folder:
            Path(folder.path, "new").write_bytes(b"x")
            backups.put_in(ref, folder, "new")
        node = Node("file", b"x", 0o644, BackupRef(ref, sha256_hex(b"x"), 1))
        end = CommandExit(
            code=0, output=CommandOutput(head=b"", tail=b"", bytes=0, lines=0), seconds=0.0, cwd="."
        )
        ran = FinishedCommand(exit=end, delta=(Change(path, None, node),), coverage="overlay")
        commands = GuardedCommands(self.call, self.workspace, self.files, _nothing)
        try:
            await commands.landed(ran, review=False)
        finally:
            backups.drop(ref)


KINDS: dict[str, Callable[[Round], Awaitable[None]]] = {
    "read": Round.read,
    "write": Round.write,
    "grep": Round.grep,
    "skill": Round.skill,
    "landing": Round.landing,
}


def _left(base: Path) -> tuple[int, int]:
    """What came to be in the protected folder and outside; it is taken away for the next kind."""
    counts = []
    for folder, own in ((base / "work" / ".vscode", set()), (base / "out", {"f", "SKILL.md"})):
        new = set(os.listdir(folder)) - own
        for name in new:
            (folder / name).unlink()
        counts.append(len(new))
    return counts[0], counts[1]


def _by_name(base: Path, seconds: float) -> int:
    """How often a reader loses that judges where a path leads, and then opens the path by its name."""
    workspace, policy = _workspace(base), Policy()
    lost, end = Lost(), time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ToolError, OSError):
            if not policy.hides(workspace.files.locate("pub")):
                lost.look((base / "work" / "pub").read_text())
    workspace.journal.close()
    return lost.private


async def _no(_: Approval) -> Reply:
    return Reply(False)


def _nothing(_: object) -> None:
    """Nobody listens."""
