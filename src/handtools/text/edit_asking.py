"""What a model is asked, so that its answer is a list of edits; and which lines of a long file it is shown."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handtools.text.edit_stream import Marks
from handtools.text.lines import bare
from handtools.text.ranges import Lines, united

WORD = re.compile(r"[^\W\d]\w{2,}")
AROUND = 25
"""Lines shown on either side of a line that the instructions seem to mean."""
COMMON = 40
"""A word on more lines than this points nowhere."""


ASKED = """\
Carry out the instructions on the file by writing edits. Each edit is a piece of the file, copied letter for
letter, with enough lines to occur only once, and the text to put in its place:

{pair}

Edits are made in order, each on what the ones before it left. After the last one write {done}
If it can't be done, write {cannot} instead. Leave nothing out of the new text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the model is shown of the file."""

    path: str
    lines: Sequence[str]
    outline: str = ""
    windows: tuple[Lines, ...] = ()
    """Empty is the whole file."""

    def text(self, marks: Marks) -> str:
        """As it stands in the question: bare lines, so that they can be copied."""
        opened, closed = f'<file{marks.suffix} path="{self.path}"', f"</file{marks.suffix}>"
        if not self.windows:
            body = "\n".join(bare(line) for line in self.lines)
            return f"{opened}>\n{body}\n{closed}"
        shown = [f"The file has {len(self.lines):,} lines; these parts of it are shown."]
        if self.outline:
            shown.append(f"Its outline, with line numbers:\n{self.outline}")
        for window in self.windows:
            body = "\n".join(bare(line) for line in self.lines[window.first - 1 : window.last])
            shown.append(f'{opened} lines="{window.first}-{window.last}">\n{body}\n{closed}')
        return "\n\n".join(shown)


def question(sight: Sight, instructions: str, marks: Marks, *, before: Iterable[str] = ()) -> str:
    """The whole question; `before` is what became of earlier answers."""
    pair = marks.pair("text as it is in the file", "text to put there")
    parts = [ASKED.format(pair=pair, done=marks.done, cannot=marks.cannot("why"))]
    if not sight.lines:
        parts.append("The file is empty: write one edit, with nothing in the place of the old text.")
    if sight.windows:
        parts.append(f"To see other lines first, write {marks.show('FIRST', 'LAST')} and nothing else.")
    parts += [sight.text(marks), f"Instructions:\n{instructions}"]
    told = list(before)
    if told:
        parts.append("So far:\n" + "\n".join(told))
    return "\n\n".join(parts)


def meant_lines(lines: Sequence[str], instructions: str, *, most: int) -> tuple[Lines, ...]:
    """The parts of a long file that instructions seem to mean, by their rarest words; its start if none is."""
    wanted = set(WORD.findall(instructions))
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for word in wanted.intersection(WORD.findall(line)):
            places.setdefault(word, []).append(number)
    pointing = sorted((len(found), word) for word, found in places.items() if len(found) <= COMMON)
    chosen: tuple[Lines, ...] = ()
    for number in (number for _, word in pointing for number in places[word]):
        around = Lines(max(1, number - AROUND), min(len(lines), number + AROUND))
        grown = united((*chosen, around))
        if sum(window.last - window.first + 1 for window in grown) > most:
            break
        chosen = grown
    return chosen or (Lines(1, max(1, min(most, len(lines)))),)
