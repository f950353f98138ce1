"""How long each job takes through each server, and what the answer costs a model.

Every server has a copy of one project, the modules of Python's own library under git, and takes its turn in every
round. A job that a server has no tool for is left out of its row.
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
from bench.peers.servers import Server, servers
from handtools.text.token_budget import estimate_tokens

OURS, FILESYSTEM, BARE = "ours", "filesystem", "rg"
MIXED_CALLS = 200
TIMES_OF_FILESYSTEM = {"start to the first answer": 1.0, "create": 2.0, f"{MIXED_CALLS} mixed calls": 1.2}
"""At most so many times what the filesystem server takes, which neither records nor confines."""
TIMES_OF_RIPGREP = 1.1
"""A rare pattern, at most so many times ripgrep on all cores."""
FIRST_COMMAND_MS = 60.0
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


Table = dict[tuple[str, str], Row]
"""By job and server."""


def time_figures(base: Path, installed: Path, rounds: int) -> Iterator[Figure]:
    """All jobs of all servers in turns."""
    table: Table = {}
    roots = {server.name: _project(base / server.name) for server in servers(installed, base)}
    peers = [next(s for s in servers(installed, root) if s.name == name) for name, root in roots.items()]
    for _ in range(max(3, rounds // 2)):
        for server in peers:
            _start(table, server, roots[server.name])
    with ExitStack() as stack:
        clients: dict[str, PeerClient] = {}
        for server in peers:
            clients[server.name] = client = PeerClient(
                server.command(roots[server.name]), roots[server.name]
            )
            stack.callback(client.close)
            client.greet()
            if "command" in server.jobs:
                _take(table, "first command", server, partial(client.call, *server.jobs["command"]("true")))
        for turn in range(rounds):
            for server in peers:
                _jobs(table, server, clients[server.name], turn)
            _bare_grep(table, roots[OURS])
        for turn in range(max(2, rounds // 4)):
            for server in peers:
                if {"read", "edit", "create", "list"} <= server.jobs.keys():
                    mixed = partial(_mixed, server, clients[server.name], turn)
                    _take(table, f"{MIXED_CALLS} mixed calls", server, mixed)
        memory = {name: client.memory_mb() for name, client in clients.items()}
        told = {name: json.dumps(client.tools(), separators=(",", ":")) for name, client in clients.items()}
    yield from _figures(table)
    for name, mb in memory.items():
        yield Figure(name=f"memory after all: {name}", value=round(mb, 1), unit="MB")
    for name, text in told.items():
        goal = DEFINITION_TOKENS if name == OURS else None
        yield Figure(name=f"definitions: {name}", value=estimate_tokens(text), unit="tokens", goal=goal)


def _figures(table: Table) -> Iterator[Figure]:
    for job in dict.fromkeys(job for job, _ in table):
        for name in (name for other, name in table if other == job):
            row, baseline, goal = table[job, name], None, None
            if name == OURS and job in TIMES_OF_FILESYSTEM:
                baseline, goal = table[job, FILESYSTEM].ms, TIMES_OF_FILESYSTEM[job]
            if name == OURS and job == "grep, rare":
                baseline, goal = table[job, BARE].ms, TIMES_OF_RIPGREP
            if name == OURS and job == "first command":
                goal = FIRST_COMMAND_MS
            tokens = f", {estimate_tokens(row.answer):,} tokens" if row.answer else ""
            yield Figure(
                name=f"{job}: {name}{tokens}",
                value=round(row.ms, 2),
                unit="ms",
                baseline=baseline,
                goal=goal,
            )


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
    return root


def _start(table: Table, server: Server, root: Path) -> None:
    """From the start of the process to the list of tools, and, in another, to the first answer without a pause."""

    def first_answer(client: PeerClient) -> object:
        return client.call(*server.jobs["list"]("json"))

    for job, ask in (
        ("start to the list of tools", PeerClient.tools),
        ("start to the first answer", first_answer),
    ):
        client = PeerClient(server.command(root), root)
        try:
            client.greet()
            assert ask(client)
            table.setdefault((job, server.name), Row()).seconds.append(time.perf_counter() - client.started)
        finally:
            client.close()


def _jobs(table: Table, server: Server, client: PeerClient, turn: int) -> None:
    """Each job once; an answer without what was asked for is no answer."""
    for job, kind, arguments, wanted in (
        ("read of 2,000 lines", "read", (LONG, 2_000), "import"),
        ("read of 100 lines", "read", (LONG, 100), "import"),
        ("edit of 100 kB", "edit", (MIDDLE, _version(turn), _version(turn + 1)), ""),
        ("create", "create", (f"made/new{turn}.txt", "some text\n" * 20), ""),
        ("grep, rare", "grep", (RARE,), "tempfile.py"),
        ("grep, common", "grep", (COMMON,), COMMON),
        ("glob", "glob", ("test_a*.py",), "test_argparse.py"),
        ("list", "list", ("json",), "decoder.py"),
        ("command", "command", ("true",), ""),
    ):
        if kind not in server.jobs:
            continue
        answer = _take(table, job, server, partial(client.call, *server.jobs[kind](*arguments)))
        if wanted not in answer:
            raise ValueError(f"{server.name} did not do {job!r}: {answer[:300]}")


def _version(turn: int) -> str:
    """Text of the edited file, as it is before each turn: what one edit writes the next replaces."""
    return "# Author: Steven J. Bethard" + (f" (edition {turn})" if turn else "")


def _take(table: Table, job: str, server: Server, action: Callable[[], str]) -> str:
    row = table.setdefault((job, server.name), Row())
    began = time.perf_counter()
    row.answer = action()
    row.seconds.append(time.perf_counter() - began)
    return row.answer


def _mixed(server: Server, client: PeerClient, turn: int) -> str:
    """Reads, lists, new files and edits of them, as in a session."""
    for number in range(MIXED_CALLS // 4):
        path = f"made/{turn}-{number}.txt"
        client.call(*server.jobs["create"](path, f"first {number}\nsecond\n"))
        client.call(*server.jobs["read"](path, 100))
        client.call(*server.jobs["edit"](path, f"first {number}", f"third {number}"))
        client.call(*server.jobs["list"]("json"))
    return ""


def _bare_grep(table: Table, root: Path) -> None:
    row = table.setdefault(("grep, rare", BARE), Row())
    began = time.perf_counter()
    found = subprocess.run(
        ["rg", "--json", RARE, "."], cwd=root, env=peer_environment(), capture_output=True, check=True
    ).stdout
    row.seconds.append(time.perf_counter() - began)
    assert b"tempfile.py" in found
