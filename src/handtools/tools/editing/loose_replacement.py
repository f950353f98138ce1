"""Loose replacement: apply the change from old to new lines to the file's lines, which match only loosely.

The change becomes steps over lines (`edit_script`). A changed line keeps the file's spelling through a
three-way merge of its words (`merge_words`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from handtools.text import lines
from handtools.text.diffs.three_way_merge import shifts_of_equal_rows
from handtools.text.diffs.unified_diff import LineEdit, diff_line_edits
from handtools.text.lines import BLANKS, indentation_of_line
from handtools.tools.editing.edit_outcome import UnclearEdit
from handtools.tools.editing.indentation import INDENT_SAMPLE_LINES, IndentationMap
from handtools.tools.editing.normalized_lines import LineIndex, LineMatch, MatchLoss, is_blank

_ALIKE = 50.0
_MAX_CELLS = 2500
_MAX_COMPARED = 1000


@dataclass(frozen=True, slots=True)
class EditScriptStep:
    """One step of an edit script: `old` and `new` are line indexes in the arguments, -1 for no line."""

    kind: Literal["keep", "change", "drop", "add"]
    old: int = -1
    new: int = -1


def edit_script(old: list[str], new: list[str]) -> list[EditScriptStep]:
    """Return the steps that turn the old lines into the new ones.

    Similar lines of a replaced block become `change` steps.
    """
    steps: list[EditScriptStep] = []
    # A line that is in both texts but that the diff does not keep was moved, not changed.
    common = set(old) & set(new)
    at = shift = 0
    for edit in diff_line_edits(old, new):
        steps += [EditScriptStep("keep", index, index + shift) for index in range(at, edit.start_a)]
        steps += _steps_of_edit(old, new, edit, common)
        at, shift = edit.end_a, edit.end_b - edit.end_a
    return steps + [EditScriptStep("keep", index, index + shift) for index in range(at, len(old))]


def _steps_of_edit(
    old: list[str], new: list[str], edit: LineEdit, common: set[str]
) -> Iterator[EditScriptStep]:
    i, j = edit.start_a, edit.start_b
    found = _similar_line_pairs(old[i : edit.end_a], new[j : edit.end_b], common)
    for a, b in [*((i + a, j + b) for a, b in found), (edit.end_a, edit.end_b)]:
        yield from (EditScriptStep("drop", index) for index in range(i, a))
        yield from (EditScriptStep("add", new=index) for index in range(j, b))
        i, j = a, b
        if i < edit.end_a and j < edit.end_b:
            same = old[i].rstrip(BLANKS) == new[j].rstrip(BLANKS)
            yield EditScriptStep("keep" if same else "change", i, j)
            i, j = i + 1, j + 1


def _similar_line_pairs(old: list[str], new: list[str], common: set[str]) -> list[tuple[int, int]]:
    """Pair similar lines of two blocks, in order, with the greatest total similarity.

    Dissimilar lines stay unpaired.
    """
    if not old or not new:
        return []
    if len(old) * len(new) > _MAX_CELLS:
        return [(i, i) for i in range(len(old))] if len(old) == len(new) else []
    score = [
        [0.0 if common & {a, b} else _line_similarity(a.strip(BLANKS), b.strip(BLANKS)) for b in new]
        for a in old
    ]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            both = score[i][j] + best[i + 1][j + 1] if score[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], both)
    return list(_trace_best_pairs(score, best))


def _trace_best_pairs(score: list[list[float]], best: list[list[float]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(score) and j < len(score[0]):
        if score[i][j] and best[i][j] == score[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _line_similarity(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    from rapidfuzz.fuzz import ratio

    return ratio(one[:_MAX_COMPARED], other[:_MAX_COMPARED], score_cutoff=_ALIKE)


_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
_LONGEST = 4000


def merge_words(old: str, filed: str, new: str) -> str:
    """Apply the word changes from `old` to `new` to the file's line; all three without indentation."""
    tail = _merged_trailing_blanks(old, filed, new)
    old, filed, new = (line.strip(BLANKS) for line in (old, filed, new))
    if old == filed or len(old) > _LONGEST or len(new) > _LONGEST:
        return new + tail
    mine, theirs, wanted = (_TOKEN.findall(line) for line in (old, filed, new))
    if len(mine) != len(theirs):
        return new + tail
    merged = _merge_spaced_words(mine, theirs, wanted)
    return (new if merged is None else merged) + tail


