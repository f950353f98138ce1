"""What the model means: a span of a real file and an edit inside it, kept as a script of lines."""

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

WORDS = (
    "buffer",
    "timeout",
    "handler",
    "payload",
    "session",
    "metric",
    "cursor",
    "profile",
    "channel",
    "marker",
)
AROUND = 100
LEVELS = ("\t", " ", "  ", "   ", "    ", "        ")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}")
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w{3,}(?!\w)")
_LOOSE = str.maketrans(
    {"'": '"', "`": '"', "“": '"', "”": '"', "‘": '"', "’": '"', "–": "-", "—": "-", "\u00a0": " "}
)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the new text: kept from old line `of`, a change of it, or added (`of` is None)."""

    text: str
    of: int | None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A file, the span the edit is about, and the script of the new span."""

    lang: str
    lines: tuple[str, ...]
    start: int
    old: tuple[str, ...]
    script: tuple[Step, ...]
    shape: str

    @property
    def new(self) -> tuple[str, ...]:
        """The new span as it should stand in the file."""
        return tuple(step.text for step in self.script)

    @property
    def before(self) -> tuple[str, ...]:
        return self.lines[: self.start]

    @property
    def after(self) -> tuple[str, ...]:
        return self.lines[self.start + len(self.old) :]

    def content(self, old: tuple[str, ...] | None = None) -> str:
        """The file, with other bytes in the span if wanted."""
        return "\n".join((*self.before, *(self.old if old is None else old), *self.after))

    def result(self, new: tuple[str, ...] | None = None) -> str:
        """The file after the edit."""
        return "\n".join((*self.before, *(self.new if new is None else new), *self.after))

    def with_old(self, old: tuple[str, ...]) -> "Scene":
        """The same scene over other file lines: what was kept follows them."""
        script = tuple(
            replace(s, text=old[s.of]) if s.kept and s.of is not None else s for s in self.script
        )
        lines = (*self.before, *old, *self.after)
        return replace(self, lines=lines, old=old, script=script)


def loose(lines: tuple[str, ...] | list[str]) -> str:
    """Everything any tier could forget, forgotten: two spans with the same are too alike to choose."""
    folded = (re.sub(r"\s+", "", line.translate(_LOOSE)) for line in lines)
    return "\n" + "\n".join(line for line in folded if line) + "\n"


def scene(
    rng: random.Random, lang: str, text: str, *, shape: str | None = None, longest: int = 12
) -> Scene | None:
    """A span that is unlike any other of its file, and an edit in it; None when the draw was no good."""
    lines = tuple(text.split("\n"))
    size = min(rng.choice((1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12)), longest)
    start = rng.randrange(0, max(1, len(lines) - size - 1))
    old = lines[start : start + size]
    if not (old[0].strip() and old[-1].strip()) or sum(map(str.isalnum, "".join(old))) < 12:
        return None
    whole = loose(lines)
    first = whole.find(loose(old))
    if whole.find(loose(old), first + 1) >= 0:
        return None
    plain = "\n".join(old)
    first = text.find(plain)
    if text.find(plain, first + 1) >= 0:
        return None
    shape = shape or rng.choice(
        (
            "modify",
            "modify",
            "modify",
            "insert",
            "insert",
            "nest",
            "delete",
            "both",
            "rewrite",
            "wrap",
            "move",
        )
    )
    script = SHAPES[shape](rng, old) if shape in SHAPES else DEEPER[shape](rng, old, lines)
    if script is None or tuple(s.text for s in script) == old:
        return None
    return Scene(lang, lines, start, old, tuple(script), shape)


def one_word(rng: random.Random, line: str) -> str | None:
    words = list(_NAME.finditer(line))
    if not words:
        return None
    word = rng.choice(words)
    other = rng.choice([w for w in WORDS if w != word[0]])
    fresh = rng.choice((other, f"{word[0]}_{other}", f"{other}_{word[0]}", f"{word[0]}2", f"my{word[0]}"))
    return line[: word.start()] + fresh + line[word.end() :]


def renamed(rng: random.Random, old: tuple[str, ...]) -> tuple[str, ...] | None:
    words = sorted({word for line in old for word in _NAME.findall(line)})
    if not words:
        return None
    word, other = rng.choice(words), rng.choice(WORDS)
    twin = tuple(re.sub(rf"(?<!\w){word}(?!\w)", other, line) for line in old)
    return twin if twin != old else None


