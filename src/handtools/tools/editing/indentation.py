"""Indentation of lines that an edit adds: mapped from depths in the arguments to depths in the file.

The matched lines show which depth in the arguments corresponds to which depth in the file.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from handtools.text.lines import TAB_STOP, indentation_of_line, indentation_width
from handtools.tools.editing.edit_outcome import UnclearEdit
from handtools.tools.editing.normalized_lines import is_blank

TAB = "\t"
_UNITS = (TAB, "  ", "   ", "    ", "        ")
# Indentation steps are counted only near the match, since a file made from several others may use more than
# one indent width.
INDENT_SAMPLE_LINES = 60
_WIDTHS = (2, 3, 4, 8)
_WIDTH_RATIOS = (0.25, 0.5, 2, 4)


class IndentationMap:
    """Maps an indentation used in an edit's arguments to the indentation to write into the file.

    Raises `UnclearEdit` if that is ambiguous.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        argument_lines: list[str],
        file_lines: list[str],
        above: Iterable[str] = (),
    ) -> None:
        """Learn the mapping from `pairs` of indentations, each one of the arguments and one of the file.

        `above` yields the file's lines above the match, nearest first.
        """
        pairs = list(pairs)
        self._above = above
        self._known = _mapping_from_pairs(pairs)
        # If the first line lost its indentation, other lines at the margin may have lost theirs too.
        self._loses_margin = pairs[0][0] == "" != pairs[0][1] and "" not in self._known
        self._step = indent_step(argument_lines)
        self._shown_step = min(indent_step_frequencies(argument_lines), key=len, default=None)
        self._steps = indent_step_frequencies(file_lines)
        self._unit = _most_frequent_step(self._steps, file_lines)

    def file_indentation(self, wanted: str) -> str:
        """Return the file's indentation for an indentation of the arguments.

        Raises `UnclearEdit` if it can't be determined.
        """
        if wanted in self._known:
            return self._known[wanted]
        if not wanted and self._loses_margin:
            raise UnclearEdit(
                "indent_conflict", "New lines at the margin may belong at the depth of the first old line."
            )
        if all(mine == theirs for mine, theirs in self._known.items()):
            return wanted
        found = (
            self._map_from_one_pair(wanted)
            if len(self._known) == 1
            else self._map_from_several_pairs(wanted)
        )
        if found is None:
            raise UnclearEdit(
                "indent_conflict", "The indentation of the new lines can't be derived from the old ones."
            )
        return found

    def _map_from_several_pairs(self, wanted: str) -> str | None:
        """Map an indentation from two or more known pairs, which show where levels start and their width."""
        moved = _prefix_mapped_indentation(self._known, wanted)
        if moved is not None:
            return moved
        scaled = {self._indentation_by_levels(wanted, unit) for unit in _UNITS} - {None}
        found = scaled.pop() if len(scaled) == 1 else _column_mapped_indentation(self._known, wanted)
        return found if found is None or self._is_multiple_of_indent_width(found) else None

    def _is_multiple_of_indent_width(self, found: str) -> bool:
        """Whether an indentation is a multiple of the file's indent width.

        Also true if some known line breaks that rule.
        """
        width = len(self._unit or " ")
        return not len(found) % width or any(len(theirs) % width for theirs in self._known.values())

    def _map_from_one_pair(self, wanted: str) -> str | None:
        """Map an indentation from one known pair.

        Returns None if the two texts don't determine the width of a level.
        """
        ((mine, theirs),) = self._known.items()
        moved = _prefix_mapped_indentation(self._known, wanted)
        if moved is None:
            scaled = self._indentation_by_levels(wanted, self._unit)
            return scaled if scaled is not None else _column_mapped_indentation(self._known, wanted)
        if not mine or not theirs:
            # No width to compare: use the model's own steps if they use the same characters as the file's.
            return moved if self._unit is None or not set(wanted) - set(mine) - set(self._unit) else None
        # If the block is nested with the same width in the arguments and the file, only its start differs.
        same_width = self._shown_step == self._unit == _indentation_added_to_opener(theirs, self._above)
        return moved if same_width or not self._may_have_other_width(mine, theirs, wanted, moved) else None

    def _may_have_other_width(self, mine: str, theirs: str, wanted: str, moved: str) -> bool:
        """Whether the model may have used another width per level, which would mean another depth."""
        unit = len(self._unit or " ")
        width = len(wanted) * len(theirs) / len(mine)
        if len(mine) % 2 or len(theirs) / len(mine) not in _WIDTH_RATIOS:
            usual = unit * len(mine) / len(theirs) in _WIDTHS
            return width % unit == 0 and (usual or len(theirs) % unit == 0 != len(moved) % unit)
        # Rule out another width only if both lines are at multiples of the file's width, the other depth is
        # not, and no indentation step in the file leads to it.
        kept = len(theirs) % unit == len(moved) % unit == 0
        known = " " * round(abs(width - len(theirs))) in self._steps
        return known or not (kept and width % unit)

    def _indentation_by_levels(self, wanted: str, unit: str | None) -> str | None:
        """Map an indentation by counting levels: one level in the arguments is one level in the file."""
        return (
            _level_mapped_indentation(self._known, wanted, self._step, unit)
            if self._step and unit
            else None
        )