def _merged_trailing_blanks(old: str, filed: str, new: str) -> str:
    """Return the trailing blanks of a changed line: `new`'s, or the file's if `new` only copies `old`'s."""
    ours = new[len(new.rstrip(BLANKS)) :]
    if ours and ours == old[len(old.rstrip(BLANKS)) :]:
        return filed[len(filed.rstrip(BLANKS)) :]
    return ours


SpacedWord = tuple[str, str]
_END: SpacedWord = ("", "")


def _merge_spaced_words(
    mine: list[SpacedWord], theirs: list[SpacedWord], wanted: list[SpacedWord]
) -> str | None:
    """Merge three lists of words: use the file's words and spacing wherever old and new agree.

    Returns None if the spacing is ambiguous, or if the new words contain a quote character that would end a
    string that the file writes with that quote.
    """
    swapped = {filed for (_, word), (_, filed) in zip(mine, theirs, strict=True) if word != filed}
    pieces: list[str] = []
    at = shift = 0
    gap: str | None = None
    for edit in [*diff_line_edits([word for _, word in mine], [word for _, word in wanted]), None]:
        stop = edit.start_a if edit else len(mine)
        for index in range(at, stop):
            if gap is None:
                gap = _merged_space(mine[index], theirs[index], wanted[index + shift])
            pieces += [gap, theirs[index][1]]
            gap = None
        if edit is None:
            break
        gaps = _spaces_around_run(
            *(
                [*side, _END][start : end + 1]
                for side, start, end in _edit_range_per_side(mine, theirs, wanted, edit)
            )
        )
        if gaps is None:
            return None
        first, gap = gaps
        new = wanted[edit.start_b : edit.end_b]
        if any(word in swapped for _, word in new):
            return None
        pieces += [first + new[0][1], *(space + word for space, word in new[1:])] if new else []
        at, shift = edit.end_a, edit.end_b - edit.end_a
    return "".join(pieces)


def _edit_range_per_side(
    mine: list[SpacedWord], theirs: list[SpacedWord], wanted: list[SpacedWord], edit: LineEdit
) -> tuple[tuple[list[SpacedWord], int, int], ...]:
    return (
        (mine, edit.start_a, edit.end_a),
        (theirs, edit.start_a, edit.end_a),
        (wanted, edit.start_b, edit.end_b),
    )


def _merged_space(mine: SpacedWord, theirs: SpacedWord, wanted: SpacedWord) -> str:
    return theirs[0] if wanted[0] == mine[0] else wanted[0]


def _spaces_around_run(
    mine: list[SpacedWord], theirs: list[SpacedWord], wanted: list[SpacedWord]
) -> tuple[str, str] | None:
    """Return the white space before and after a changed run of words; None if it is ambiguous.

    Each list ends with the token after the run.
    """
    if len(mine) > 1 and len(wanted) > 1:
        return _merged_space(mine[0], theirs[0], wanted[0]), _merged_space(mine[-1], theirs[-1], wanted[-1])
    if len(wanted) == 1:
        before = wanted[0][0] == mine[0][0]
        return "", theirs[0][0] if before else _merged_space(mine[-1], theirs[-1], wanted[0])
    old, filed = mine[0][0], theirs[0][0]
    left, right = wanted[0][0], wanted[-1][0]
    if old == filed or old not in (left, right):
        return left, right
    if left == right or filed in (left, right):
        return None
    return (filed, right) if left == old else (left, filed)


def replay_edit_on_lines(line_index: LineIndex, match: LineMatch, old: list[str], new: list[str]) -> str:
    """Return the new text of loosely matched lines after an edit; kept lines keep the file's bytes.

    Raises `UnclearEdit` if the new text is ambiguous.
    """
    return _Replay(line_index, match, old, new).text()


class _WrittenLine(NamedTuple):
    text: str
    end: str
    is_kept: bool = False
    """Whether this is a line of the file with its original line ending."""


