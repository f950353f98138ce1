"""The reference page of what is used of the system: the table of parts, and the figures of `.ci/portable`.

`python -m tests.docs.systems_page` writes it.
"""

import json
from pathlib import Path

from handtools.host.linux_feature_fallbacks import SYSTEM_PARTS, SystemPart

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "systems.md"
FIGURES = ROOT / "tests" / "portable" / "figures.json"
"""What came out with each part hidden alone: `.ci/portable each`."""
WHOLE = ROOT / "tests" / "portable" / "whole.json"
"""What came out with all parts hidden, by suite: `.ci/portable whole`."""
KINDS = ("passed", "failed", "error", "hidden", "skipped", "xfailed")
HEAD = """# What is used of the system

<!-- Made from the code by `just docs`: change `host/linux_feature_fallbacks.py`, not this page. -->

handtools is made on Linux. This is every part of Linux that it uses and other systems may lack, what stands in
for it, and what you lose. `handtools doctor` says the same of your machine: its check, and the two cells before
it as the sentence.

A part can be hidden from the tests, alone or with all others: `pytest -p tests.portable.plugin --hide "exchange
by rename" PATHS` (`--hide all`). The last column is what the suites of files, locks, store and toolbox said
with only that part hidden, or the suites of commands for memory files, pidfd, overlay, bubblewrap, Landlock and
supervisors (`.ci/portable each`, or one row: `.ci/portable each overlay`). Tests about the part itself carry
`@pytest.mark.linux("PART")` and are left out then.

| part | how it is found | what stands in | what you lose | `doctor` | suite without it |
|---|---|---|---|---|---|
"""
WHOLE_HEAD = """
`.ci/portable` runs all parts hidden over the suites that say most in a minute, as a stage of `.ci/run`. This is
what the suites say (`.ci/portable whole`, or one row: `.ci/portable whole tests/e2e/mcp`). An adapter has a row of
its own, `tests/adapters/NAME`, with the newest real SDK or with the oldest (`-floor`). Not in it are the rest of
`tests/e2e`, which is for the most part about sandboxes, containers, attacks and faults, and the fleet with Ray.

| all parts hidden | pass | fail | about a part | not run for another reason |
|---|---|---|---|---|
"""
TAIL = """
## macOS: not run by us

We have no such machine. Reading, editing, searching, undo, the journal, the policy, MCP and the adapters use
nothing that is not in this table. Files are exchanged by macOS's own call (`renameatx_np`). Commands run in a
container where an engine answers. Else they run under Seatbelt (`sandbox-exec`), with a profile made from the
same values as bubblewrap's arguments; because nobody of us has seen it hold, it counts as no boundary, and
every command that no rule allows is asked about. Its text and its meaning are tested here: for random
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


def page() -> str:
    """The whole page."""
    figures = json.loads(FIGURES.read_text("utf-8"))
    rows = [_row(part, _said(figures[part.name])) for part in SYSTEM_PARTS]
    everything = f"| all of them | | | | | {_said(figures['all'])} |"
    whole = json.loads(WHOLE.read_text("utf-8"))
    suites = [f"| `{suite}` | {_counts(came_out)} |" for suite, came_out in whole.items()]
    together = {kind: sum(each[kind] for each in whole.values()) for kind in KINDS}
    table = "\n".join([*suites, f"| together | {_counts(together)} |"])
    return HEAD + "\n".join([*rows, everything]) + "\n" + WHOLE_HEAD + table + "\n" + TAIL


def _row(part: SystemPart, said: str) -> str:
    cells = (part.name, part.found, part.stand_in, part.loss, f"`{part.check or part.name}`", said)
    return f"| {' | '.join(cells)} |"


def _said(came_out: dict[str, int]) -> str:
    failed = came_out["failed"] + came_out["error"]
    told = [
        f"{came_out['passed']:,} pass",
        f"{came_out['hidden']} about it" if came_out["hidden"] else "",
        f"{came_out['skipped']} not run here" if came_out["skipped"] else "",
        f"{failed} fail" if failed else "",
    ]
    return ", ".join(filter(None, told))


def _counts(came_out: dict[str, int]) -> str:
    failed = came_out["failed"] + came_out["error"]
    counts = (came_out["passed"], failed, came_out["hidden"], came_out["skipped"] + came_out["xfailed"])
    return " | ".join(f"{count:,}" for count in counts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
