"""Screening: which of very many paths could match some globs, found without asking path by path.

Every glob has text that a path must contain to match it. One search for that text through all
paths at once settles the usual case, that none of them has it.
"""

import re
from collections.abc import Iterable, Sequence

_PLAIN = re.compile(r"[^*?\[\]{}\\/\x00-\x1f\x7f-\U0010ffff]+")
_NO_PLAIN = re.compile(r"\[[^]]*\]?|\{.*\}?|\\.", re.DOTALL)
_BETWEEN = "\0"


class Screen:
    """A coarse sieve: what it does not give back matches none of the globs, in whatever case."""

    def __init__(self, globs: Iterable[str]) -> None:
        needles = {_needle(glob) for glob in globs}
        self._everything = "" in needles
        self._bundles = [] if self._everything else _bundles(needles)

    def suspects(self, paths: Sequence[str]) -> set[str]:
        """Give the paths that may match."""
        if self._everything:
            return set(paths)
        if not self._bundles:
            return set()
        whole = _BETWEEN.join(paths)
        if not whole.isascii():
            # A letter beyond ASCII may be another one's other case: leave such paths to the globs.
            odd = {path for path in paths if not path.isascii()}
            return odd | self.suspects([path for path in paths if path.isascii()])
        whole = whole.lower()
        bundles = [needles for pattern, needles in self._bundles if pattern.search(whole)]
        if not bundles:
            return set()
        present = [needle for needles in bundles for needle in needles if needle in whole]
        return {path for path in paths if any(needle in path.lower() for needle in present)}


def _needle(glob: str) -> str:
    """Give the rarest text that a path must contain; empty when there is none for sure."""
    pieces = [piece for piece in _NO_PLAIN.sub("*", glob).split("/") if piece != "."]
    runs = [run for piece in pieces for run in _PLAIN.findall(piece)]
    # After a dot stand hidden names and suffixes: few paths have those of a rule.
    return max(runs, key=lambda run: (run.startswith("."), len(run)), default="").lower()


def _bundles(needles: Iterable[str]) -> list[tuple[re.Pattern[str], list[str]]]:
    """Put needles that begin alike into one regex: it runs from one rare beginning to the next for all of them."""
    alike: dict[str, list[str]] = {}
    for needle in sorted(needles):
        # A sign is rare enough by itself, a letter is not.
        alike.setdefault(needle[: 3 if needle[0].isalnum() else 1], []).append(needle)
    return [(_any_of(start, bundle), bundle) for start, bundle in alike.items()]


def _any_of(start: str, needles: Sequence[str]) -> re.Pattern[str]:
    rests = "|".join(re.escape(needle[len(start) :]) for needle in needles)
    return re.compile(f"{re.escape(start)}(?:{rests})")
