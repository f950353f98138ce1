"""Rules about what is written down: the requirements and the lock."""

import re
from pathlib import Path

from tests.shape.tool_rules import tests_in

PAGE = "docs/reference/requirements.md"
SIZES = {
    "RT": 13,
    "RD": 8,
    "ED": 17,
    "GR": 4,
    "FN": 1,
    "LS": 2,
    "SH": 5,
    "WB": 2,
    "SK": 1,
    "AT": 1,
    "MS": 1,
}
IDS = [f"R-{part}-{number:02}" for part, size in SIZES.items() for number in range(1, size + 1)]

PLANNED: set[str] = set()
"""What is not built yet. Take an id out when it lands; its row must then name a test."""


def requirements(root: Path) -> list[str]:
    """Ids without a row, rows without an id, and rows that name a module or a test that does not exist."""
    found = [
        _cells(line) for line in (root / PAGE).read_text("utf-8").splitlines() if line.startswith("| R-")
    ]
    names = [row[0] for row in found]
    problems = [f"{name}: no row" for name in IDS if name not in names]
    problems += [
        f"{name}: not a requirement, or twice" for name in names if name not in IDS or names.count(name) > 1
    ]
    for name, _, homes, tests in found:
        planned = re.fullmatch(r"planned \(issue \d+\)", tests)
        if planned and name not in PLANNED:
            problems.append(f"{name}: planned, but it must be there")
        if not planned:
            problems += [f"{name}: {problem}" for problem in _dangling(root, homes, tests)]
    return problems


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    assert len(cells) == 4, f"a row has an id, a sentence, its home and its tests: {line}"
    return cells


def _dangling(root: Path, homes: str, tests: str) -> list[str]:
    """Names in a row that stand for nothing."""
    modules, named = re.findall(r"`([^`]+)`", homes), re.findall(r"`([^`]+)`", tests)
    problems = [] if modules and named else ["names no module or no test"]
    problems += [
        f"no module {name}" for name in modules if not (root / "src" / "handtools" / name).exists()
    ]
    for test in named:
        path, _, function = test.partition("::")
        if not (root / path).is_file() or (function and function not in tests_in(root, path)):
            problems.append(f"no test {test}")
    return problems


def lock(root: Path) -> list[str]:
    """Locked packages without a hash, and hosts in the lock: it must work from any index."""
    problems = []
    for path in sorted((root / "requirements").glob("*.txt")):
        text = path.read_text("utf-8")
        pins = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
        problems += [
            f"{path.name}: {pin.split()[0]} has no hash" for pin in pins if "--hash=sha256:" not in pin
        ]
        problems += [f"{path.name}: {found} names a host" for found in re.findall(r"\S*://\S*", text)]
    return problems
