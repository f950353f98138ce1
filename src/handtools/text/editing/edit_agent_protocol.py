"""What the `edit_agent` tool asks a model, and the parser of the edits that its answer streams back.

ADR 97.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from handtools.text.lines import LineRange, bare, merged_ranges

LONGEST_TAG = 64


@dataclass(frozen=True, slots=True)
class AnswerTags:
    """The tags of one conversation: named so that the file can't hold one by chance."""

    suffix: str

    @classmethod
    def absent_from(cls, *texts: str) -> "AnswerTags":
        """Tags whose ending occurs in none of the texts."""
        number = 1
        while any(f"_{number}>" in text or f"_{number} " in text for text in texts):
            number += 1
        return cls(f"_{number}")

    def pair(self, old: str, new: str) -> str:
        """An edit as the model is to write it."""
        s = self.suffix
        return f"<old{s}>\n{old}\n</old{s}>\n<new{s}>\n{new}\n</new{s}>"

    @property
    def done(self) -> str:
        """What ends an answer that is whole."""
        return f"<done{self.suffix}/>"

    def show(self, first: int | str, last: int | str) -> str:
        """How lines are asked for."""
        return f'<show{self.suffix} lines="{first}-{last}"/>'

    def cannot(self, why: str) -> str:
        """How the model declines."""
        return f"<cannot{self.suffix}>{why}</cannot{self.suffix}>"


@dataclass(frozen=True, slots=True)
class OldTextComplete:
    """The old text of an edit is complete; its new text is still to come."""

    old: str


@dataclass(frozen=True, slots=True)
class OldNewPair:
    """One whole edit."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ShowLines:
    """The model wants to see lines before it goes on."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Declined:
    """The model says that it can't be done."""

    why: str


@dataclass(frozen=True, slots=True)
class MalformedAnswer:
    """Tags in an order that means nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class AnswerComplete:
    """The model says that this was all."""


AnswerPiece = OldTextComplete | OldNewPair | ShowLines | Declined | MalformedAnswer | AnswerComplete
_Inside = Literal["", "old", "new", "cannot"]


@dataclass(slots=True)
class EditStreamParser:
    """Reads an answer piece by piece; what stands outside the tags is chatter and is passed over."""

    marks: AnswerTags
    _buffer: str = ""
    _inside: _Inside = ""
    _searched: int = 0
    """How much of the buffer is known to hold no end, so that many small pieces cost no more than one."""
    _old: str | None = None
    _ended: bool = False
    _tag: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        s = re.escape(self.marks.suffix)
        self._tag = re.compile(
            rf"<(?P<open>old|new|cannot){s}>|<(?P<done>done){s}\s{{0,8}}/?>"
            rf'|<show{s}\s{{1,8}}lines="?(?P<first>\d{{1,9}})-(?P<last>\d{{1,9}})"?\s{{0,8}}/?>'
        )

    def feed(self, text: str) -> list[AnswerPiece]:
        """The pieces that this text completes."""
        self._buffer += text
        found: list[AnswerPiece] = []
        while not self._ended and (step := self._step()) is not None:
            found += step
        return found

    def unfinished(self) -> str:
        """After the last text: why the answer is not whole; empty when it is."""
        if self._ended:
            return ""
        if self._inside:
            return f"your answer broke off inside <{self._inside}{self.marks.suffix}>"
        if self._old is not None:
            return f"your answer broke off before <new{self.marks.suffix}>"
        return f"your answer did not end with {self.marks.done}"

    def _step(self) -> list[AnswerPiece] | None:
        """What the buffer's next tag comes to; None when more text is needed."""
        return self._content() if self._inside else self._between()

    def _between(self) -> list[AnswerPiece] | None:
        found = self._tag.search(self._buffer)
        if found is None:
            self._drop(self._buffer.rfind("<", max(0, len(self._buffer) - LONGEST_TAG)))
            return None
        self._buffer = self._buffer[found.end() :]
        lonely = found["open"] != "new" and self._old is not None
        if not lonely:
            return self._opened(found)
        self._old = None
        return [MalformedAnswer("an old text without a new one"), *self._opened(found)]

    def _opened(self, tag: re.Match[str]) -> list[AnswerPiece]:
        opened = tag["open"]
        if opened:
            self._inside, self._searched = opened, 0  # type: ignore[assignment]
            return []
        if tag["done"]:
            self._ended = True
            return [AnswerComplete()]
        return [ShowLines(int(tag["first"]), int(tag["last"]))]

    def _content(self) -> list[AnswerPiece] | None:
        closing = f"</{self._inside}{self.marks.suffix}>"
        end = self._buffer.find(closing, max(0, self._searched - len(closing)))
        if end < 0:
            self._searched = len(self._buffer)
            return None
        held = self._buffer[:end]
        inside, self._inside = self._inside, ""
        self._buffer = self._buffer[end + len(closing) :]
        return self._closed(inside, held)

    def _closed(self, inside: _Inside, held: str) -> list[AnswerPiece]:
        nested = self._tag.search(held)
        if nested is not None:
            # No file holds such a tag, so the model forgot an end: what belongs where would be a guess.
            self._old = None
            return [MalformedAnswer(f"{nested[0]} inside <{inside}{self.marks.suffix}>")]
        text = _framed(held)
        if inside == "cannot":
            return [Declined(text.strip())]
        if inside == "old":
            self._old = text
            return [OldTextComplete(text)]
        old, self._old = self._old, None
        return (
            [MalformedAnswer("a new text without an old one")] if old is None else [OldNewPair(old, text)]
        )

    def _drop(self, keep_from: int) -> None:
        self._buffer = self._buffer[keep_from:] if keep_from >= 0 else ""


