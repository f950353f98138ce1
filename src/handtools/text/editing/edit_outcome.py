"""What an edit results in: applied, already applied, or refused with what the next call needs."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from handtools.text.splice import SplicedText

MatchTier: TypeAlias = Literal[
    "exact",
    "trailing white space",
    "indentation",
    "inner white space",
    "look-alike characters",
    "quote style",
    "blank lines",
    "spelling",
    "omitted lines",
    "text as last read",
    "misremembered context",
    "an earlier version of the change",
]

RefusalCode: TypeAlias = Literal[
    "not_found",
    "ambiguous",
    "stale",
    "no_change",
    "empty",
    "omission",
    "too_large",
    "inside_word",
    "indent_conflict",
    "unclear",
]


@dataclass(frozen=True, slots=True)
class CharSpan:
    """A piece of the body, by character offsets."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchHint:
    """What the caller knows besides the text: it narrows the candidates and never widens them."""

    line: int | None = None
    within: int = 3
    scope: str | None = None
    occurrence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The new body, and how the old text was found."""

    result: SplicedText
    tier: MatchTier
    spans: tuple[CharSpan, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The new body as one string."""
        return self.result.whole

    @property
    def count(self) -> int:
        """How many places were replaced."""
        return len(self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied:
    """The file has the change: there is nothing to do, and no text is any other."""

    text: str
    """The body, as it was and as it stays."""
    window: "Excerpt"
    """The lines that hold the change."""
    code: Literal["already_applied"] = "already_applied"

    @property
    def where(self) -> str:
        """The lines, as a sentence names them."""
        first, last = self.window.line, self.window.end_line
        return f"line {first}" if first == last else f"lines {first}-{last}"


@dataclass(frozen=True, slots=True)
class EditCandidate:
    """One candidate: its first line, and an `old_string` that means this one alone (or None)."""

    line: int
    text: str
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of the file, as they really are."""

    line: int
    lines: tuple[str, ...]

    @property
    def end_line(self) -> int:
        """The number of the last line."""
        return self.line + len(self.lines) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRefused:
    """Why nothing was changed, and what to send instead."""

    code: RefusalCode
    message: str
    hint: str = ""
    nearest: Excerpt | None = None
    differences: tuple[str, ...] = ()
    places: tuple[EditCandidate, ...] = ()
    suggestion: str | None = None


EditOutcome: TypeAlias = Applied | AlreadyApplied | EditRefused


class UnclearEdit(Exception):
    """Raised where the right place is known but not what the new text means there."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code: RefusalCode = code
