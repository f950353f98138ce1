"""Every edit case through every server that edits: right, refused or damaged."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.peers.client import PeerClient
from bench.peers.edits import EditCase, edit_cases
from bench.peers.servers import Server, servers


def edit_figures(base: Path, installed: Path, *, tell: bool) -> Iterator[Figure]:
    """How the cases ended, by server; ours may damage none and gets none wrong."""
    cases = list(edit_cases())
    root = base / "edits"
    root.mkdir()
    for server in servers(installed, root):
        if "edit" not in server.jobs:
            continue
        ends: Counter[str] = Counter()
        client = PeerClient(server.command(root), root)
        try:
            client.greet()
            for number, case in enumerate(cases):
                end = _try(server, client, root / f"{server.name}{number}.txt", case)
                ends[end] += 1
                if tell and end != "right":
                    print(f"{server.name}: {end}: {case.name}", file=sys.stderr)
        finally:
            client.close()
        ours = server.name == "ours"
        count = f"of {len(cases)} edits: {server.name}"
        yield Figure(name=f"right {count}", value=ends["right"], unit="edits")
        yield Figure(name=f"refused {count}", value=ends["refused"], unit="edits")
        yield Figure(name=f"damaged {count}", value=ends["damaged"], unit="edits", goal=0 if ours else None)


def _try(server: Server, client: PeerClient, file: Path, case: EditCase) -> str:
    file.write_bytes(case.before)
    for _ in range(case.times):
        client.call(*server.jobs["edit"](file.name, case.old, case.new))
    after = file.read_bytes()
    if after in case.right or (after == case.before and None in case.right):
        return "right"
    return "refused" if after == case.before else "damaged"
