"""A string with one part replaced, lazily: joined only when the whole text is needed."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SplicedText:
    """`text` with the characters from `start` to `end` replaced by `new`; supports `len` and slicing."""

    text: str
    start: int
    end: int
    new: str

    @cached_property
    def whole(self) -> str:
        """The full spliced text as one string."""
        # `join` allocates the result once; concatenating with `+` would copy a large text twice.
        return "".join((self.text[: self.start], self.new, self.text[self.end :]))

    def __len__(self) -> int:
        return len(self.text) - (self.end - self.start) + len(self.new)

    def __getitem__(self, part: slice) -> str:
        start, stop, _ = part.indices(len(self))
        shift = self.start + len(self.new) - self.end
        return "".join(
            (
                self.text[start : min(stop, self.start)],
                self.new[max(start - self.start, 0) : max(stop - self.start, 0)],
                self.text[max(start - shift, self.end) : max(stop - shift, 0)],
            )
        )

    @property
    def is_same(self) -> bool:
        """Whether the inserted text equals what it replaces, so that nothing changes."""
        return self.text[self.start : self.end] == self.new
