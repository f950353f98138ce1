"""Indentation of added lines: from the arguments' depths to the file's, as the matched lines show it."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from handtools.text.editing.edit_outcome import UnclearEdit
from handtools.text.editing.normalized_lines import is_blank
from handtools.text.lines import TAB_STOP, indent_columns, leading_blanks

TAB = "\t"
_UNITS = (TAB, "  ", "   ", "    ", "        ")
# Steps are counted near the match: files that were pasted together have more than one width.
INDENT_SAMPLE_LINES = 60
_WIDTHS = (2, 3, 4, 8)
_WIDTH_RATIOS = (0.25, 0.5, 2, 4)


class IndentationMap:
    """Maps an indentation of the arguments to one of the file, or says that it can't."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        argument_lines: list[str],
        file_lines: list[str],
        above: Iterable[str] = (),
    ) -> None:
        """`above` are the file's lines over the match, from the last one up."""
        pairs = list(pairs)
        self._above = above
        self._known = _function(pairs)
        # What stands at the margin like a first line that lost its indentation may have lost it too.
        self._loses_margin = bool(pairs) and pairs[0][0] == "" != pairs[0][1] and "" not in self._known
        self._step = indent_step(argument_lines)
        self._shown_step = min(indent_steps(argument_lines), key=len, default=None)
        self._steps = indent_steps(file_lines)
        self._unit = _commonest(self._steps, file_lines)

    def of(self, wanted: str) -> str:
        """The file's indentation for `wanted`."""
        if wanted in self._known:
            return self._known[wanted]
        if not wanted and self._loses_margin:
            raise UnclearEdit(
                "indent_conflict", "New lines at the margin may be as deep as the first old line."
            )
        if all(mine == theirs for mine, theirs in self._known.items()):
            return wanted
        found = self._from_one(wanted) if len(self._known) == 1 else self._from_many(wanted)
        if found is None:
            raise UnclearEdit(
                "indent_conflict", "The indentation of the new lines can't be told from the old ones."
            )
        return found

    def _from_many(self, wanted: str) -> str | None:
        """Two depths or more show both where to start and how wide a step is."""
        moved = _shifted(self._known, wanted)
        if moved is not None:
            return moved
        scaled = {self._scaled(wanted, unit) for unit in _UNITS} - {None}
        found = scaled.pop() if len(scaled) == 1 else _by_columns(self._known, wanted)
        return found if found is None or self._keeps_width(found) else None

    def _keeps_width(self, found: str) -> bool:
        """Whether the file's width of a step, if it holds for the known lines, holds here as well."""
        width = len(self._unit or " ")
        return not len(found) % width or any(len(theirs) % width for theirs in self._known.values())

    def _from_one(self, wanted: str) -> str | None:
        """One depth shows where to start; how wide a step is must follow from both texts, without a doubt."""
        ((mine, theirs),) = self._known.items()
        moved = _shifted(self._known, wanted)
        if moved is None:
            scaled = self._scaled(wanted, self._unit)
            return scaled if scaled is not None else _by_columns(self._known, wanted)
        if not mine or not theirs:
            # No width to compare: the model's own steps count, if they are of the file's kind.
            return moved if self._unit is None or not set(wanted) - set(mine) - set(self._unit) else None
        # The block is seen to nest by the width that the arguments and the file have: then only the start differs.
        same_width = self._shown_step == self._unit == _step_into(theirs, self._above)
        return moved if same_width or not self._could_be_wider(mine, theirs, wanted, moved) else None

    def _could_be_wider(self, mine: str, theirs: str, wanted: str, moved: str) -> bool:
        """Whether the model may have counted in steps of another width, which would mean another depth."""
        unit = len(self._unit or " ")
        width = len(wanted) * len(theirs) / len(mine)
        if len(mine) % 2 or len(theirs) / len(mine) not in _WIDTH_RATIOS:
            usual = unit * len(mine) / len(theirs) in _WIDTHS
            return width % unit == 0 and (usual or len(theirs) % unit == 0 != len(moved) % unit)
        # Only a width that the file keeps, here and in the line as moved, and keeps alone, speaks against another.
        kept = len(theirs) % unit == len(moved) % unit == 0
        known = " " * round(abs(width - len(theirs))) in self._steps
        return known or not (kept and width % unit)

    def _scaled(self, wanted: str, unit: str | None) -> str | None:
        """Count steps: one of the arguments is one of the file."""
        return _recounted(self._known, wanted, self._step, unit) if self._step and unit else None


