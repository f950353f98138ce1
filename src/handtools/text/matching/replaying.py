"""Replaying: the model's change from old to new, made on the file's own lines."""

from collections import Counter

from handtools.text import lines
from handtools.text.matching.folding import BLANKS, Loss, indent, is_blank
from handtools.text.matching.indenting import NEAR_LINES, Indents
from handtools.text.matching.outcomes import Unclear
from handtools.text.matching.pages import Page
from handtools.text.matching.scripting import Op, script
from handtools.text.matching.tiers import Match
from handtools.text.matching.weaving import weave
from handtools.text.merging import slides


def replay(page: Page, match: Match, old: list[str], new: list[str]) -> str:
    """The window's new text: what was kept keeps the file's bytes, the rest comes from `new`."""
    return _Replay(page, match, old, new).text()


class _Replay:
    """One change on its way through the file: where it reads, and what it has written."""

    def __init__(self, page: Page, match: Match, old: list[str], new: list[str]) -> None:
        self.page = page
        self.match = match
        self.old = old
        self.new = new
        self.ops = script(old, new)
        counts = Counter(old)
        self.moved = {line for line, count in Counter(new).items() if count <= counts[line]}
        # Depths are compared even when none is needed: the same lines nested otherwise are other code.
        self.indents = self._depths() if match.loss >= Loss.INDENTATION else None
        self.at = match.first
        self.rows: list[tuple[str, str]] = []
        self.freed: list[str] = []

    def text(self) -> str:
        """All lines of the window; a file without a final line end stays without."""
        steps = {"keep": self._keep, "change": self._change, "drop": self._drop, "add": self._add}
        for number, op in enumerate(self.ops):
            if op.kind in ("keep", "change"):
                self.freed.clear()
            steps[op.kind](number, op)
        self._copy_to(self.match.last)
        if self.match.loss > Loss.NOTHING or None in self.match.places:
            self._check_slides()
            self._check_moves()
        ends = [end for _, end in self.rows]
        rows = self.page.rows
        if ends and self.at == len(rows) and not lines.ending(rows[-1]):
            ends = [end or self.page.ending for end in ends[:-1]] + [""]
        return "".join(text + end for (text, _), end in zip(self.rows, ends, strict=True))

    def _keep(self, _: int, op: Op) -> None:
        place = self.match.places[op.old]
        if place is not None:
            self._copy_to(place + 1)

    def _change(self, number: int, op: Op) -> None:
        place = self.match.places[op.old]
        if place is None:
            raise Unclear("unclear", "The edit changes a blank line that the file does not have.")
        self._pass_blanks(number, place)
        mine, filed, wanted = self.old[op.old], self.page.bare[place], self.new[op.new]
        depth = indent(filed) if indent(wanted) == indent(mine) else self._depth(wanted)
        text = depth + weave(*(line[len(indent(line)) :] for line in (mine, filed, wanted)))
        self.rows.append((text, lines.ending(self.page.rows[place])))
        self.at = place + 1

    def _drop(self, number: int, op: Op) -> None:
        place = self.match.places[op.old]
        if place is not None:
            self._pass_blanks(number, place)
            self.freed.append(lines.ending(self.page.rows[place]))
            self.at = place + 1
        elif any(op.kind == "keep" and is_blank(self.old[op.old]) for op in self._beside(number)):
            # Of two blank lines, one of which the file has not, it may be either that goes.
            raise Unclear("unclear", "old_string has a blank line here that the file has not.")

    def _beside(self, number: int) -> list[Op]:
        return self.ops[max(0, number - 1) : number] + self.ops[number + 1 : number + 2]

    def _add(self, number: int, op: Op) -> None:
        line = self.new[op.new]
        text = self._added(line)
        following = self._following(number)
        if following is not None and following > self.at and any(op.old >= 0 for op in self.ops[:number]):
            self._choose_side(number, text, following)
        self._check_phantoms(number, line)
        self.rows.append((text, self._near_end()))

    def _added(self, line: str) -> str:
        """The line as the file would have it: one that was only moved as it stands there."""
        if line in self.moved:
            filed = {self._filed(index) for index, text in enumerate(self.old) if text == line}
            if len(filed) != 1:
                raise Unclear("unclear", "Two lines are the same in old_string but not in the file.")
            return filed.pop() or line
        return line if is_blank(line) else self._depth(line) + line[len(indent(line)) :]

    def _depth(self, line: str) -> str:
        return self.indents.of(indent(line)) if self.indents else indent(line)

    def _depths(self) -> Indents:
        if any(
            self.page.bare[place].lstrip() != self.page.bare[place].lstrip(BLANKS)
            for place in self._places()
        ):
            raise Unclear("indent_conflict", "The file indents with signs that are no plain blanks here.")
        pairs = [
            (indent(line), indent(self.page.bare[place]))
            for line, place in zip(self.old, self.match.places, strict=True)
            if place is not None and not is_blank(line)
        ]
        above = self.page.bare[max(0, self.match.first - NEAR_LINES) : self.match.first]
        near = [*above, *self.page.bare[self.match.first : self.match.last + NEAR_LINES]]
        return Indents(pairs, [*self.old, *self.new], near, above[::-1])

    def _places(self) -> list[int]:
        """The file lines of the old lines that are not kept as they are; of all, where lines are added."""
        if not any(op.kind == "add" for op in self.ops):
            return []
        return [place for place in self.match.places if place is not None]

    def _copy_to(self, row: int) -> None:
        for line in self.page.rows[self.at : row]:
            bare = lines.bare(line)
            self.rows.append((bare, line[len(bare) :]))
        self.at = max(self.at, row)

    def _near_end(self) -> str:
        """The end of the line that this one replaces, else of the one above, else below, else the usual one."""
        if self.freed and self.freed[0]:
            return self.freed.pop(0)
        if self.rows and self.rows[-1][1]:
            return self.rows[-1][1]
        near = self.page.rows[max(0, self.at - 1) : self.at + 2]
        return next(filter(None, map(lines.ending, near)), self.page.ending)

    def _following(self, number: int) -> int | None:
        """The file line of the next old line that the file has."""
        places = (self.match.places[op.old] for op in self.ops[number:] if op.old >= 0)
        return next((place for place in places if place is not None), None)

    def _pass_blanks(self, number: int, place: int) -> None:
        """Blank lines the model did not see stay, except between two lines that both go."""
        before = next((op for op in reversed(self.ops[:number]) if op.old >= 0), None)
        if before is not None and before.kind == self.ops[number].kind == "drop":
            self.at = place
        self._copy_to(place)

    def _choose_side(self, number: int, text: str, following: int) -> None:
        """Blank lines the model did not see lie where it adds: its depth tells the side, or nothing does."""
        if self.ops[number - 1].kind == "add":
            return
        above, below = indent(self.page.bare[self.at - 1]), indent(self.page.bare[following])
        if (indent(text) == above) == (indent(text) == below):
            raise Unclear(
                "unclear", "The file has a blank line where the new lines go; old_string leaves it out."
            )
        if indent(text) == below:
            self._copy_to(following)

    def _check_phantoms(self, number: int, line: str) -> None:
        """A blank line added beside one that the file has not could be either of the two."""
        near = self.ops[max(0, number - 2) : number + 3]
        if is_blank(line) and any(op.old >= 0 and self.match.places[op.old] is None for op in near):
            raise Unclear("unclear", "old_string has a blank line here that the file has not.")

    def _check_slides(self) -> None:
        """Of two lines that are equal in old but not in the file, nobody can tell which one stays."""
        for start, end in _runs(self.ops, "drop"):
            first, last = self.ops[start].old, self.ops[end - 1].old + 1
            for outside, inside in slides(self.old, first, last):
                if self._filed(outside) != self._filed(inside):
                    raise Unclear("unclear", "Two lines are the same in old_string but not in the file.")
        for start, end in _runs(self.ops, "add"):
            first, last = self.ops[start].new, self.ops[end - 1].new + 1
            kept = {op.new: op.old for op in self.ops if op.kind == "keep"}
            for outside, inside in slides(self.new, first, last):
                if outside in kept and self._filed(kept[outside]) not in (
                    None,
                    self._added(self.new[inside]),
                ):
                    raise Unclear(
                        "unclear", "An added line is the same as one beside it, but not as in the file."
                    )

    def _check_moves(self) -> None:
        """Where lines change places, any of several equal ones may be the one that went there."""
        touched = [number for number, op in enumerate(self.ops) if op.kind != "keep"]
        dropped = {self.old[op.old] for op in self.ops if op.kind == "drop"}
        added = {self.new[op.new] for op in self.ops if op.kind == "add"}
        if not dropped & added:
            return
        forms: dict[str, set[str | None]] = {}
        for index, line in enumerate(self.old):
            forms.setdefault(line, set()).add(self._filed(index))
        passed = {self.old[op.old] for op in self.ops[touched[0] : touched[-1] + 1] if op.old >= 0}
        if any(len(forms[line]) > 1 for line in passed):
            raise Unclear("unclear", "Two lines are the same in old_string but not in the file.")

    def _filed(self, index: int) -> str | None:
        place = self.match.places[index]
        return None if place is None else self.page.bare[place]


def _runs(ops: list[Op], kind: str) -> list[tuple[int, int]]:
    """Where steps of one kind stand together, with nothing changed beside them."""
    runs: list[tuple[int, int]] = []
    for number, op in enumerate(ops):
        if op.kind == kind:
            if runs and runs[-1][1] == number:
                runs[-1] = (runs[-1][0], number + 1)
            else:
                runs.append((number, number + 1))
    return runs
