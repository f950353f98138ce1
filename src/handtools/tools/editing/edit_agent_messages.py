"""The prompt with which `edit_agent` asks a model for edits, and the parser of the streamed response."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from handtools.text.lines import LineRange, merged_line_ranges, without_line_ending

MAX_TAG = 64


@dataclass(frozen=True, slots=True)
class AnswerTags:
    """The tags of one conversation with the edit model, with a suffix that does not occur in the file."""

    suffix: str

    @classmethod
    def absent_from(cls, *texts: str) -> "AnswerTags":
        """Choose tags whose suffix occurs in none of the texts."""
        number = 1
        while any(f"_{number}>" in text or f"_{number} " in text for text in texts):
            number += 1
        return cls(f"_{number}")

    def render_edit(self, old: str, new: str) -> str:
        """Render one edit, old text and new text, in the tags that the model must use."""
        s = self.suffix
        return f"<old{s}>\n{old}\n</old{s}>\n<new{s}>\n{new}\n</new{s}>"

    @property
    def done(self) -> str:
        """The tag with which the edit model ends a complete response."""
        return f"<done{self.suffix}/>"

    def show(self, first: int | str, last: int | str) -> str:
        """Render the tag with which the model asks to see lines of the file."""
        return f'<show{self.suffix} lines="{first}-{last}"/>'

    def cannot(self, why: str) -> str:
        """Render the tag with which the model declines the edit, with its reason."""
        return f"<cannot{self.suffix}>{why}</cannot{self.suffix}>"


@dataclass(frozen=True, slots=True)
class OldTextComplete:
    """Parser event: the old text of an edit is complete, its new text is still to come."""

    old: str


@dataclass(frozen=True, slots=True)
class OldNewPair:
    """Parser event: one complete edit, with its old text and its new text."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ShowLines:
    """Parser event: the model asks to see a range of lines before it continues."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class EditDeclined:
    """Parser event: the model declines to make the edit, with a reason."""

    why: str


@dataclass(frozen=True, slots=True)
class MalformedAnswer:
    """Parser event: the tags of the response are in an invalid order."""

    why: str


@dataclass(frozen=True, slots=True)
class AnswerComplete:
    """Parser event: the model has ended its response."""


EditAnswerEvent = OldTextComplete | OldNewPair | ShowLines | EditDeclined | MalformedAnswer | AnswerComplete
_Inside = Literal["", "old", "new", "cannot"]


@dataclass(slots=True)
class EditStreamParser:
    """Streaming parser of the edit model's response: takes pieces of text, returns events.

    Text outside tags is skipped.
    """

    tags: AnswerTags
    _buffer: str = ""
    _inside: _Inside = ""
    _searched: int = 0
    """How much of the buffer was already searched for the closing tag, to avoid searching it again."""
    _old: str | None = None
    _ended: bool = False
    _tag: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        s = re.escape(self.tags.suffix)
        self._tag = re.compile(
            rf"<(?P<open>old|new|cannot){s}>|<(?P<done>done){s}\s{{0,8}}/?>"
            rf'|<show{s}\s{{1,8}}lines="?(?P<first>\d{{1,9}})-(?P<last>\d{{1,9}})"?\s{{0,8}}/?>'
        )

    def feed(self, text: str) -> list[EditAnswerEvent]:
        """Take the next piece of the streamed response, and return the parser events that it completes."""
        self._buffer += text
        found: list[EditAnswerEvent] = []
        while not self._ended and (step := self._parse_next_tag()) is not None:
            found += step
        return found

    def why_incomplete(self) -> str:
        """Return, after the end of the stream, why the response is incomplete; empty if it is complete."""
        if self._ended:
            return ""
        if self._inside:
            return f"your answer broke off inside <{self._inside}{self.tags.suffix}>"
        if self._old is not None:
            return f"your answer broke off before <new{self.tags.suffix}>"
        return f"your answer did not end with {self.tags.done}"

    def _parse_next_tag(self) -> list[EditAnswerEvent] | None:
        """Parse the next tag of the buffer into events; None if more text is needed."""
        return self._parse_inside_tag() if self._inside else self._parse_outside_tags()

    def _parse_outside_tags(self) -> list[EditAnswerEvent] | None:
        found = self._tag.search(self._buffer)
        if found is None:
            self._trim_buffer(self._buffer.rfind("<", max(0, len(self._buffer) - MAX_TAG)))
            return None
        self._buffer = self._buffer[found.end() :]
        lonely = found["open"] != "new" and self._old is not None
        if not lonely:
            return self._process_opening_tag(found)
        self._old = None
        return [MalformedAnswer("an old text without a new one"), *self._process_opening_tag(found)]

    def _process_opening_tag(self, tag: re.Match[str]) -> list[EditAnswerEvent]:
        opened = tag["open"]
        if opened:
            self._inside, self._searched = opened, 0  # type: ignore[assignment]
            return []
        if tag["done"]:
            self._ended = True
            return [AnswerComplete()]
        return [ShowLines(int(tag["first"]), int(tag["last"]))]

    def _parse_inside_tag(self) -> list[EditAnswerEvent] | None:
        closing = f"</{self._inside}{self.tags.suffix}>"
        end = self._buffer.find(closing, max(0, self._searched - len(closing)))
        if end < 0:
            self._searched = len(self._buffer)
            return None
        held = self._buffer[:end]
        inside, self._inside = self._inside, ""
        self._buffer = self._buffer[end + len(closing) :]
        return self._events_of_tag_content(inside, held)

    def _events_of_tag_content(self, inside: _Inside, held: str) -> list[EditAnswerEvent]:
        nested = self._tag.search(held)
        if nested is not None:
            # The tags were chosen so that the file contains none of them, so the model forgot a closing
            # tag: any repair would be a guess.
            self._old = None
            return [MalformedAnswer(f"{nested[0]} inside <{inside}{self.tags.suffix}>")]
        text = _without_framing_line_ends(held)
        if inside == "cannot":
            return [EditDeclined(text.strip())]
        if inside == "old":
            self._old = text
            return [OldTextComplete(text)]
        old, self._old = self._old, None
        return (
            [MalformedAnswer("a new text without an old one")] if old is None else [OldNewPair(old, text)]
        )

    def _trim_buffer(self, keep_from: int) -> None:
        self._buffer = self._buffer[keep_from:] if keep_from >= 0 else ""


def _without_framing_line_ends(held: str) -> str:
    """Remove one line ending after the opening tag and one before the closing tag."""
    end = "\r\n" if held.startswith("\r\n") else "\n"
    return held.removeprefix(end).removesuffix(end)


INSTRUCTION_WORD = re.compile(r"[^\W\d]\w{2,}")
PROMPT_CONTEXT_LINES = 25
"""Lines shown on either side of a line that the instructions seem to refer to."""
MAX_LINES_OF_A_WORD = 40
"""A word of the instructions that occurs on more lines than this does not influence which lines are shown."""


EDIT_PROMPT_TEMPLATE = """\
Carry out the instructions on the file by writing edits. Each edit is a piece of the file, copied exactly,
with enough lines to occur only once, and the text to replace it with:

{pair}

Edits are applied in order, each to the result of the previous ones. After the last one write {done}
If it can't be done, write {cannot} instead. Leave nothing out of the new text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShownInPrompt:
    """The part of the file that the prompt shows to the model: all of it, or an outline and line ranges."""

    path: str
    lines: Sequence[str]
    outline: str = ""
    ranges: tuple[LineRange, ...] = ()
    """The line ranges that are shown; empty for the whole file."""

    def text(self, tags: AnswerTags) -> str:
        """Render the shown lines for the prompt, without line numbers, so that the model can copy them."""
        opened, closed = f'<file{tags.suffix} path="{self.path}"', f"</file{tags.suffix}>"
        if not self.ranges:
            body = "\n".join(without_line_ending(line) for line in self.lines)
            return f"{opened}>\n{body}\n{closed}"
        shown = [f"The file has {len(self.lines):,} lines; these parts of it are shown."]
        if self.outline:
            shown.append(f"Its outline, with line numbers:\n{self.outline}")
        for window in self.ranges:
            body = "\n".join(
                without_line_ending(line) for line in self.lines[window.first - 1 : window.last]
            )
            shown.append(f'{opened} lines="{window.first}-{window.last}">\n{body}\n{closed}')
        return "\n\n".join(shown)


def edit_prompt(
    shown_file: FileShownInPrompt, instructions: str, tags: AnswerTags, *, before: Iterable[str] = ()
) -> str:
    """Build the prompt that asks for edits; `before` has the outcomes of the model's earlier responses."""
    pair = tags.render_edit("text as it is in the file", "text to put there")
    parts = [EDIT_PROMPT_TEMPLATE.format(pair=pair, done=tags.done, cannot=tags.cannot("why"))]
    if not shown_file.lines:
        parts.append("The file is empty: write one edit, with an empty old text.")
    if shown_file.ranges:
        parts.append(f"To see other lines first, write {tags.show('FIRST', 'LAST')} and nothing else.")
    parts += [shown_file.text(tags), f"Instructions:\n{instructions}"]
    told = list(before)
    if told:
        parts.append("So far:\n" + "\n".join(told))
    return "\n\n".join(parts)


def lines_for_edit_prompt(lines: Sequence[str], instructions: str, *, most: int) -> tuple[LineRange, ...]:
    """Choose the ranges of a long file to show: around the rarest words of the instructions.

    Falls back to the start of the file. All ranges together have at most `most` lines.
    """
    wanted = set(INSTRUCTION_WORD.findall(instructions))
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for word in wanted.intersection(INSTRUCTION_WORD.findall(line)):
            places.setdefault(word, []).append(number)
    pointing = sorted(
        (len(found), word) for word, found in places.items() if len(found) <= MAX_LINES_OF_A_WORD
    )
    line_ranges: tuple[LineRange, ...] = ()
    for number in (number for _, word in pointing for number in places[word]):
        line_range = LineRange(
            max(1, number - PROMPT_CONTEXT_LINES), min(len(lines), number + PROMPT_CONTEXT_LINES)
        )
        grown = merged_line_ranges((*line_ranges, line_range))
        if sum(window.last - window.first + 1 for window in grown) > most:
            break
        line_ranges = grown
    return line_ranges or (LineRange(1, max(1, min(most, len(lines)))),)
