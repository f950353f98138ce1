"""Every edit case through every peer that edits: right, refused or damaged."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.figures import Figure
from bench.peers.client import PeerClient
from bench.peers.edits import EditCase, edit_cases
from bench.peers.servers import OURS, Server, ServerMakers

CASES = 40
"""As many cases at least."""
EditEnds = dict[str, Counter[str]]
"""How the cases ended, by peer: right, refused, damaged."""


def try_edits(base: Path, peers: ServerMakers, *, tell: bool) -> EditEnds:
    """Send every case to every peer, each in a file of its own."""
    ends: EditEnds = {}
    for name, make in peers.items():
        server = make(_repository(base / name))
        if not server.edits:
            continue
        ends[server.name] = Counter()
        client = server.start()
        try:
            client.greet()
            for number, case in enumerate(edit_cases()):
                end = _try(server, client, server.root / f"{number}.txt", case)
                ends[server.name][end] += 1
                if tell and end != "right":
                    print(f"{server.name}: {end}: {case.name}", file=sys.stderr)
        finally:
            client.close()
    return ends


def edit_figures(ends: Mapping[str, Counter[str]]) -> Iterator[Figure]:
    """Ours may damage none."""
    cases = len(list(edit_cases()))
    yield Figure(name="edit cases", value=cases, unit="cases", goal=CASES, better="higher")
    for name, ended in ends.items():
        for end in ("right", "refused", "damaged"):
            goal = 0 if name == OURS and end == "damaged" else None
            yield Figure(name=f"{end} of {cases} edits: {name}", value=ended[end], unit="edits", goal=goal)


def _repository(root: Path) -> Path:
    """A folder under git, as one of the peers wants it."""
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def _try(server: Server, client: PeerClient, file: Path, case: EditCase) -> str:
    file.write_bytes(case.before)
    for _ in range(case.times):
        server.edit(client, file.name, case.old, case.new)
    after = file.read_bytes()
    if after in case.right or (after == case.before and None in case.right):
        return "right"
    return "refused" if after == case.before else "damaged"
