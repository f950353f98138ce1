"""A retry as a model makes it: from the two arguments it sent and the text of the refusal, and nothing else.

It takes an `old_string` that the message offers and makes its own edit again on those lines. Lines that it kept
become the file's; lines that it added keep its words, in the depth that the message shows.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from math import gcd

_OFFER = re.compile(r"^old_string(?: for line \d+)?:\n(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_LEVEL = re.compile(r"One level here is (?:a (tab)|(\d+) spaces?)\.")
_NUMBER = re.compile(r"[ ]*\d+[ ]*[\t→|:]")
_ELISION = re.compile(r"\W*(?:\.{3}|…).*")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"```\w*\n(.*?)\n?```\n?", re.DOTALL)
_LOOKALIKES = str.maketrans(
    dict(zip("“”„‘’‚–—−", "\"\"\"'''---", strict=True)) | {"\u200b": "", "\ufeff": ""}
)


def retry(old: str, new: str, message: str) -> tuple[str, str] | None:
    """What to send next; None where the message offers nothing."""
    offers = [offer[2] for offer in _OFFER.finditer(message)]
    if not offers:
        return None
    mine, theirs = _plain_lines(old), _plain_lines(new)
    # Of several places the shortest, for who leaves lines out leaves out few: a guess, and counted as one.
    offer = min(offers, key=lambda text: text.count("\n"))
    _trim(mine, theirs, offer.split("\n"))
    level = _LEVEL.search(message)
    unit = None if level is None else "\t" if level[1] else " " * int(level[2])
    return offer, "\n".join(_Retold(mine, theirs, offer.split("\n"), unit).lines())


def _trim(mine: list[str], theirs: list[str], offer: list[str]) -> None:
    """Drop the blank lines at the edges of both arguments that the offer does not have."""
    for edge in (0, -1):
        while len(mine) > 1 and len(theirs) > 1 and offer[edge].strip():
            if mine[edge].strip() or theirs[edge].strip():
                break
            mine.pop(edge), theirs.pop(edge)


def _plain_lines(text: str) -> list[str]:
    """An argument without what never belonged to it: a fence, escapes, numbers of lines."""
    if fenced := _FENCE.fullmatch(text.strip("\n") + "\n"):
        text = fenced[1]
    if "\\n" in text and "\n" not in text.strip("\n"):
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = text.replace("\r\n", "\n").split("\n")
    filled = [line for line in lines if line.strip()]
    if filled and all(_NUMBER.match(line) for line in filled):
        lines = [_NUMBER.sub("", line, count=1) for line in lines]
    return lines


class _Retold:
    """The edit from `mine` to `theirs`, told again on the lines that were offered."""

    def __init__(self, mine: list[str], theirs: list[str], offer: list[str], unit: str | None) -> None:
        self.mine, self.theirs, self.offer, self.unit = mine, theirs, offer, unit
        self.at = _aligned(mine, offer)
        self.spelling = _spelling([(mine[line], offer[place]) for line, (place, _) in self.at.items()])
        self.step = _step([*mine, *theirs])

    def lines(self) -> Iterator[str]:
        """The lines to send as `new_string`."""
        done = 0
        for tag, start, stop, first, last in SequenceMatcher(
            None, self.mine, self.theirs, autojunk=False
        ).get_opcodes():
            low, high = self._stretch(start, stop)
            if tag == "equal":
                yield from self.offer[done:high]
            elif tag == "insert":
                yield from self.offer[done:low]
                yield from self._told(start, stop, first, last)
                high = low
            else:
                yield from self.offer[done:low]
                yield from self._told(start, stop, first, last)
            done = max(done, high)
        yield from self.offer[done:]

    def _stretch(self, start: int, stop: int) -> tuple[int, int]:
        """Where lines of `mine` lie in the offer; what is only there goes with the line above it."""
        if start == stop:
            place = self._end(start)
            return place, place
        return self._begin(start), self._end(stop)

    def _begin(self, index: int) -> int:
        found = self.at.get(index)
        return self._end(index) if found is None else found[0]

    def _end(self, index: int) -> int:
        above = [self.at[line][1] for line in range(index) if line in self.at]
        if above:
            return max(above)
        below = [self.at[line][0] for line in range(index, len(self.mine)) if line in self.at]
        return min(below, default=0)

    def _told(self, start: int, stop: int, first: int, last: int) -> Iterator[str]:
        # A line that the edit moves stays the file's; one that is only like another is the model's own.
        places = [*range(start, stop), *self._gone()]
        known = {_key(self.mine[line]): line for line in reversed(places) if line in self.at}
        for index in range(first, last):
            wanted = self.theirs[index]
            twin = known.get(_key(wanted))
            paired = start + index - first
            if twin is not None and (not wanted.strip() or _is_elision(wanted)):
                yield from self.offer[slice(*self.at[twin])]
            elif not wanted.strip():
                yield wanted
            elif twin is not None:
                text = self.offer[self.at[twin][0]]
                yield self._depth(wanted, twin) + text.lstrip(" \t")
            elif paired < stop and (part := self._in_part(paired, wanted)) is not None:
                yield part
            else:
                near = self._near(min(paired, stop))
                depth = _indent(wanted) if near is None else self._depth(wanted, near)
                yield depth + self._spelt(wanted.lstrip(" \t"))

    def _gone(self) -> list[int]:
        """The lines that the edit takes away somewhere."""
        parts = SequenceMatcher(None, self.mine, self.theirs, autojunk=False).get_opcodes()
        return [line for tag, start, stop, *_ in parts if tag != "equal" for line in range(start, stop)]

    def _spelt(self, line: str) -> str:
        """A line with the words that the file spells otherwise."""
        return _WORD.sub(lambda word: self.spelling.get(word[0], word[0]), line)

    def _in_part(self, line: int, wanted: str) -> str | None:
        """Where only a part of a line was quoted, that part is replaced."""
        if line not in self.at:
            return None
        there, mine = self.offer[self.at[line][0]], self.mine[line].strip()
        if _key(there) == _key(mine) or not mine or there.count(mine) != 1:
            return None
        return there.replace(mine, wanted.strip())

    def _near(self, index: int) -> int | None:
        """The nearest line that is known in both, above first."""
        lines = [*range(min(index, len(self.mine) - 1), -1, -1), *range(index + 1, len(self.mine))]
        return next((line for line in lines if line in self.at and self._has_depth(line)), None)

    def _has_depth(self, line: int) -> bool:
        return bool(self.mine[line].strip()) and not _is_elision(self.mine[line])

    def _depth(self, wanted: str, near: int) -> str:
        """The indentation of a line, from that of another which is known on both sides."""
        mine, there = _indent(self.mine[near]), _indent(self.offer[self.at[near][0]])
        depth = _indent(wanted)
        for line, (place, _) in self.at.items():
            if self._has_depth(line) and _indent(self.mine[line]) == depth:
                return _indent(self.offer[place])
        if mine == there and not (self.unit == "\t" and depth and not mine and "\t" not in depth):
            return depth
        more = len(depth) - len(mine)
        extra = mine.removesuffix(there)
        if len(set(mine)) > 1 and mine.endswith(there) and depth.startswith(extra):
            # Tabs and blanks mixed: no width to count in, only what stands before all of them.
            return depth.removeprefix(extra)
        if mine and there and set(mine) != set(there):
            # Tabs against blanks: so many of the one are so many of the other.
            return there + there[0] * round(more * len(there) / len(mine)) if more >= 0 else there[:more]
        unit = len(self.unit or " " * self.step)
        levels = round(more / self.step)
        sign = (there or self.unit or depth or " ")[0]
        return there + sign * unit * levels if levels >= 0 else there[: levels * unit]


def _aligned(mine: list[str], offer: list[str]) -> dict[int, tuple[int, int]]:
    """For each line that was sent, the lines of the offer that stand for it."""
    marks = [line for line, text in enumerate(mine) if _is_elision(text)]
    if not marks:
        return _paired(mine, offer)
    # What stands before the first gap begins the offer, what stands after the last one ends it.
    first, last = marks[0], marks[-1]
    below = len(offer) - (len(mine) - last - 1)
    if [*map(_key, mine[:first])] != [*map(_key, offer[:first])]:
        return _paired(mine, offer)
    places = {line: (line, line + 1) for line in range(first)}
    places |= {line: (below + line - last - 1, below + line - last) for line in range(last + 1, len(mine))}
    if first == last:
        return places | {first: (first, below)}
    inside = _paired(mine[first : last + 1], offer[first:below])
    return places | {first + line: (first + low, first + high) for line, (low, high) in inside.items()}


def _paired(mine: list[str], offer: list[str]) -> dict[int, tuple[int, int]]:
    """The same by what the lines say."""
    places: dict[int, tuple[int, int]] = {}
    ours, theirs = [_key(line) for line in mine], [_key(line) for line in offer]
    for tag, start, stop, low, high in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        lines = [line for line in range(start, stop) if mine[line].strip()]
        there = [place for place in range(low, high) if offer[place].strip()]
        if tag == "equal":
            places |= {line: (low + line - start, low + line - start + 1) for line in range(start, stop)}
        elif len(lines) == 1 and _is_elision(mine[lines[0]]) and there:
            places[lines[0]] = (there[0], there[-1] + 1)
        elif len(lines) == len(there):
            places |= {line: (place, place + 1) for line, place in zip(lines, there, strict=True)}
    return places


def _key(line: str) -> str:
    """A line without what is easily lost: blanks, and the kind of quotes and dashes."""
    return "".join(line.translate(_LOOKALIKES).replace('"', "'").split())


def _is_elision(line: str) -> bool:
    return _ELISION.fullmatch(line.strip()) is not None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(lines: list[str]) -> int:
    """How wide one level is in the arguments: the widest step that all depths are made of."""
    widths = sorted({len(_indent(line)) for line in lines if line.strip() and not _is_elision(line)})
    return gcd(*(width - widths[0] for width in widths)) or 4


def _spelling(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The words that stand in the same place of a line and are not the same."""
    words: dict[str, str] = {}
    for mine, there in pairs:
        ours, theirs = _WORD.findall(mine), _WORD.findall(there)
        if len(ours) == len(theirs):
            words |= {bad: good for bad, good in zip(ours, theirs, strict=True) if bad != good}
    return words
