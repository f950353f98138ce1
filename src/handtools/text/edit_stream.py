"""Edit streams: pairs of old and new text out of an answer that arrives in pieces of any size."""

import re
from dataclasses import dataclass, field
from typing import Literal

LONGEST_TAG = 64


@dataclass(frozen=True, slots=True)
class Marks:
    """The tags of one conversation: named so that the file can't hold one by chance."""

    suffix: str

    @classmethod
    def absent_from(cls, *texts: str) -> "Marks":
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
class Located:
    """The old text of an edit is complete; its new text is still to come."""

    old: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One whole edit."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Show:
    """The model wants to see lines before it goes on."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Cannot:
    """The model says that it can't be done."""

    why: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """Tags in an order that means nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """The model says that this was all."""


Piece = Located | Pair | Show | Cannot | Malformed | Done
_Inside = Literal["", "old", "new", "cannot"]


@dataclass(slots=True)
class EditStream:
    """Reads an answer piece by piece; what stands outside the tags is chatter and is passed over."""

    marks: Marks
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

    def feed(self, text: str) -> list[Piece]:
        """The pieces that this text completes."""
        self._buffer += text
        found: list[Piece] = []
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

    def _step(self) -> list[Piece] | None:
        """What the buffer's next tag comes to; None when more text is needed."""
        return self._content() if self._inside else self._between()

    def _between(self) -> list[Piece] | None:
        found = self._tag.search(self._buffer)
        if found is None:
            self._drop(self._buffer.rfind("<", max(0, len(self._buffer) - LONGEST_TAG)))
            return None
        self._buffer = self._buffer[found.end() :]
        lonely = found["open"] != "new" and self._old is not None
        if not lonely:
            return self._opened(found)
        self._old = None
        return [Malformed("an old text without a new one"), *self._opened(found)]

    def _opened(self, tag: re.Match[str]) -> list[Piece]:
        opened = tag["open"]
        if opened:
            self._inside, self._searched = opened, 0  # type: ignore[assignment]
            return []
        if tag["done"]:
            self._ended = True
            return [Done()]
        return [Show(int(tag["first"]), int(tag["last"]))]

    def _content(self) -> list[Piece] | None:
        closing = f"</{self._inside}{self.marks.suffix}>"
        end = self._buffer.find(closing, max(0, self._searched - len(closing)))
        if end < 0:
            self._searched = len(self._buffer)
            return None
        held = self._buffer[:end]
        inside, self._inside = self._inside, ""
        self._buffer = self._buffer[end + len(closing) :]
        return self._closed(inside, held)

    def _closed(self, inside: _Inside, held: str) -> list[Piece]:
        nested = self._tag.search(held)
        if nested is not None:
            # No file holds such a tag, so the model forgot an end: what belongs where would be a guess.
            self._old = None
            return [Malformed(f"{nested[0]} inside <{inside}{self.marks.suffix}>")]
        text = _framed(held)
        if inside == "cannot":
            return [Cannot(text.strip())]
        if inside == "old":
            self._old = text
            return [Located(text)]
        old, self._old = self._old, None
        return [Malformed("a new text without an old one")] if old is None else [Pair(old, text)]

    def _drop(self, keep_from: int) -> None:
        self._buffer = self._buffer[keep_from:] if keep_from >= 0 else ""


def _framed(held: str) -> str:
    """Without the line end after the opening tag and the one before the closing tag."""
    end = "\r\n" if held.startswith("\r\n") else "\n"
    return held.removeprefix(end).removesuffix(end)
