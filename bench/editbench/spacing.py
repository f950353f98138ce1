"""Blanks, indentation and blank lines lost, added or swapped: these must apply."""

import itertools
import random
import re
from collections.abc import Iterable

from bench.editbench.drafting import Draft, Line, draft, spoiled, variants
from bench.editbench.edits import Scene, Step, indent_of


def trailing_lost(rng: random.Random, scene: Scene) -> Draft | None:
    """The file has blanks at line ends, the arguments have not."""
    if any(line != line.rstrip() for line in (*scene.old, *scene.new)) or _repeats(scene):
        return None
    ends = [rng.choice(("", " ", "  ", "\t")) for _ in scene.old]
    filed = tuple(line + end for line, end in zip(scene.old, ends, strict=True))
    over = scene.with_old(filed)
    script = tuple(s if s.kept or s.of is None else Step(s.text + ends[s.of], s.of) for s in over.script)
    accept = (over.result(), over.result(tuple(s.text for s in script)))
    return draft(over, scene.old, scene.new, tuple(dict.fromkeys(accept)))


def _repeats(scene: Scene) -> bool:
    """Equal lines side by side: nobody can tell which of them an edit takes away."""
    return any(one == other for one, other in itertools.pairwise(scene.old))


def trailing_added(rng: random.Random, scene: Scene) -> Draft | None:
    """The arguments have blanks at line ends, the file has not; blanks on added lines may stay."""
    ends = [rng.choice(("", " ", "  ")) if line else "" for line in scene.old]
    old = tuple(line + end for line, end in zip(scene.old, ends, strict=True))
    added = rng.choice(("", " "))
    new = tuple(s.text + (added if s.of is None else ends[s.of]) for s in scene.script)
    spelt = dict(zip((s.text for s in scene.script), new, strict=True))
    return draft(scene, old, new, variants(scene, lambda line: spelt[line]))


def blank_lines_indented(rng: random.Random, scene: Scene) -> Draft | None:
    """Blank lines of the file hold blanks."""
    if "" not in scene.old or _repeats(scene):
        return None
    filed = tuple(line or rng.choice(("    ", "\t", "  ")) for line in scene.old)
    over = scene.with_old(filed)
    return draft(over, scene.old, scene.new, (over.result(),))


def _indented(scene: Scene) -> bool:
    return any(indent_of(line) for line in scene.old)


def tabs_to_spaces(rng: random.Random, scene: Scene) -> Draft | None:
    """A tab file quoted with spaces; a space file is made a tab file first."""
    over = (
        scene
        if _pure(scene, "\t")
        else _reindented(scene, lambda indent: _swap(indent, " " * _width(scene), "\t"))
    )
    if over is None or not _indented(over):
        return None
    size = rng.choice((2, 4, 4, 8))
    return spoiled(over, lambda line: indent_of(line).replace("\t", " " * size) + line.lstrip(" \t"))


def spaces_to_tabs(_: random.Random, scene: Scene) -> Draft | None:
    size = _width(scene)
    if not _pure(scene, " ") or not _indented(scene) or not size:
        return None
    return spoiled(scene, lambda line: _swap(indent_of(line), " " * size, "\t") + line.lstrip(" \t"))


def dedented(_: random.Random, scene: Scene) -> Draft | None:
    """Common indentation taken away, in both."""
    shared = _shared_indent((*scene.old, *scene.new))
    if not shared or len(scene.old) < 2:
        return None
    return spoiled(scene, lambda line: line[len(shared) :] if line.strip() else line)


def overindented(rng: random.Random, scene: Scene) -> Draft | None:
    extra = rng.choice(("    ", "  ", "\t" if _pure(scene, "\t") else "    ", "        "))
    return spoiled(scene, lambda line: extra + line if line.strip() else line)


def underindented(rng: random.Random, scene: Scene) -> Draft | None:
    """A few columns short, not all."""
    shared = _shared_indent((*scene.old, *scene.new))
    if len(shared) < 2 or len(scene.old) < 2:
        return None
    count = rng.randrange(1, len(shared))
    return spoiled(scene, lambda line: line[count:] if line.strip() else line)


