"""No input makes the matcher take time out of proportion: twice the text, about twice the time."""

import time
from collections.abc import Callable

import pytest

from handtools.tools.editing.replacement import replace_text

Shape = Callable[[int], tuple[str, str, str]]
SHAPES: dict[str, Shape] = {
    "equal lines, none fits": lambda n: ("    x = 1\n" * n, "  x = 1\n" * 3 + "  x = 2", "y"),
    "equal lines, all fit": lambda n: ("    x = 1\n" * n, "\tx = 1\n" * 3, "y"),
    "equal lines in both": lambda n: ("    x = 1\n" * n, "  x = 1\n" * (n // 2) + "z", "y"),
    "one long line": lambda n: ("a b " * n, "a  b c", "y"),
    "long lines in both": lambda n: ("a b " * n + "\nfoo\n", "a b " * n + " \nfoo", "a c" * n),
    "blank lines": lambda n: ("\n" * n + "foo bar\n" + "\n" * n, "foo  bar baz", "y"),
    "blank lines in both": lambda n: ("\n" * n + "foo\nbar\n", "\n" * n + "foo\nbaz\n", "y"),
    "blanks": lambda n: (" " * n + "x\n", "  y" + " " * n, "z"),
    "quotes": lambda n: ("'\"'\"" * n, "'\"'\"'x\"" * 100, "z"),
    "backslashes": lambda n: ("\\n" * n, "\\\\" * n + "\\nx", "z"),
    "a fence that does not end": lambda n: ("a\n" * n, "```\n" + " " * n + "`" * n, "z"),
    "numbered lines": lambda n: ("a\n" * n, "".join(f"{i}\tb\n" for i in range(n // 4)), "z"),
    "words one letter apart": lambda n: (
        " ".join(f"wordly{i:x}" for i in range(n)),
        "wordly abc defg\nwordlyy",
        "z",
    ),
    "typographic": lambda n: ("“é”—\u00a0\n" * n, '"é"-\n"é"-x', "z"),
    "elisions": lambda n: (
        "    x = 1\n" * n,
        "x = 1\n...\n" * (n // 50) + "y",
        "x = 1\n...\n" * (n // 50) + "z",
    ),
    "all lines changed": lambda n: (
        "".join(f"    q{i}\n" for i in range(n // 20)),
        "".join(f"  q{i}\n" for i in range(n // 20)),
        "".join(f"  r{i}\n" for i in range(n // 20)),
    ),
}
SIZE = 20_000
# Quadratic growth would be 16; the rest is room for caches.
MAX_GROWTH = 9


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_four_times_the_text_takes_about_four_times_as_long(shape):
    small, large = (shape(size) for size in (SIZE, 4 * SIZE))
    replace_text(*small)
    assert _seconds(*large) / max(_seconds(*small), 0.002) < MAX_GROWTH


def test_an_exact_edit_of_a_large_file_costs_little_more_than_finding_it():
    body = "".join(f"line {i} of the file with some text\n" for i in range(200_000))
    old, new = "line 150000 of the file with some text\n", "other\n"

    def bare() -> str:
        at = body.find(old)
        assert body.find(old, at + 1) < 0
        return body[:at] + new + body[at + len(old) :]

    ratios = [_timed(lambda: replace_text(body, old, new)) / _timed(bare) for _ in range(7)]
    assert min(ratios) < 2.5


def _seconds(body: str, old: str, new: str) -> float:
    return min(_timed(lambda: replace_text(body, old, new)) for _ in range(2))


def _timed(action: Callable[[], object]) -> float:
    """Return the processor time of an action, which other processes do not change."""
    start = time.thread_time()
    action()
    return time.thread_time() - start
