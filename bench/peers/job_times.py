"""How long each job takes through each server, and what the answer costs a model.

Every server has a copy of one project, the modules of Python's own library under git, and takes its turn in every
round. A job that a server has no tool for is left out of its row. A ratio is the median over rounds, in which both
stood beside each other.
"""

import json
import shutil
import statistics
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.figures import Figure
from bench.peers.client import PeerClient, peer_environment
from bench.peers.servers import COMMANDER, FILESYSTEM, OURS, Server, ServerMakers
from handtools.host.sandbox.environment_variables import command_environment
from handtools.host.sandbox.launch import Launch, confined_launch
from handtools.host.sandbox.runners.runner_selection import runners_by_strength
from handtools.text.token_estimate import estimate_tokens

RIPGREP, BUBBLEWRAP = "rg", "bwrap"
"""What ours is made of, alone: on all cores, and with the same boundary."""
TOOLS_LISTED, FIRST_ANSWER = "start to the list of tools", "start to the first answer"
FIRST_COMMAND, COMMAND, RARE_GREP = "start to the first command", "command", "grep, rare"
READ, LIST, CREATE, EDIT = "read of 100 lines", "list", "create", "edit of 100 kB"
MEMORY, DEFINITIONS = "memory after all", "definitions"
MIXED_CALLS = 200
MIXED = f"{MIXED_CALLS} mixed calls"
GOALS = {
    FIRST_ANSWER: (FILESYSTEM, 1.0),
    FIRST_COMMAND: (COMMANDER, 2.0),
    READ: (FILESYSTEM, 1.3),
    LIST: (FILESYSTEM, 1.3),
    CREATE: (FILESYSTEM, 1.2),
    EDIT: (FILESYSTEM, 1.6),
    MIXED: (FILESYSTEM, 1.4),
    RARE_GREP: (RIPGREP, 1.08),
    COMMAND: (BUBBLEWRAP, 1.8),
}
"""Ours takes at most so many times what the other takes for the job."""
MAX_MEMORY_MB = 50.0
DEFINITION_TOKENS = 3_500
RARE, COMMON = "def _candidate_tempdir_list", "import sys"
LONG, MIDDLE = "typing.py", "argparse.py"
"""Over 2,000 lines; about 100 kB."""


@dataclass(slots=True)
class Row:
    """One job of one server: how long it took each time, and the last answer."""

    seconds: list[float] = field(default_factory=list)
    answer: str = ""

    @property
    def ms(self) -> float:
        return statistics.median(self.seconds) * 1000

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.answer)

    def over(self, other: "Row") -> float:
        """How many times the other's time, in the median of the rounds."""
        return statistics.median(
            mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)
        )


@dataclass(slots=True)
class JobTimes:
    """What was measured."""

    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    """By job and server."""
    memory_mb: dict[str, float] = field(default_factory=dict)
    """By server, after all jobs."""
    definition_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def jobs(self) -> list[str]:
        return list(dict.fromkeys(job for job, _ in self.rows))

    def take(self, job: str, name: str, action: Callable[[], str]) -> str:
        """Time an action."""
        row = self.rows.setdefault((job, name), Row())
        began = time.perf_counter()
        row.answer = action()
        row.seconds.append(time.perf_counter() - began)
        return row.answer