def _function(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """One file indentation for each of the arguments', deeper staying deeper."""
    # A model that starts copying at the first letter loses the indentation of that line only.
    if len(pairs) > 1 and pairs[0][0] == "" != pairs[0][1] and not _agrees(pairs[0], pairs[1:]):
        pairs = pairs[1:]
    known: dict[str, str] = {}
    for mine, theirs in pairs:
        if known.setdefault(mine, theirs) != theirs:
            raise UnclearEdit("indent_conflict", "These lines stand at other relative depths in the file.")
    ordered = sorted(known, key=indent_columns)
    if not _is_shift(known) and any(
        _order(a, b) != _order(known[a], known[b]) for a, b in pairwise(ordered)
    ):
        raise UnclearEdit("indent_conflict", "These lines stand at other relative depths in the file.")
    return known


def _order(one: str, other: str) -> int:
    """Which of two indentations is deeper."""
    return (indent_columns(one) > indent_columns(other)) - (indent_columns(one) < indent_columns(other))


def _agrees(pair: tuple[str, str], others: list[tuple[str, str]]) -> bool:
    """Whether the first line's pair fits the rest as a plain shift."""
    mine, theirs = pair
    return all(
        other_mine.startswith(mine) and other_theirs == theirs + other_mine[len(mine) :]
        for other_mine, other_theirs in others
    ) or any(other == pair for other in others)


def _shifted(known: dict[str, str], wanted: str) -> str | None:
    """Every known pair is one prefix for another before the same rest."""
    if not _is_shift(known):
        return None
    mine = min(known, key=len)
    theirs = known[mine]
    if wanted.startswith(mine):
        rest = wanted[len(mine) :]
        # Tabs behind blanks, or the reverse, show that the two sides count in different signs.
        return theirs + rest if not theirs or not set(rest) - set(theirs) else None
    if not mine.startswith(wanted):
        return None
    less = mine[len(wanted) :]
    return theirs[: len(theirs) - len(less)] if theirs.endswith(less) else None


def _is_shift(known: dict[str, str]) -> bool:
    """Whether one prefix for another explains every pair."""
    mine = min(known, key=len)
    return all(a.startswith(mine) and b == known[mine] + a[len(mine) :] for a, b in known.items())


def _recounted(known: dict[str, str], wanted: str, step: str, unit: str) -> str | None:
    """Every known pair is the same number of steps; what stood at the margin may be deeper in the file."""
    # One blank is a slip, not a step.
    if step in (unit, " "):
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
    if more and (step[0] == unit[0] or any(known)):
        return None
    return unit * (depth + more) if depth + more >= 0 else None


def _by_columns(known: dict[str, str], wanted: str) -> str | None:
    """Tabs of eight columns filled up with blanks, on one side or both."""
    if any(indent_columns(theirs) != indent_columns(mine) for mine, theirs in known.items()):
        return None
    width = indent_columns(wanted)
    mixed = "\t" * (width // TAB_STOP) + " " * (width % TAB_STOP)
    filled = [_rendered(theirs) for theirs in known.values()]
    if all(
        known_theirs == canon for known_theirs, canon in zip(known.values(), filled, strict=True)
    ) and any("\t" in theirs for theirs in known.values()):
        return mixed
    if all("\t" not in theirs for theirs in known.values()) and any(known.values()):
        return " " * width
    return None


def _rendered(text: str) -> str:
    width = indent_columns(text)
    return "\t" * (width // TAB_STOP) + " " * (width % TAB_STOP)


def _step_into(depth: str, above: Iterable[str]) -> str | None:
    """How much deeper this is than the line that opens its block; None where none does."""
    depths = (leading_blanks(line) for line in above if not is_blank(line))
    opener = next((outer for outer in depths if indent_columns(outer) < indent_columns(depth)), None)
    return None if opener is None or not depth.startswith(opener) else depth[len(opener) :]


def _count(text: str, unit: str) -> int | None:
    count = len(text) // len(unit)
    return count if unit * count == text else None


def indent_step(lines: list[str]) -> str | None:
    """What one level deeper adds, by the most frequent increase from one filled line to the next."""
    return _commonest(indent_steps(lines), lines)


def _commonest(found: Counter[str], lines: list[str]) -> str | None:
    """The most frequent of the steps, else the least depth there is."""
    if found:
        step = min(found, key=lambda step: (-found[step], len(step)))
    else:
        depths = (leading_blanks(line) for line in lines if not is_blank(line))
        step = min(filter(None, depths), key=len, default="")
    return "\t" if step and not step.strip("\t") else step or None


def indent_steps(lines: list[str]) -> Counter[str]:
    """By what filled lines next to each other differ in depth, and how often."""
    depths = [leading_blanks(line) for line in lines if not is_blank(line)]
    found: Counter[str] = Counter()
    for shallow, deep in pairwise(depths):
        for one, other in ((shallow, deep), (deep, shallow)):
            if len(other) > len(one) and other.startswith(one):
                found[other[len(one) :]] += 1
    return found