def wrong_width(_: random.Random, scene: Scene) -> Draft | None:
    """Two-column steps written as four, or the other way round."""
    size = _width(scene)
    if not _pure(scene, " ") or size not in {2, 4, 8} or not _indented(scene):
        return None
    other = {2: 4, 4: 2, 8: 4}[size]
    return spoiled(scene, lambda line: _swap(indent_of(line), " " * size, " " * other) + line.lstrip(" "))


def inner_space(rng: random.Random, scene: Scene) -> Draft | None:
    """Aligned columns closed up, or a blank added round an operator; never inside quotes."""
    if any(mark in line for line in (*scene.old, *scene.new) for mark in "'\"`"):
        return None
    runs, style = rng.random() < 0.6, rng.choice(("=", " = "))

    def change(line: str) -> str:
        text = line.lstrip(" \t")
        return indent_of(line) + (
            re.sub(r"[ \t]{2,}", " ", text) if runs else re.sub(r"(?<=\w) ?= ?(?=\w)", style, text)
        )

    return spoiled(scene, change, literal=True)


def _pure(scene: Scene, kind: str) -> bool:
    return all(not indent_of(line).strip(kind) for line in (*scene.old, *scene.new)) and bool(kind)


def _width(scene: Scene) -> int:
    """The step of a space-indented span, if every indentation is a multiple of it."""
    widths = {len(indent_of(line)) for line in (*scene.lines, *scene.new) if line.strip()}
    span = {len(indent_of(line)) for line in (*scene.old, *scene.new) if line.strip()}
    for size in (8, 4, 2):
        if span - {0} and all(width % size == 0 for width in span) and size in widths:
            return size
    return 0


def _swap(indent: str, unit: str, other: str) -> str:
    return indent.replace(unit, other) if unit else indent


def _reindented(scene: Scene, change: Line) -> Scene | None:
    if not _pure(scene, " ") or not _width(scene):
        return None

    def whole(line: str) -> str:
        return change(indent_of(line)) + line.lstrip(" \t")

    script = tuple(Step(whole(s.text), s.of, kept=s.kept) for s in scene.script)
    old = tuple(map(whole, scene.old))
    if any(" " in indent_of(line) for line in old):
        return None
    return Scene(scene.lang, tuple(map(whole, scene.lines)), scene.start, old, script, scene.shape)


def _shared_indent(lines: Iterable[str]) -> str:
    indents = [indent_of(line) for line in lines if line.strip()]
    first = min(indents, key=len, default="")
    return first if all(indent.startswith(first) for indent in indents) else ""


def blank_missing(rng: random.Random, scene: Scene) -> Draft | None:
    """A blank line of the file left out of both; the edit does not sit at that very gap."""
    blanks = [i for i, line in enumerate(scene.old) if not line.strip()]
    if not blanks:
        return None
    index = rng.choice(blanks)
    at = next((i for i, s in enumerate(scene.script) if s.kept and s.of == index), None)
    if at is None:
        return None
    near = [scene.script[i] for i in (at - 1, at + 1) if 0 <= i < len(scene.script)]
    if any(not s.kept for s in near) or [s.of for s in near] != [index - 1, index + 1]:
        return None
    if any(not s.text.strip() for s in near):
        return None
    old = (*scene.old[:index], *scene.old[index + 1 :])
    new = (*scene.new[:at], *scene.new[at + 1 :])
    return draft(scene, old, new, (scene.result(),))


def blank_extra(rng: random.Random, scene: Scene) -> Draft | None:
    if len(scene.old) < 2:
        return None
    index = rng.randrange(1, len(scene.old))
    at = next((i for i, s in enumerate(scene.script) if s.kept and s.of == index), None)
    if at is None or at == 0 or not scene.script[at - 1].kept or scene.script[at - 1].of != index - 1:
        return None
    old = (*scene.old[:index], "", *scene.old[index:])
    new = (*scene.new[:at], "", *scene.new[at:])
    return draft(scene, old, new, (scene.result(),))


def blank_edges(rng: random.Random, scene: Scene) -> Draft | None:
    """Blank lines before or after both arguments that the file has not."""
    head, tail = rng.choice((("\n", ""), ("", "\n\n"), ("\n", "\n\n"), ("\n\n\n", "")))
    old, new = (head + "\n".join(lines) + tail for lines in (scene.old, scene.new))
    return draft(scene, [old], [new], (scene.result(),))
