"""Replaying: the model's change from old to new, made on the file's own lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from handtools.text import lines
from handtools.text.diffing import opcodes
from handtools.text.matching.folding import BLANKS, Loss, indent, is_blank
from handtools.text.matching.indenting import NEAR_LINES, Indents
from handtools.text.matching.outcomes import Unclear
from handtools.text.matching.pages import Page
from handtools.text.matching.pairing import pair
from handtools.text.matching.tiers import Match
from handtools.text.matching.weaving import content, weave


@dataclass(frozen=True, slots=True)
class Op:
    """One step of the change: `old` and `new` are line indexes of the arguments."""

    kind: Literal["keep", "change", "drop", "add"]
    old: int = -1
    new: int = -1


@dataclass(slots=True)
class _Output:
    """The lines written so far: text and end of each; and how far the file was read."""

    page: Page
    at: int
    rows: list[tuple[str, str]] = field(default_factory=list)

    def copy_to(self, row: int) -> None:
        for index in range(self.at, row):
            line = self.page.rows[index]
            bare = lines.bare(line)
            self.rows.append((bare, line[len(bare) :]))
        self.at = max(self.at, row)

    def write(self, text: str, end: str | None = None) -> None:
        self.rows.append((text, self._near_end() if end is None else end))

    def _near_end(self) -> str:
        """The line end of the neighbour above, else below, else the usual one of the file."""
        if self.rows and self.rows[-1][1]:
            return self.rows[-1][1]
        for index in (self.at - 1, self.at, self.at + 1):
            if 0 <= index < len(self.page.rows) and (end := lines.ending(self.page.rows[index])):
                return end
        return self.page.ending

    def text(self) -> str:
        """All of it; a file without a final line end stays without."""
        ends = [end for _, end in self.rows]
        if self.at == len(self.page.rows) and self.page.rows and not lines.ending(self.page.rows[-1]) and ends:
            ends = [end or self.page.ending for end in ends[:-1]] + [""]
        return "".join(text + end for (text, _), end in zip(self.rows, ends, strict=True))


def replay(page: Page, match: Match, old: list[str], new: list[str]) -> str:
    """The window's new text: what was kept keeps the file's bytes, the rest comes from `new`."""
    ops = list(script(old, new))
    pairs = [
        (indent(old[index]), indent(page.bare[place]))
        for index, place in enumerate(match.places)
        if place is not None and not is_blank(old[index])
    ]
    # Depths are compared even when none is needed: the same lines nested otherwise are other code.
    indents = Indents(pairs, [*old, *new], _near(page, match)) if match.loss >= Loss.INDENTATION else None
    output = _Output(page, match.first)
    for number, op in enumerate(ops):
        place = match.places[op.old] if op.old >= 0 else None
        if op.kind == "add":
            _add(output, match, ops, number, old, new, indents)
        elif place is None:
            if op.kind == "change":
                raise Unclear("unclear", "The edit changes a blank line that the file does not have.")
        elif op.kind == "keep":
            output.copy_to(place + 1)
        else:
            _pass_blanks(output, ops, number, place)
            if op.kind == "change":
                filed = page.bare[place]
                depth = _depth(old[op.old], filed, new[op.new], indents)
                text = depth + weave(content(old[op.old]), content(filed), content(new[op.new]))
                output.write(text, lines.ending(page.rows[place]))
            output.at = place + 1
    output.copy_to(match.last)
    return output.text()


def _near(page: Page, match: Match) -> list[str]:
    """The lines whose steps show how wide an indentation is here."""
    return page.bare[max(0, match.first - NEAR_LINES) : match.last + NEAR_LINES]


def script(old: list[str], new: list[str]) -> Iterator[Op]:
    """The change as steps; within a replaced block, lines that are alike become changes."""
    at = 0
    shift = 0
    for edit in opcodes(old, new):
        yield from (Op("keep", index, index + shift) for index in range(at, edit.start_a))
        yield from _block(old, new, edit.start_a, edit.end_a, edit.start_b, edit.end_b)
        at, shift = edit.end_a, edit.end_b - edit.end_a
    yield from (Op("keep", index, index + shift) for index in range(at, len(old)))


def _block(old: list[str], new: list[str], first: int, last: int, start: int, end: int) -> Iterator[Op]:
    i, j = first, start
    for a, b in [*pair(old[first:last], new[start:end]), (last - first, end - start)]:
        yield from (Op("drop", index) for index in range(i, first + a))
        yield from (Op("add", new=index) for index in range(j, start + b))
        i, j = first + a, start + b
        if i < last and j < end:
            same = old[i].rstrip(BLANKS) == new[j].rstrip(BLANKS)
            yield Op("keep" if same else "change", i, j)
            i, j = i + 1, j + 1


def _depth(old: str, filed: str, new: str, indents: Indents | None) -> str:
    if indent(new) == indent(old):
        return indent(filed)
    return indents.of(indent(new)) if indents else indent(new)


def _pass_blanks(output: _Output, ops: list[Op], number: int, place: int) -> None:
    """Blank lines the model did not see stay, except between two lines that both go."""
    before = next((op for op in reversed(ops[:number]) if op.old >= 0), None)
    if before is not None and before.kind == "drop" and ops[number].kind == "drop":
        output.at = place
    output.copy_to(place)


def _add(
    output: _Output, match: Match, ops: list[Op], number: int, old: list[str], new: list[str], indents: Indents | None
) -> None:
    """Write an added line; where unseen blank lines lie at the very spot, only if its depth tells the side."""
    line = new[ops[number].new]
    depth = indent(line) if indents is None or is_blank(line) else indents.of(indent(line))
    text = depth + content(line)
    following = next((match.places[op.old] for op in ops[number:] if op.old >= 0 and match.places[op.old] is not None), None)
    if following is not None and following > output.at and not _started(ops, number):
        if not _below(output, following, text, ops, number, old, new):
            output.write(text)
            return
        output.copy_to(following)
    _check_phantoms(match, ops, number, line)
    output.write(text)


def _started(ops: list[Op], number: int) -> bool:
    """Whether this line continues an addition whose side is settled, or stands before the window."""
    return not any(op.old >= 0 for op in ops[:number])


def _below(
    output: _Output, following: int, text: str, ops: list[Op], number: int, old: list[str], new: list[str]
) -> bool:
    """Whether the addition goes below the unseen blank lines; refuse when nothing tells."""
    if number and ops[number - 1].kind == "add":
        return False
    page = output.page
    above, below = indent(page.bare[output.at - 1]), indent(page.bare[following])
    mine = indent(text)
    if (mine == above) == (mine == below):
        raise Unclear("unclear", "The file has a blank line where the new lines go; old_string leaves it out.")
    return mine == below


def _check_phantoms(match: Match, ops: list[Op], number: int, line: str) -> None:
    """A blank line added beside one that the file has not could be either of the two."""
    if not is_blank(line):
        return
    for other in ops[max(0, number - 2) : number + 3]:
        if other.old >= 0 and match.places[other.old] is None:
            raise Unclear("unclear", "old_string has a blank line here that the file has not.")