def _framed(held: str) -> str:
    """Without the line end after the opening tag and the one before the closing tag."""
    end = "\r\n" if held.startswith("\r\n") else "\n"
    return held.removeprefix(end).removesuffix(end)


PROMPT_WORD = re.compile(r"[^\W\d]\w{2,}")
PROMPT_CONTEXT_LINES = 25
"""Lines shown on either side of a line that the instructions seem to mean."""
MOST_LINES_OF_A_WORD = 40
"""A word on more lines than this points nowhere."""


PROMPT_TEMPLATE = """\
Carry out the instructions on the file by writing edits. Each edit is a piece of the file, copied letter for
letter, with enough lines to occur only once, and the text to put in its place:

{pair}

Edits are made in order, each on what the ones before it left. After the last one write {done}
If it can't be done, write {cannot} instead. Leave nothing out of the new text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """What the model is shown of the file."""

    path: str
    lines: Sequence[str]
    outline: str = ""
    windows: tuple[LineRange, ...] = ()
    """Empty is the whole file."""

    def text(self, marks: AnswerTags) -> str:
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


def edit_prompt(
    sight: ShownFile, instructions: str, marks: AnswerTags, *, before: Iterable[str] = ()
) -> str:
    """The whole question; `before` is what became of earlier answers."""
    pair = marks.pair("text as it is in the file", "text to put there")
    parts = [PROMPT_TEMPLATE.format(pair=pair, done=marks.done, cannot=marks.cannot("why"))]
    if not sight.lines:
        parts.append("The file is empty: write one edit, with nothing in the place of the old text.")
    if sight.windows:
        parts.append(f"To see other lines first, write {marks.show('FIRST', 'LAST')} and nothing else.")
    parts += [sight.text(marks), f"Instructions:\n{instructions}"]
    told = list(before)
    if told:
        parts.append("So far:\n" + "\n".join(told))
    return "\n\n".join(parts)


def relevant_lines(lines: Sequence[str], instructions: str, *, most: int) -> tuple[LineRange, ...]:
    """The parts of a long file that instructions seem to mean, by their rarest words; its start if none is."""
    wanted = set(PROMPT_WORD.findall(instructions))
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for word in wanted.intersection(PROMPT_WORD.findall(line)):
            places.setdefault(word, []).append(number)
    pointing = sorted(
        (len(found), word) for word, found in places.items() if len(found) <= MOST_LINES_OF_A_WORD
    )
    chosen: tuple[LineRange, ...] = ()
    for number in (number for _, word in pointing for number in places[word]):
        around = LineRange(
            max(1, number - PROMPT_CONTEXT_LINES), min(len(lines), number + PROMPT_CONTEXT_LINES)
        )
        grown = merged_ranges((*chosen, around))
        if sum(window.last - window.first + 1 for window in grown) > most:
            break
        chosen = grown
    return chosen or (LineRange(1, max(1, min(most, len(lines)))),)