def indent_of(line: str) -> str:
    """The white space a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def _keep(old: tuple[str, ...]) -> list[Step]:
    return [Step(line, index, kept=True) for index, line in enumerate(old)]


def _modify(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    script = _keep(old)
    for _ in range(rng.choice((1, 1, 2))):
        index = rng.randrange(len(old))
        words = list(_WORD.finditer(old[index]))
        if not words:
            continue
        word = rng.choice(words)
        other = rng.choice(WORDS)
        line = old[index]
        way = rng.randrange(4)
        if way == 0:
            text = line[: word.start()] + other + line[word.end() :]
        elif way == 1:
            text = f"{line[: word.end()]}_{other}{line[word.end() :]}"
        elif way == 2:
            text = f"{line[: word.start()]}{other}.{line[word.start() :]}"
        else:
            text = f"{line[: word.end()]}({other}, {rng.randrange(99)}){line[word.end() :]}"
        script[index] = Step(text, index)
    return script if any(not step.kept for step in script) else None


def _added(rng: random.Random, indent: str) -> str:
    one, two = rng.sample(WORDS, 2)
    forms = (
        f"{one}_{rng.randrange(99)} = {two}({rng.randrange(99)});",
        f"call {one} with {two}",
        f"{one}.{two}[{rng.randrange(9)}]",
    )
    return indent + rng.choice(forms)


def _insert(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    script = _keep(old)
    at = rng.randrange(1, len(old) + 1)
    if not old[at - 1].strip():
        return None
    indent = indent_of(old[at - 1])
    script[at:at] = [Step(_added(rng, indent), None) for _ in range(rng.choice((1, 1, 2)))]
    return script


def unit_of(lines: tuple[str, ...], old: tuple[str, ...], indent: str) -> str:
    """What one level deeper adds to `indent` around a span: the most frequent step there, or else in the file."""
    start = next(at for at in range(len(lines)) if lines[at : at + len(old)] == old)
    near = lines[max(0, start - AROUND) : start + len(old) + AROUND]
    # Of steps that are as frequent the one that led here.
    above = (indent_of(line) for line in reversed(lines[:start]) if line.strip())
    holder = next(
        (depth for depth in above if len(depth) < len(indent) and indent.startswith(depth)), indent
    )
    steps = sorted(_steps(near).items(), key=lambda item: (-item[1], item[0] != indent[len(holder) :]))
    found = [step for step, _ in (*steps, *_steps(lines).most_common())]
    usual = (step for step in found if step in LEVELS and not set(step) - set(indent or step))
    return next(usual, "\t" if "\t" in indent else "    ")


def _steps(lines: tuple[str, ...]) -> Counter[str]:
    """By what a line is deeper than the one above it, and how often; comments that go on do not count."""
    depths = [indent_of(line) for line in lines if line.strip() and not line.lstrip().startswith("*")]
    pairs = [(shallow, deep) for shallow, deep in pairwise(depths) if deep.startswith(shallow)]
    return Counter(deep[len(shallow) :] for shallow, deep in pairs if deep != shallow)


def _nest(rng: random.Random, old: tuple[str, ...], lines: tuple[str, ...]) -> list[Step] | None:
    script = _keep(old)
    at = rng.randrange(1, len(old) + 1)
    if not old[at - 1].strip():
        return None
    indent = indent_of(old[at - 1])
    if indent.strip("\t") and indent.strip(" "):
        return None
    inner = indent + unit_of(lines, old, indent)
    one = rng.choice(WORDS)
    script[at:at] = [
        Step(f"{indent}if {one}(", None),
        Step(_added(rng, inner), None),
        Step(f"{indent})", None),
    ]
    return script


def _delete(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    if len(old) < 2:
        return None
    script = _keep(old)
    at = rng.randrange(len(old))
    count = rng.choice((1, 1, 2)) if len(old) > 3 else 1
    del script[at : at + count]
    return script


def _both(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    script = _modify(rng, old)
    if script is None:
        return None
    at = rng.randrange(1, len(old) + 1)
    if not old[at - 1].strip():
        return None
    script[at:at] = [Step(_added(rng, indent_of(old[at - 1])), None)]
    return script


def _rewrite(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    """One to three lines in a row replaced by others that share nothing with them."""
    first = rng.randrange(len(old))
    last = min(len(old), first + rng.choice((1, 2, 3)))
    if any(not line.strip() for line in old[first:last]):
        return None
    script = _keep(old)
    script[first:last] = [
        Step(_added(rng, indent_of(old[first])), None) for _ in range(rng.choice((1, 2, 3)))
    ]
    return script


def _wrap(rng: random.Random, old: tuple[str, ...], lines: tuple[str, ...]) -> list[Step] | None:
    """Some lines moved one level deeper, under a new head."""
    if any(indent_of(line).strip("\t") and indent_of(line).strip(" ") for line in old):
        return None
    first = rng.randrange(len(old))
    last = min(len(old), first + rng.choice((1, 2, 3)))
    base = indent_of(old[first])
    inside = old[first:last]
    if any(not line.strip() or not line.startswith(base) for line in inside):
        return None
    script = _keep(old)
    deeper = base + unit_of(lines, old, base)
    moved = [Step(deeper + line[len(base) :], first + i) for i, line in enumerate(inside)]
    script[first:last] = [Step(f"{base}if {rng.choice(WORDS)}:", None), *moved]
    return script


def _move(rng: random.Random, old: tuple[str, ...]) -> list[Step] | None:
    """Two lines that change places; they are still the file's."""
    if len(old) < 2:
        return None
    one, other = rng.sample(range(len(old)), 2)
    if not old[one].strip() or not old[other].strip():
        return None
    script = _keep(old)
    script[one], script[other] = script[other], script[one]
    return script


SHAPES = {
    "move": _move,
    "rewrite": _rewrite,
    "modify": _modify,
    "insert": _insert,
    "delete": _delete,
    "both": _both,
}
# These add a level, and its width is the file's.
DEEPER = {"nest": _nest, "wrap": _wrap}
