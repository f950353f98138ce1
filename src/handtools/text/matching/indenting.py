"""Indenting: the depth that an added line gets in the file, from the depths that the match shows."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from handtools.text.matching.folding import indent, is_blank
from handtools.text.matching.outcomes import Unclear

_UNITS = ("\t", "  ", "   ", "    ", "        ")
_TAB_STOP = 8


class Indents:
    """Maps an indentation of the arguments to one of the file, or says that it can't."""

    def __init__(self, pairs: Iterable[tuple[str, str]], argument_lines: list[str], file_lines: list[str]) -> None:
        self._known = _function(list(pairs))
        self._argument_lines = argument_lines
        self._file_lines = file_lines

    def of(self, wanted: str) -> str:
        """The file's indentation for `wanted`."""
        if wanted in self._known:
            return self._known[wanted]
        moved = _shifted(self._known, wanted)
        scaled = self._scaled(wanted)
        if moved is not None and scaled is not None and moved != scaled:
            return self._choice(moved, scaled)
        found = moved if moved is not None else scaled if scaled is not None else _by_columns(self._known, wanted)
        if found is None:
            raise Unclear("indent_conflict", "The indentation of the new lines can't be told from the old ones.")
        return found

    def _scaled(self, wanted: str) -> str | None:
        """Count steps: one of the arguments is one of the file."""
        step = _step(self._argument_lines)
        if step is None:
            return None
        results = {
            result
            for unit in ([_step(self._file_lines)] if len(self._known) == 1 else _UNITS)
            if unit and (result := _recounted(self._known, wanted, step, unit)) is not None
        }
        return results.pop() if len(results) == 1 else None

    def _choice(self, moved: str, scaled: str) -> str:
        """Both readings explain what is known: trust the one whose step the file itself uses."""
        mine, theirs = _step(self._argument_lines), _step(self._file_lines)
        if mine == theirs:
            return moved
        if {mine, theirs} == {"  ", "    "} and all(deep for deep in self._known):
            return scaled
        raise Unclear("indent_conflict", "The indentation of the new lines can be read in two ways.")


def _function(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """One file indentation for each of the arguments', deeper staying deeper."""
    # A model that starts copying at the first letter loses the indentation of that line only.
    if len(pairs) > 1 and pairs[0][0] == "" != pairs[0][1] and not _agrees(pairs[0], pairs[1:]):
        pairs = pairs[1:]
    known: dict[str, str] = {}
    for mine, theirs in pairs:
        if known.setdefault(mine, theirs) != theirs:
            raise Unclear("indent_conflict", "These lines stand at other relative depths in the file.")
    ordered = sorted(known, key=_columns)
    if any(_columns(known[a]) >= _columns(known[b]) for a, b in pairwise(ordered) if _columns(a) < _columns(b)):
        raise Unclear("indent_conflict", "These lines stand at other relative depths in the file.")
    return known


def _agrees(pair: tuple[str, str], others: list[tuple[str, str]]) -> bool:
    """Whether the first line's pair fits the rest as a plain shift."""
    mine, theirs = pair
    return all(
        other_mine.startswith(mine) and other_theirs == theirs + other_mine[len(mine) :]
        for other_mine, other_theirs in others
    ) or any(other == pair for other in others)


def _shifted(known: dict[str, str], wanted: str) -> str | None:
    """Every known pair is one prefix for another before the same rest."""
    mine = min(known, key=len)
    theirs = known[mine]
    if any(not a.startswith(mine) or b != theirs + a[len(mine) :] for a, b in known.items()):
        return None
    if wanted.startswith(mine):
        return theirs + wanted[len(mine) :]
    if not mine.startswith(wanted):
        return None
    less = mine[len(wanted) :]
    return theirs[: len(theirs) - len(less)] if theirs.endswith(less) else None


def _recounted(known: dict[str, str], wanted: str, step: str, unit: str) -> str | None:
    """Every known pair is a number of steps, the same or a fixed number more in the file."""
    if step == unit:
        return None
    extra: set[int] = set()
    for mine, theirs in known.items():
        a, b = _count(mine, step), _count(theirs, unit)
        if a is None or b is None:
            return None
        extra.add(b - a)
    depth = _count(wanted, step)
    if len(extra) != 1 or depth is None:
        return None
    more = extra.pop()
    if more and step[0] == unit[0]:
        return None
    return unit * (depth + more) if depth + more >= 0 else None


def _by_columns(known: dict[str, str], wanted: str) -> str | None:
    """Tabs of eight columns filled up with blanks, on one side or both, at a fixed distance."""
    distance = {_columns(theirs) - _columns(mine) for mine, theirs in known.items()}
    if len(distance) != 1:
        return None
    width = _columns(wanted) + distance.pop()
    mixed = "\t" * (width // _TAB_STOP) + " " * (width % _TAB_STOP)
    filled = [_rendered(theirs) for theirs in known.values()]
    if width < 0:
        return None
    if all(known_theirs == canon for known_theirs, canon in zip(known.values(), filled, strict=True)) and any(
        "\t" in theirs for theirs in known.values()
    ):
        return mixed
    if all("\t" not in theirs for theirs in known.values()) and any(known.values()):
        return " " * width
    return None


def _rendered(text: str) -> str:
    width = _columns(text)
    return "\t" * (width // _TAB_STOP) + " " * (width % _TAB_STOP)


def _columns(text: str) -> int:
    return len(text.expandtabs(_TAB_STOP))


def _count(text: str, unit: str) -> int | None:
    count = len(text) // len(unit)
    return count if unit * count == text else None


def _step(lines: list[str]) -> str | None:
    """What one level deeper adds, by the most frequent increase from one filled line to the next."""
    depths = [indent(line) for line in lines if not is_blank(line)]
    steps: Counter[str] = Counter()
    for shallow, deep in pairwise(depths):
        for one, other in ((shallow, deep), (deep, shallow)):
            if len(other) > len(one) and other.startswith(one):
                steps[other[len(one) :]] += 1
    if not steps:
        return min((depth for depth in depths if depth), key=len, default=None)
    return min(steps, key=lambda step: (-steps[step], len(step)))