def measure_jobs(base: Path, makers: ServerMakers, rounds: int) -> JobTimes:
    """All jobs of all servers in turns."""
    times = JobTimes()
    peers = [make(_project(base / name)) for name, make in makers.items()]
    for _ in range(max(2, rounds // 2)):
        for server in peers:
            _start(times, server)
    with ExitStack() as stack:
        clients: dict[str, PeerClient] = {}
        for server in peers:
            clients[server.name] = client = server.start()
            stack.callback(client.close)
            client.greet()
        for turn in range(rounds):
            for server in peers:
                _jobs(times, server, clients[server.name], turn)
            _bare(times, peers[0].root)
        for turn in range(max(2, rounds // 4)):
            for server in peers:
                if server.edits and {"read", "create", "list"} <= server.jobs.keys():
                    times.take(MIXED, server.name, partial(_mixed, server, clients[server.name], turn))
        for name, client in clients.items():
            times.memory_mb[name] = client.memory_mb()
            told = json.dumps(client.tools(), separators=(",", ":"))
            times.definition_tokens[name] = estimate_tokens(told)
    return times


def time_figures(times: JobTimes) -> Iterator[Figure]:
    """Every row, those with a goal beside what they are held against."""
    for (job, name), row in times.rows.items():
        tokens = f", {row.tokens:,} tokens" if row.answer else ""
        value, baseline, goal = row.ms, None, None
        if name == OURS and (job, GOALS.get(job, ("",))[0]) in times.rows:
            other, goal = GOALS[job]
            baseline = times.rows[job, other].ms
            value = baseline * row.over(times.rows[job, other])
        yield Figure(
            name=f"{job}: {name}{tokens}", value=round(value, 2), unit="ms", baseline=baseline, goal=goal
        )
    for name, mb in times.memory_mb.items():
        goal = MAX_MEMORY_MB if name == OURS else None
        yield Figure(name=f"{MEMORY}: {name}", value=round(mb, 1), unit="MB", goal=goal)
    for name, number in times.definition_tokens.items():
        goal = DEFINITION_TOKENS if name == OURS else None
        yield Figure(name=f"{DEFINITIONS}: {name}", value=number, unit="tokens", goal=goal)


def _project(root: Path) -> Path:
    """Python's library with its tests, twice, in a repository: some thousand files."""
    library = sysconfig.get_path("stdlib")
    dropped = shutil.ignore_patterns(
        "site-packages", "dist-packages", "__pycache__", "*.so", "*.a", "config-*"
    )
    shutil.copytree(library, root, ignore=dropped, symlinks=True)
    shutil.copytree(
        root, root / "vendored" / "python", symlinks=True, ignore=shutil.ignore_patterns("vendored")
    )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    # One of them searches only what git has.
    subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    return root


def _start(times: JobTimes, server: Server) -> None:
    """Time three processes from their start: to the list of tools, to a first answer, and to a first command."""

    def first_answer(client: PeerClient) -> object:
        kind, argument = ("list", ("json",)) if "list" in server.jobs else ("read", (LONG, 100))
        return client.call(*server.jobs[kind](*argument))

    def first_command(client: PeerClient) -> object:
        client.call(*server.jobs["command"]("true"))
        return True

    asks: dict[str, Callable[[PeerClient], object]] = {
        TOOLS_LISTED: PeerClient.tools,
        FIRST_ANSWER: first_answer,
    }
    if "command" in server.jobs:
        asks[FIRST_COMMAND] = first_command
    for job, ask in asks.items():
        client = server.start()
        try:
            client.greet()
            assert ask(client)
            row = times.rows.setdefault((job, server.name), Row())
            row.seconds.append(time.perf_counter() - client.started)
        finally:
            client.close()


def _jobs(times: JobTimes, server: Server, client: PeerClient, turn: int) -> None:
    """Each job once; an answer without what was asked for is no answer."""
    for job, kind, arguments, wanted in (
        ("read of 2,000 lines", "read", (LONG, 2_000), "import"),
        (READ, "read", (LONG, 100), "import"),
        (CREATE, "create", (f"made/new{turn}.txt", "some text\n" * 20), ""),
        (RARE_GREP, "grep", (RARE,), "tempfile.py"),
        ("grep, common", "grep", (COMMON,), ".py"),
        ("glob", "glob", ("test_a*.py",), "test_argparse.py"),
        (LIST, "list", ("json",), "decoder.py"),
        (COMMAND, "command", ("true",), ""),
    ):
        if kind not in server.jobs:
            continue
        answer = times.take(job, server.name, partial(client.call, *server.jobs[kind](*arguments)))
        if wanted not in answer:
            raise ValueError(f"{server.name} did not do {job!r}: {answer[:300]}")
    if server.edits:
        edit = partial(server.edit, client, MIDDLE, _version(turn), _version(turn + 1))
        times.take(EDIT, server.name, edit)
        if _version(turn + 1) not in (server.root / MIDDLE).read_text():
            raise ValueError(f"{server.name} did not edit")


def _version(turn: int) -> str:
    """Text of the edited file, as it is before each turn: what one edit writes the next replaces."""
    return "# Author: Steven J. Bethard" + (f" (edition {turn})" if turn else "")


def _mixed(server: Server, client: PeerClient, turn: int) -> str:
    """Reads, lists, new files and edits of them, as in a session."""
    for number in range(MIXED_CALLS // 4):
        path = f"made/{turn}-{number}.txt"
        client.call(*server.jobs["create"](path, f"first {number}\nsecond\n"))
        client.call(*server.jobs["read"](path, 100))
        server.edit(client, path, f"first {number}", f"third {number}")
        client.call(*server.jobs["list"]("json"))
    return ""


def _bare(times: JobTimes, root: Path) -> None:
    """The programs that ours is made of, without us."""

    def run(argv: list[str], pass_fds: tuple[int, ...] = (), **environment: str) -> str:
        env = environment or peer_environment()
        done = subprocess.run(argv, cwd=root, env=env, pass_fds=pass_fds, capture_output=True, check=True)
        return done.stdout.decode()

    found = times.take(RARE_GREP, RIPGREP, partial(run, ["rg", "--json", RARE, "."]))
    assert "tempfile.py" in found
    env = command_environment({}, frozenset(), terminal=False)
    launch = Launch(argv=("bash", "-c", "true"), env=env, cwd=str(root), root=str(root))
    with confined_launch(next(iter(runners_by_strength())), launch) as ready:
        argv = partial(run, list(ready.argv), ready.runner_fds, **ready.env)
        times.take(COMMAND, BUBBLEWRAP, argv)