class _Replay:
    """The state of applying one loosely matched edit: the position in the file, and the written lines."""

    def __init__(self, line_index: LineIndex, match: LineMatch, old: list[str], new: list[str]) -> None:
        self.line_index = line_index
        self.match = match
        self.old = old
        self.new = new
        self.ops = edit_script(old, new)
        counts = Counter(old)
        self.moved = {line for line, count in Counter(new).items() if count <= counts[line]}
        # Compare indentations even if no added line needs one: the same lines with different nesting are
        # different code.
        self.indents = self._indentation_map() if match.loss >= MatchLoss.INDENTATION else None
        self.at = match.first
        self.rows: list[_WrittenLine] = []
        self.freed: list[str] = []

    def text(self) -> str:
        """Return the new text of all matched lines; a missing final line ending stays missing."""
        steps = {
            "keep": self._keep_line,
            "change": self._change_line,
            "drop": self._drop_line,
            "add": self._add_line,
        }
        for number, op in enumerate(self.ops):
            if op.kind in ("keep", "change"):
                self.freed.clear()
            steps[op.kind](number, op)
        self._copy_rows_up_to(self.match.last)
        if self.match.loss > MatchLoss.NOTHING or None in self.match.places:
            self._check_equal_lines_in_file()
            self._check_moved_lines_unique()
        rows = self.line_index.rows
        if self.rows and not self.rows[-1].is_kept:
            # The arguments end before the line ending of their last line, so take the ending from the file.
            self.rows[-1] = self.rows[-1]._replace(end=lines.ending_of_line(rows[self.match.last - 1]))
        if self.rows and self.at == len(rows) and not lines.ending_of_line(rows[-1]):
            usual = self.line_index.dominant_line_end
            ended = [row._replace(end=row.end or usual) for row in self.rows[:-1]]
            self.rows = [*ended, self.rows[-1]._replace(end="")]
        self._prevent_accidental_crlf()
        return "".join(row.text + row.end for row in self.rows)

    def _prevent_accidental_crlf(self) -> None:
        r"""Change a written line's `\r` to `\n` before an empty line with `\n`, or both would form a CRLF.

        Raises `UnclearEdit` if the upper line is an unchanged line of the file, whose ending must stay.
        """
        above, below = (
            self.line_index.rows[: self.match.first][-1:],
            self.line_index.rows[self.match.last :][:1],
        )
        rows = [*map(_unchanged_line, above), *self.rows, *map(_unchanged_line, below)]
        for number, (upper, lower) in enumerate(pairwise(rows), -len(above)):
            if upper.end == "\r" and lower[:2] == ("", "\n"):
                if upper.is_kept:
                    raise UnclearEdit(
                        "unclear",
                        "A line that ends in a lone carriage return would merge with the empty line below",
                        "Convert the file to one kind of line ending first, then send the edit again.",
                    )
                self.rows[number] = upper._replace(end="\n")

    def _keep_line(self, _: int, step: EditScriptStep) -> None:
        place = self.match.places[step.old]
        if place is None:
            return
        self._copy_rows_up_to(place + 1)
        mine, wanted = self.old[step.old], self.new[step.new]
        if mine != wanted and mine == self.rows[-1].text:
            # Only trailing blanks change, and the file has exactly those of old_string.
            self.rows[-1] = _WrittenLine(wanted, self.rows[-1].end)

    def _change_line(self, number: int, step: EditScriptStep) -> None:
        place = self.match.places[step.old]
        if place is None:
            raise UnclearEdit("unclear", "The edit changes a blank line that the file does not have.")
        self._keep_unquoted_blank_lines(number, place)
        mine, filed, wanted = (
            self.old[step.old],
            self.line_index.lines_without_ends[place],
            self.new[step.new],
        )
        depth = (
            indentation_of_line(filed)
            if indentation_of_line(wanted) == indentation_of_line(mine)
            else self._indentation_in_file(wanted)
        )
        text = depth + merge_words(
            *(line[len(indentation_of_line(line)) :] for line in (mine, filed, wanted))
        )
        self.rows.append(_WrittenLine(text, lines.ending_of_line(self.line_index.rows[place])))
        self.at = place + 1

    def _drop_line(self, number: int, step: EditScriptStep) -> None:
        place = self.match.places[step.old]
        if place is not None:
            self._keep_unquoted_blank_lines(number, place)
            self.freed.append(lines.ending_of_line(self.line_index.rows[place]))
            self.at = place + 1
        elif any(
            op.kind == "keep" and is_blank(self.old[op.old]) for op in self._neighbouring_steps(number)
        ):
            # old_string has two blank lines here and the file has one: either could be the removed one.
            raise UnclearEdit("unclear", "old_string has a blank line here that the file does not have.")

    def _neighbouring_steps(self, number: int) -> list[EditScriptStep]:
        return self.ops[max(0, number - 1) : number] + self.ops[number + 1 : number + 2]

    def _add_line(self, number: int, step: EditScriptStep) -> None:
        line = self.new[step.new]
        text = self._added_line_text(line)
        self._check_depth_of_first_line(step, line, text)
        following = self._next_matched_row(number)
        if following is not None and following > self.at and any(op.old >= 0 for op in self.ops[:number]):
            self._place_around_blank_lines(number, text, following)
        self._check_blank_lines_only_in_old(number, line)
        self.rows.append(_WrittenLine(text, self._line_ending_for_new_line()))

    def _added_line_text(self, line: str) -> str:
        """Return an added line with the file's indentation; a moved line is copied from the file."""
        if line in self.moved:
            filed = {self._matched_file_line(index) for index, text in enumerate(self.old) if text == line}
            if len(filed) != 1:
                raise UnclearEdit("unclear", "Two lines are the same in old_string but not in the file.")
            return filed.pop() or line
        return (
            line
            if is_blank(line)
            else self._indentation_in_file(line) + line[len(indentation_of_line(line)) :]
        )

    def _indentation_in_file(self, line: str) -> str:
        return (
            self.indents.file_indentation(indentation_of_line(line))
            if self.indents
            else indentation_of_line(line)
        )

    def _indentation_map(self) -> IndentationMap:
        if any(
            self.line_index.lines_without_ends[place].lstrip()
            != self.line_index.lines_without_ends[place].lstrip(BLANKS)
            for place in self._matched_rows_if_adding()
        ):
            raise UnclearEdit(
                "indent_conflict", "The file indents with characters other than spaces and tabs here."
            )
        pairs = [
            (indentation_of_line(line), indentation_of_line(self.line_index.lines_without_ends[place]))
            for line, place in zip(self.old, self.match.places, strict=True)
            if place is not None and not is_blank(line)
        ]
        self._check_depth_of_only_line(pairs)
        above = self.line_index.lines_without_ends[
            max(0, self.match.first - INDENT_SAMPLE_LINES) : self.match.first
        ]
        near = [
            *above,
            *self.line_index.lines_without_ends[self.match.first : self.match.last + INDENT_SAMPLE_LINES],
        ]
        return IndentationMap(pairs, [*self.old, *self.new], near, above[::-1])

    def _check_depth_of_only_line(self, pairs: list[tuple[str, str]]) -> None:
        """Raise `UnclearEdit` if the only old line lost its indentation, but perhaps not the added lines."""
        if len(pairs) > 1 or pairs[0][0] or not pairs[0][1]:
            return
        first, *below = [indentation_of_line(line) for line in self.new if not is_blank(line)] or [""]
        below = [first, *below] if first else below
        if below and all(depth.startswith(pairs[0][1]) for depth in below):
            raise UnclearEdit(
                "indent_conflict",
                "old_string leaves out the indentation, so the indentation of the added lines is unclear.",
            )

    def _matched_rows_if_adding(self) -> list[int]:
        """Return the file's row indexes of the matched old lines if the edit adds lines; otherwise none."""
        if not any(op.kind == "add" for op in self.ops):
            return []
        return [place for place in self.match.places if place is not None]

    def _copy_rows_up_to(self, row: int) -> None:
        self.rows += map(_unchanged_line, self.line_index.rows[self.at : row])
        self.at = max(self.at, row)

    def _line_ending_for_new_line(self) -> str:
        """Return a new line's line ending: from the line it replaces, a neighbour, or the dominant one."""
        if self.freed and self.freed[0]:
            return self.freed.pop(0)
        if self.rows and self.rows[-1].end:
            return self.rows[-1].end
        near = self.line_index.rows[max(0, self.at - 1) : self.at + 2]
        return next(filter(None, map(lines.ending_of_line, near)), self.line_index.dominant_line_end)

    def _next_matched_row(self, number: int) -> int | None:
        """Return the index of the file line that matches the next old line after a step.

        Returns None if there is none.
        """
        places = (self.match.places[op.old] for op in self.ops[number:] if op.old >= 0)
        return next((place for place in places if place is not None), None)

    def _keep_unquoted_blank_lines(self, number: int, place: int) -> None:
        """Keep blank lines of the file that `old_string` lacks, except between two removed lines."""
        before = next((op for op in reversed(self.ops[:number]) if op.old >= 0), None)
        if before is not None and before.kind == self.ops[number].kind == "drop":
            self.at = place
        self._copy_rows_up_to(place)

    def _place_around_blank_lines(self, number: int, text: str, following: int) -> None:
        """Decide by indentation whether an added line goes above or below blank lines not in `old_string`.

        Raises `UnclearEdit` if the indentation does not decide.
        """
        if self.ops[number - 1].kind == "add":
            return
        above, below = (
            indentation_of_line(self.line_index.lines_without_ends[self.at - 1]),
            indentation_of_line(self.line_index.lines_without_ends[following]),
        )
        if (indentation_of_line(text) == above) == (indentation_of_line(text) == below):
            raise UnclearEdit(
                "unclear", "The file has a blank line where the new lines go; old_string leaves it out."
            )
        if indentation_of_line(text) == below:
            self._copy_rows_up_to(following)

    def _check_depth_of_first_line(self, step: EditScriptStep, line: str, text: str) -> None:
        """Raise `UnclearEdit` if the depth of the first new line is ambiguous.

        It is as deep as the first old line in the arguments, but would not be so in the file.
        """
        filed = self._matched_file_line(0) or ""
        if step.new or is_blank(line) or is_blank(filed) or not self.indents:
            return
        as_deep = indentation_of_line(line) == indentation_of_line(self.old[0])
        if as_deep and indentation_of_line(text) != indentation_of_line(filed):
            raise UnclearEdit(
                "indent_conflict", "New lines at the margin may belong at the depth of the first old line."
            )

    def _check_blank_lines_only_in_old(self, number: int, line: str) -> None:
        """Raise `UnclearEdit` if a blank line is added next to one that only `old_string` has."""
        near = self.ops[max(0, number - 2) : number + 3]
        if is_blank(line) and any(op.old >= 0 and self.match.places[op.old] is None for op in near):
            raise UnclearEdit("unclear", "old_string has a blank line here that the file does not have.")

    def _check_equal_lines_in_file(self) -> None:
        """Raise `UnclearEdit` if an added or removed line equals a kept one only in the arguments."""
        for start, end in _step_runs(self.ops, "drop"):
            first, last = self.ops[start].old, self.ops[end - 1].old + 1
            for outside, inside in shifts_of_equal_rows(self.old, first, last):
                if self._matched_file_line(outside) != self._matched_file_line(inside):
                    raise UnclearEdit(
                        "unclear", "Two lines are the same in old_string but not in the file."
                    )
        for start, end in _step_runs(self.ops, "add"):
            first, last = self.ops[start].new, self.ops[end - 1].new + 1
            kept = {op.new: op.old for op in self.ops if op.kind == "keep"}
            for outside, inside in shifts_of_equal_rows(self.new, first, last):
                if outside in kept and self._matched_file_line(kept[outside]) not in (
                    None,
                    self._added_line_text(self.new[inside]),
                ):
                    raise UnclearEdit(
                        "unclear", "An added line equals its neighbour in new_string, but not in the file."
                    )

    def _check_moved_lines_unique(self) -> None:
        """Raise `UnclearEdit` if lines are moved and several equal lines could be the moved one."""
        touched = [number for number, op in enumerate(self.ops) if op.kind != "keep"]
        dropped = {self.old[op.old] for op in self.ops if op.kind == "drop"}
        added = {self.new[op.new] for op in self.ops if op.kind == "add"}
        if not dropped & added:
            return
        forms: dict[str, set[str | None]] = {}
        for index, line in enumerate(self.old):
            forms.setdefault(line, set()).add(self._matched_file_line(index))
        passed = {self.old[op.old] for op in self.ops[touched[0] : touched[-1] + 1] if op.old >= 0}
        if any(len(forms[line]) > 1 for line in passed):
            raise UnclearEdit("unclear", "Two lines are the same in old_string but not in the file.")

    def _matched_file_line(self, index: int) -> str | None:
        place = self.match.places[index]
        return None if place is None else self.line_index.lines_without_ends[place]


def _unchanged_line(line: str) -> _WrittenLine:
    bare = lines.without_line_ending(line)
    return _WrittenLine(bare, line[len(bare) :], is_kept=True)


def _step_runs(steps: list[EditScriptStep], kind: str) -> list[tuple[int, int]]:
    """Return the start and end index of each run of edit steps of one kind."""
    runs: list[tuple[int, int]] = []
    for number, op in enumerate(steps):
        if op.kind == kind:
            if runs and runs[-1][1] == number:
                runs[-1] = (runs[-1][0], number + 1)
            else:
                runs.append((number, number + 1))
    return runs
