"""The outcome of an edit: applied, already applied, or refused with what to send instead."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from handtools.text.lines import SplicedText

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
    """A range of characters of a text, by start and end offset."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchHint:
    """The line at which the caller expects an edit, and how many lines away from it a match may be."""

    line: int
    within: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EditApplied:
    """Outcome of a successful edit: the new text, and how the old text was matched."""

    spliced: SplicedText
    tier: MatchTier
    spans: tuple[CharSpan, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole text after the edit, as one string."""
        return self.spliced.full_text

    @property
    def count(self) -> int:
        """How many occurrences of the old text were replaced."""
        return len(self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied:
    """Outcome of an edit that the file already contains: nothing is changed."""

    text: str
    """The text of the file, which the edit leaves unchanged."""
    excerpt: "Excerpt"
    """The lines of the file that already contain the change."""
    code: Literal["already_applied"] = "already_applied"

    @property
    def where(self) -> str:
        """The lines that contain the change, in words: `line 3` or `lines 3-5`."""
        return self.excerpt.where


@dataclass(frozen=True, slots=True)
class EditCandidate:
    """One place where an ambiguous edit could apply: its line and, if any, an `old_string` unique to it."""

    line: int
    text: str
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of the file, with the number of the first."""

    line: int
    lines: tuple[str, ...]

    @property
    def end_line(self) -> int:
        """The number of the last line of the excerpt."""
        return self.line + len(self.lines) - 1

    @property
    def where(self) -> str:
        """The lines in words: `line 3` or `lines 3-5`."""
        first, last = self.line, self.end_line
        return f"line {first}" if first == last else f"lines {first}-{last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRefused:
    """Outcome of a refused edit: a code, the reason, and what to send instead. Nothing was changed."""

    code: RefusalCode
    message: str
    hint: str = ""
    nearest_excerpt: Excerpt | None = None
    differences: tuple[str, ...] = ()
    candidates: tuple[EditCandidate, ...] = ()
    suggestion: str | None = None
    replace_all_hint: str = ""
    """What to do instead of `hint` with a tool that has `replace_all`; empty if that would not work."""


EditOutcome: TypeAlias = EditApplied | AlreadyApplied | EditRefused


class UnclearEdit(Exception):
    """Raised if the place of an edit is known but the result is unclear, for example how deep to indent."""

    def __init__(self, code: RefusalCode, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code: RefusalCode = code
        self.hint = hint
        """What the caller should do, if sending other arguments would not help; otherwise empty."""
