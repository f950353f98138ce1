"""The licence of every package in the lock, held against an allow list: `python -m tests.docs.licences` writes the table.

The licences are those that the installed packages state of themselves, so it runs in the development environment.
"""

# ruff: noqa: E501 - the lines of a page

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements/dev.txt"
PAGE = ROOT / "docs/explanation/dependencies.md"
BEGIN = "<!-- Made by `just docs`: change `tests/docs/licences.py`, not this table. -->"
END = "<!-- The table ends here. -->"
DEVELOPMENT = "development"
PERMISSIVE = frozenset(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause ISC MIT MIT-0 MIT-CMU PSF-2.0 Unlicense Zlib".split()  # noqa: SIM905
)
FOR_USERS = PERMISSIVE | {"MPL-2.0"}
"""MPL binds those who change its files; nobody of us does."""
FOR_DEVELOPMENT = FOR_USERS | {"LGPL-3.0-only"}
"""Also what is in no wheel of ours and in nobody's installation."""
SAID_OTHERWISE = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""What packages call it, and its name in the list of SPDX."""
SAID_BY_FILE = {"jinja2": "BSD-3-Clause", "nodeenv": "BSD-3-Clause"}
"""They say `BSD` only; which one is in the licence file that they bring."""


@dataclass(frozen=True, slots=True)
class Licensed:
    """One package of the lock; without a licence where another system needs it and this one has it not."""

    name: str
    version: str
    licence: str | None
    comes_with: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether it may be used where it is used: of several that one may choose from, one is enough."""
        known = FOR_DEVELOPMENT if self.comes_with == (DEVELOPMENT,) else FOR_USERS
        return self.licence is None or is_allowed(self.licence, known)


def is_allowed(licence: str, known: frozenset[str]) -> bool:
    """An expression of SPDX with `OR` and `AND`, without brackets."""
    return any(set(choice.split(" AND ")) <= known for choice in licence.split(" OR "))


def licence_of(package: Distribution) -> str:
    """What it says of itself, in the words of SPDX where we know them."""
    stated = package.metadata
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in stated.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    said = [stated.get("License-Expression"), stated.get("License"), *reversed(classifiers)]
    raw = next((each for each in said if each), "none stated")
    return SAID_BY_FILE.get(canonicalize_name(package.name), SAID_OTHERWISE.get(raw, raw))


def locked() -> list[Licensed]:
    """Every package of the lock."""
    brought = comes_with()
    found = []
    for name, version in re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;]+)", LOCK.read_text("utf-8"), re.MULTILINE
    ):
        try:
            licence = licence_of(distribution(name))
            parts = tuple(sorted(brought.get(name, {DEVELOPMENT})))
        except PackageNotFoundError:
            licence, parts = None, ("another system",)
        found.append(Licensed(name, version, licence, parts))
    return found


def comes_with() -> dict[str, set[str]]:
    """By package: which of our extras bring it, `slim` for what everybody has."""
    ours = distribution("handtools-slim")
    brought: dict[str, set[str]] = {}
    for extra in ("", *(ours.metadata.get_all("Provides-Extra") or ())):
        for name in _needed("handtools-slim", extra):
            brought.setdefault(name, set()).add(extra or "slim")
    for parts in brought.values():
        if "slim" in parts:
            parts.intersection_update({"slim"})
    return brought


def _needed(package: str, extra: str) -> set[str]:
    found: set[str] = set()
    waiting = [(package, extra)]
    while waiting:
        name, part = waiting.pop()
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        for need in map(Requirement, lines):
            plain = canonicalize_name(need.name)
            wanted = need.marker is None or need.marker.evaluate({"extra": part})
            # An extra's own lines only, or all of slim would come with each of them.
            own = name != package or not extra or "extra" in str(need.marker)
            if wanted and own and plain not in found:
                found.add(plain)
                waiting += [(plain, each) for each in ("", *need.extras)]
    return found


def table() -> str:
    """The rows of the page, users' packages first."""
    lines = [BEGIN, "", "| package | version | licence | comes with |", "|---|---|---|---|"]
    for each in sorted(locked(), key=lambda each: (each.comes_with == (DEVELOPMENT,), each.name)):
        licence = each.licence or "not read"
        lines.append(f"| `{each.name}` | {each.version} | {licence} | {', '.join(each.comes_with)} |")
    return "\n".join([*lines, "", END])


def with_table(page: str) -> str:
    """The page with the table of today."""
    head, _, rest = page.partition(BEGIN)
    return head + table() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