def _mapping_from_pairs(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Build the mapping from argument indentations to file indentations.

    Raises `UnclearEdit` if it is ambiguous or would change which lines are deeper than others.
    """
    # A model that starts copying at the first letter loses only the indentation of the first line.
    if pairs[0][0] == "" != pairs[0][1] and not _is_consistent_with_others(pairs[0], pairs[1:]):
        pairs = pairs[1:]
    known: dict[str, str] = {}
    for mine, theirs in pairs:
        if known.setdefault(mine, theirs) != theirs:
            raise UnclearEdit("indent_conflict", "These lines have other relative depths in the file.")
    ordered = sorted(known, key=indentation_width)
    if not _is_prefix_replacement(known) and any(
        _compare_widths(a, b) != _compare_widths(known[a], known[b]) for a, b in pairwise(ordered)
    ):
        raise UnclearEdit("indent_conflict", "These lines have other relative depths in the file.")
    return known


def _compare_widths(one: str, other: str) -> int:
    """Compare two indentations by width: 1 if the first is deeper, -1 if the second is, otherwise 0."""
    return (indentation_width(one) > indentation_width(other)) - (
        indentation_width(one) < indentation_width(other)
    )


def _is_consistent_with_others(pair: tuple[str, str], others: list[tuple[str, str]]) -> bool:
    """Whether the first line's pair of indentations fits the other pairs as a plain shift."""
    mine, theirs = pair
    return all(
        other_mine.startswith(mine) and other_theirs == theirs + other_mine[len(mine) :]
        for other_mine, other_theirs in others
    ) or any(other == pair for other in others)


def _prefix_mapped_indentation(known: dict[str, str], wanted: str) -> str | None:
    """Map an indentation by replacing one prefix with another.

    Returns None if that does not explain all known pairs.
    """
    if not _is_prefix_replacement(known):
        return None
    mine = min(known, key=len)
    theirs = known[mine]
    if wanted.startswith(mine):
        rest = wanted[len(mine) :]
        # Tabs after spaces, or the reverse, show that the two sides indent with different characters.
        return theirs + rest if not theirs or not set(rest) - set(theirs) else None
    if not mine.startswith(wanted):
        return None
    less = mine[len(wanted) :]
    return theirs[: len(theirs) - len(less)] if theirs.endswith(less) else None


def _is_prefix_replacement(known: dict[str, str]) -> bool:
    """Whether replacing one prefix with another explains all known pairs of indentations."""
    mine = min(known, key=len)
    return all(a.startswith(mine) and b == known[mine] + a[len(mine) :] for a, b in known.items())


def _level_mapped_indentation(known: dict[str, str], wanted: str, step: str, unit: str) -> str | None:
    """Map an indentation by its number of levels; None unless all known pairs differ by the same number."""
    # A single space is a slip, not an indentation step.
    if step in (unit, " "):
        return None
    extra: set[int] = set()
    for mine, theirs in known.items():
        a, b = _count_units(mine, step), _count_units(theirs, unit)
        if a is None or b is None:
            return None
        extra.add(b - a)
    depth = _count_units(wanted, step)
    if len(extra) != 1 or depth is None:
        return None
    more = extra.pop()
    if more and (step[0] == unit[0] or any(known)):
        return None
    return unit * (depth + more) if depth + more >= 0 else None


def _column_mapped_indentation(known: dict[str, str], wanted: str) -> str | None:
    """Map an indentation by its width, counting a tab as up to eight columns.

    Returns None if a known pair differs in width, or if it is unclear whether to use tabs.
    """
    if any(indentation_width(theirs) != indentation_width(mine) for mine, theirs in known.items()):
        return None
    has_tabs = any("\t" in theirs for theirs in known.values())
    if has_tabs and all(theirs == _with_spaces_as_tabs(theirs) for theirs in known.values()):
        return _with_spaces_as_tabs(wanted)
    return " " * indentation_width(wanted) if not has_tabs and any(known.values()) else None


def _with_spaces_as_tabs(indent: str) -> str:
    width = indentation_width(indent)
    return "\t" * (width // TAB_STOP) + " " * (width % TAB_STOP)


def _indentation_added_to_opener(depth: str, above: Iterable[str]) -> str | None:
    """Return the indentation that a line adds to the line that opens its block.

    Returns None if there is no such line.
    """
    depths = (indentation_of_line(line) for line in above if not is_blank(line))
    opener = next((outer for outer in depths if indentation_width(outer) < indentation_width(depth)), None)
    return None if opener is None or not depth.startswith(opener) else depth[len(opener) :]


def _count_units(text: str, unit: str) -> int | None:
    count = len(text) // len(unit)
    return count if unit * count == text else None


def indent_step(lines: list[str]) -> str | None:
    """Return the most frequent indentation step of these lines; None if they are not indented."""
    return _most_frequent_step(indent_step_frequencies(lines), lines)


def _most_frequent_step(found: Counter[str], lines: list[str]) -> str | None:
    """Return the most frequent step in `found`; if it is empty, the smallest indentation of any line.

    Returns None if no line is indented.
    """
    if found:
        step = min(found, key=lambda step: (-found[step], len(step)))
    else:
        depths = (indentation_of_line(line) for line in lines if not is_blank(line))
        step = min(filter(None, depths), key=len, default="")
    return "\t" if step and not step.strip("\t") else step or None


def indent_step_frequencies(lines: list[str]) -> Counter[str]:
    """Count the indentation steps between neighbouring non-blank lines, by the text that they add."""
    depths = [indentation_of_line(line) for line in lines if not is_blank(line)]
    found: Counter[str] = Counter()
    for shallow, deep in pairwise(depths):
        for one, other in ((shallow, deep), (deep, shallow)):
            if len(other) > len(one) and other.startswith(one):
                found[other[len(one) :]] += 1
    return found
