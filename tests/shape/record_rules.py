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


DEMANDS = {
    "000": (
        "15 16 23 24 24b 25 26 26b 27 28 29 30 31 32 49 50 51 61 62 63 65 66 67 80 81 88 93 94 96 104 106 107 "
        "108 109 141 149 150 151 152 153 159 167 179 180 181 182 189 236 237 238 245 258"
    ),
    "002": (
        "24 25 26 27 36 50 70 75 76 77 78 86 90 91 92 94 99 115 116 118 137 140 145 149 150 161 166 167 172 "
        "173 177 187 209 225 239 245 248 259 260 261 262 263 348 351 352 353 354 357 358 359 360 371 380 381"
    ),
    "003": (
        "33 34 37 38 46 46b 49 49b 52 52b 55 58 58b 61 64 64b 67 67b 70 70b 73 76 83 86 88 91 96 99 102 102b "
        "106 109 109b 109c 113 116 119 122 125 131 134 137 140 147 151 155 155b 155c 160 164"
    ),
    "004": (
        "31 32 67 110 131 140 160 161 164 165 232 239 248 251 273 275 300 323 406 437 477 520 538 584 606 636 "
        "637 668 699 702 728 754 776 778 917 1015 1024 1037 1061 1080 1174 1196 1217 1221 1243 1257 1278 1310 "
        "1316 1322 1328 1341 1366 1369 1432 1433 1434 1435 1470 1475 1484 1489 1494 1521 1541 1575 1579 1621 "
        "1657 1680 1763 1766 1767 1789 1790 1823 1860 1870"
    ),
}
"""The lines of each founding document that demand something; a letter where one line demands more."""

NOT_YET: set[str] = set()
"""Demands that nothing answers yet. Take one out when it does; its row must then name a test."""


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


def demands(root: Path) -> list[str]:
    """Demands without a row or with two, under no requirement; verdicts, tests and decisions that are none."""
    problems, rows, group = [], list[list[str]](), ""
    for line in (root / PAGE).read_text("utf-8").splitlines():
        if line.startswith("### "):
            group = line.removeprefix("### ")
        if re.match(r"\| 00\d:", line):
            rows.append(_cells(line))
            problems += [] if group in IDS else [f"{rows[-1][0]}: under no requirement"]
    names = [row[0] for row in rows]
    wanted = [f"{document}:{line}" for document, lines in DEMANDS.items() for line in lines.split()]
    problems += [f"{name}: no row" for name in wanted if name not in names]
    problems += [
        f"{name}: no demand, or twice" for name in names if name not in wanted or names.count(name) > 1
    ]
    open_ = {name for name, _, verdict, _ in rows if verdict == "not yet"}
    problems += [f"{name}: not yet, but it must be there" for name in sorted(open_ - NOT_YET)]
    problems += [f"{name}: is there, take it out of NOT_YET" for name in sorted(NOT_YET - open_)]
    for name, _, verdict, tests in rows:
        problems += [f"{name}: {problem}" for problem in _verdict(root, verdict)]
        if verdict != "not yet":
            named = re.findall(r"`([^`]+)`", tests)
            problems += [] if named else [f"{name}: names no test"]
            problems += [f"{name}: no test {test}" for test in named if not _is_test(root, test)]
    return problems


def _verdict(root: Path, verdict: str) -> list[str]:
    if verdict in {"yes", "not yet"}:
        return []
    stated = re.fullmatch(r"decision: (?:(R-\w+-\d+)|\[page \d+\]\(([^)]+)\))", verdict)
    if stated is None:
        return [f"{verdict!r} is no verdict"]
    page = stated[2] and (root / PAGE).parent / stated[2]
    return [f"no page {stated[2]}"] if page and not page.is_file() else []


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
    return problems + [f"no test {test}" for test in named if not _is_test(root, test)]


def _is_test(root: Path, test: str) -> bool:
    path, _, function = test.partition("::")
    return (root / path).is_file() and (not function or function in tests_in(root, path))


def security_claims(root: Path) -> list[str]:
    """Claims of SECURITY.md that no test proves, and tests named there that do not exist."""
    problems, proven = [], False
    for line in (root / "SECURITY.md").read_text("utf-8").splitlines():
        if line == "| claim | proven by |":
            proven = True
        elif not line.startswith("|"):
            proven = False
        elif proven and not line.startswith("|--"):
            claim, tests = line.strip("| ").rsplit(" | ", 1)
            named = re.findall(r"`([^`]+)`", tests)
            problems += [] if named else [f"{claim}: names no test"]
            problems += [f"{claim}: no test {test}" for test in named if not _is_test(root, test)]
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
