"""The reference page of what is used of the system: the table of parts, and the figures of `.ci/portable`.

`python -m tests.docs.systems_page` writes it.
"""

import json
from pathlib import Path

from handtools.host.linux_features import SYSTEM_PARTS, SystemPart

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "systems.md"
FIGURES = ROOT / "tests" / "portable" / "figures.json"
HEAD = """# What is used of the system

<!-- Made from the code by `just docs`: change `host/linux_features.py`, not this page. -->

handtools is made on Linux. This is every part of Linux that it uses and other systems may lack, what stands in
for it, and what you lose. `handtools doctor` says the same of your machine: its check, and the two cells before
it as the sentence.

A part can be hidden from the tests, alone or with all others: `pytest -p tests.portable.plugin --hide "exchange
by rename" PATHS` (`--hide all`). The last column is what the suites of files, locks, store and toolbox said
with only that part hidden (`.ci/portable each`). Tests about the part itself carry `@pytest.mark.linux("PART")`
and are left out then. Where the cell is empty, the part was not measured alone.

| part | how it is found | what stands in | what you lose | `doctor` | suite without it |
|---|---|---|---|---|---|
"""
TAIL = """
`.ci/portable` runs all parts hidden over the suites that say most in two minutes, as a stage of `.ci/run`;
`.ci/portable whole` runs every suite that needs no program of Linux.

## macOS: not run by us

We have no such machine. Reading, editing, searching, undo, the journal, the policy, MCP and the adapters use
nothing that is not in this table. Files are exchanged by macOS's own call (`renameatx_np`). Commands run in a
container where an engine answers. Else they run under Seatbelt (`sandbox-exec`), with a profile made from the
same values as bubblewrap's arguments; because nobody of us has seen it hold, it counts as no boundary, and
every command that is not plainly harmless is asked about. Its text and its meaning are tested here: for random
sets of paths it allows exactly what bubblewrap's mounts do
(`tests/unit/host/sandbox/runners/test_seatbelt.py`).

## Windows: not run by us

We have no such machine either. Paths (drives, shares, device names, letters in either case), locks (the first
byte of a file), replacement (`ReplaceFileW`, which keeps the old file) and the process trees of helper programs
(job objects) follow the documented calls; what those are told is tested here with a library that writes it down
(`tests/unit/host/test_windows.py`), paths with `ntpath`. `bash` and `jobs` are not offered.

The workflow in `.github/workflows/tests.yml` runs the suites on Linux, macOS and Windows with Python 3.11 to
3.14, so that whoever has a fork gets an answer.
"""


EARLIER = {
    "openat2": "1,633 pass, 1 about it",
    "leases": "1,630 pass, 4 about it",
    "folder handles": "1,633 pass, 1 counts steps",
    "mount table": "1,634 pass",
    "memory files": "1,634 pass",
    "fork": "1,633 pass, 1 forks itself",
    "pidfd": "1,634 pass",
    "bubblewrap": "1,634 pass",
}
"""What the same suites said on 2026-11-16 before ADR 259; for parts that were not run since."""


def page() -> str:
    """The whole page."""
    figures = json.loads(FIGURES.read_text("utf-8"))
    earlier = {name: f"{said} (before ADR 259)" for name, said in EARLIER.items()}
    rows = [
        _row(part, _said(figures.get(part.name)) or earlier.get(part.name, "")) for part in SYSTEM_PARTS
    ]
    everything = f"| all of them | | | | | {_said(figures.get('all'))} |"
    return HEAD + "\n".join([*rows, everything]) + "\n" + TAIL


def _row(part: SystemPart, said: str) -> str:
    cells = (part.name, part.found, part.stand_in, part.loss, f"`{part.check or part.name}`", said)
    return f"| {' | '.join(cells)} |"


def _said(figures: dict[str, int] | None) -> str:
    if figures is None:
        return ""
    told = [f"{figures['passed']:,} pass"]
    told += [f"{figures['skipped']} about it"] if figures["skipped"] else []
    failed = figures["failed"] + figures["error"]
    told += [f"{failed} fail"] if failed else []
    return ", ".join(told)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
