"""The ways a model gets a true edit's arguments wrong: every family here must apply."""

import itertools
import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.editbench.edits import Scene, Step, indent_of, loose

Line = Callable[[str], str]
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A case before it has a name: file, arguments, right results, and what was meant without the damage."""

    content: str | bytes
    old: str
    new: str
    accept: tuple[str | bytes, ...]
    meant: tuple[str, str] | None = None
    line: int | None = None
    seen: str | None = None


Family = Callable[[random.Random, Scene], Draft | None]


def spoil(scene: Scene, change: Line, *, literal: bool = False) -> tuple[Lines, Lines, tuple[str, ...]]:
    """Both arguments through one damage; kept lines stay equal. With `literal` the model's own spelling
    of what it changed or added is right as well, since nothing in the file says otherwise."""
    old = tuple(change(line) for line in scene.old)
    new = tuple(
        old[step.of] if step.kept and step.of is not None else change(step.text) for step in scene.script
    )
    return old, new, variants(scene, change if literal else str)


def variants(scene: Scene, change: Line) -> tuple[str, ...]:
    """Every result in which each line the edit touches is as meant or as the model spelt it."""
    choices = [
        (s.text,) if s.kept else tuple(dict.fromkeys((s.text, change(s.text)))) for s in scene.script
    ]
    free = sum(len(choice) > 1 for choice in choices)
    lines = itertools.product(*choices) if free <= 6 else ((tuple(c[-1] for c in choices)), scene.new)
    return tuple(dict.fromkeys(scene.result(tuple(one)) for one in lines))


def draft(
    scene: Scene,
    old: Iterable[str],
    new: Iterable[str],
    accept: tuple[str | bytes, ...],
    content: str | None = None,
) -> Draft | None:
    """The case, unless the damage turned out to be none."""
    body = scene.content() if content is None else content
    told, wanted = "\n".join(old), "\n".join(new)
    if told in body or told == wanted:
        return None
    return Draft(body, told, wanted, accept, meant=("\n".join(scene.old), "\n".join(scene.new)))


def spoiled(scene: Scene, change: Line, *, literal: bool = False) -> Draft | None:
    return draft(scene, *spoil(scene, change, literal=literal))


# --- nothing wrong -----------------------------------------------------------------------------


def exact(_: random.Random, scene: Scene) -> Draft | None:
    old, new = "\n".join(scene.old), "\n".join(scene.new)
    return Draft(scene.content(), old, new, (scene.result(),), meant=(old, new))


def exact_special(rng: random.Random, scene: Scene) -> Draft | None:
    """Characters that a careless replace expands."""
    odd = rng.choice(("$&", "$1", "$$", "\\1", "\\g<0>", "$`", "%s", "{0}", "\\\\n"))
    script = list(scene.script)
    script.append(Step(f"{indent_of(scene.old[-1])}{odd} marker {odd}", None))
    return exact(rng, Scene(scene.lang, scene.lines, scene.start, scene.old, tuple(script), scene.shape))


def exact_fragment(rng: random.Random, scene: Scene) -> Draft | None:
    """Part of one line, cut at word edges."""
    line = rng.choice(scene.old)
    words = list(re.finditer(r"\w+", line))
    if len(words) < 3:
        return None
    first, last = sorted(rng.sample(range(len(words)), 2))
    old = line[words[first].start() : words[last].end()]
    body = scene.content()
    at = body.find(old)
    if body.find(old, at + 1) >= 0 or len(old) < 6:
        return None
    new = (
        old[: words[first].end() - words[first].start()]
        + " marker "
        + old[words[first].end() - words[first].start() :]
    )
    return Draft(body, old, new, (body[:at] + new + body[at + len(old) :],), meant=(old, new))


def first_trimmed(_: random.Random, scene: Scene) -> Draft | None:
    """The indentation of the first line is lost, as when a model starts copying at the first letter."""
    if not indent_of(scene.old[0]) or not _same_edge(scene, 0):
        return None
    old, new = "\n".join(scene.old).lstrip(" \t"), "\n".join(scene.new).lstrip(" \t")
    return _only_once(scene, old, new)


def last_cut(rng: random.Random, scene: Scene) -> Draft | None:
    """The last line stops early, at the same place in both."""
    last = scene.old[-1]
    if not _same_edge(scene, -1):
        return None
    room = len(last.strip())
    if room < 6:
        return None
    cut = rng.randrange(1, room // 2)
    return _only_once(scene, "\n".join(scene.old)[:-cut], "\n".join(scene.new)[:-cut])


def both_stripped(_: random.Random, scene: Scene) -> Draft | None:
    """`.strip()` on both arguments."""
    if not _same_edge(scene, 0) or not _same_edge(scene, -1):
        return None
    return _only_once(scene, "\n".join(scene.old).strip(), "\n".join(scene.new).strip())


def _same_edge(scene: Scene, edge: int) -> bool:
    """Whether old and new begin (0) or end (-1) with the same line."""
    return bool(scene.script) and scene.script[edge].kept and scene.script[edge].of == edge % len(scene.old)


def _only_once(scene: Scene, old: str, new: str) -> Draft | None:
    body = scene.content()
    at = body.find(old)
    if body.find(old, at + 1) >= 0 or len(old) < 8 or old == new or len(scene.old) < 2:
        return None
    return Draft(body, old, new, (scene.result(),), meant=("\n".join(scene.old), "\n".join(scene.new)))


def whole_lines(_: random.Random, scene: Scene) -> Draft | None:
    """Both arguments end with the line end."""
    old, new = "\n".join(scene.old) + "\n", "\n".join((*scene.new, ""))
    return Draft(scene.content(), old, new, (scene.result(),), meant=(old, new))


# --- white space -------------------------------------------------------------------------------


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


# --- letters and signs --------------------------------------------------------------------------


def quote_style(rng: random.Random, scene: Scene) -> Draft | None:
    """One kind of quote for the other, where no line uses both."""
    if any('"' in line and "'" in line for line in (*scene.old, *scene.new)):
        return None
    table = {ord('"'): "'", ord("'"): '"'} if rng.random() < 0.5 else {ord('"'): "'"}
    return spoiled(scene, lambda line: line.translate(table), literal=True)


_SMART = {ord('"'): "”", ord("'"): "’", ord("-"): "–"}


def smart_signs(rng: random.Random, scene: Scene) -> Draft | None:
    """The model sends typographic quotes and dashes for the file's plain ones."""
    table = {key: _SMART[key] for key in rng.sample(sorted(_SMART), rng.choice((1, 2, 3)))}
    old, new, accept = spoil(scene, lambda line: line.translate(table), literal=True)
    return draft(scene, old, new, accept)


def plain_signs(rng: random.Random, scene: Scene) -> Draft | None:
    """The file is typographic, the model plain."""
    table = {ord('"'): rng.choice("“”"), ord("'"): "’", ord("-"): rng.choice("–—‑")}
    filed = tuple(line.translate(table) for line in scene.old)
    if filed == scene.old:
        return None
    script = tuple(
        Step(s.text.translate(table) if s.of is not None else s.text, s.of, kept=s.kept)
        for s in scene.script
    )
    over = Scene(scene.lang, (*scene.before, *filed, *scene.after), scene.start, filed, script, scene.shape)
    plain = dict(zip((s.text for s in over.script), scene.new, strict=True))
    return draft(over, scene.old, scene.new, variants(over, lambda line: plain[line]))


def odd_spaces(rng: random.Random, scene: Scene) -> Draft | None:
    """No-break or thin spaces in the arguments."""
    odd = rng.choice("\u00a0\u202f\u2009\u3000")
    where = rng.choice(("all", "inner"))

    def change(line: str) -> str:
        if where == "all":
            return line.replace(" ", odd)
        return indent_of(line) + line.lstrip(" \t").replace(" ", odd)

    old, new, accept = spoil(scene, change, literal=True)
    return draft(scene, old, new, accept)


def odd_spaces_in_file(rng: random.Random, scene: Scene) -> Draft | None:
    index = rng.randrange(len(scene.old))
    body = scene.old[index].strip()
    if " " not in body or any(s.of == index and not s.kept for s in scene.script):
        return None
    filed = list(scene.old)
    filed[index] = indent_of(filed[index]) + filed[index].lstrip(" \t").replace(" ", "\u00a0", 1)
    over = scene.with_old(tuple(filed))
    return draft(over, scene.old, scene.new, (over.result(),))


def zero_width(rng: random.Random, scene: Scene) -> Draft | None:
    odd = rng.choice("\u200b\u200c\ufeff\u2060")
    picks = [index for index, line in enumerate(scene.old) if len(line.strip()) > 4]
    if not picks:
        return None
    index = rng.choice(picks)
    line = scene.old[index]
    at = rng.randrange(len(indent_of(line)) + 1, len(line))
    bad = line[:at] + odd + line[at:]
    old = tuple(bad if i == index else text for i, text in enumerate(scene.old))
    if any(s.of == index and not s.kept for s in scene.script):
        return None
    new = tuple(bad if s.of == index else s.text for s in scene.script)
    return draft(scene, old, new, (scene.result(),))


def decomposed(rng: random.Random, scene: Scene) -> Draft | None:
    """Accents composed in one and not in the other."""
    index = rng.randrange(len(scene.old))
    line = scene.old[index]
    vowel = next((i for i, c in enumerate(line) if c in "aeiou" and i > len(indent_of(line))), None)
    if vowel is None or any(s.of == index and not s.kept for s in scene.script):
        return None
    composed = line[:vowel] + unicodedata.normalize("NFC", line[vowel] + "\u0301") + line[vowel + 1 :]
    split = unicodedata.normalize("NFD", composed)
    filed, told = (split, composed) if rng.random() < 0.5 else (composed, split)
    over = scene.with_old((*scene.old[:index], filed, *scene.old[index + 1 :]))
    old = (*scene.old[:index], told, *scene.old[index + 1 :])
    new = tuple(told if s.of == index else s.text for s in scene.script)
    return draft(over, old, new, (over.result(),))


# --- misspelling ---------------------------------------------------------------------------------


def misspell(rng: random.Random, word: str) -> str:
    """One slip of the pen inside a word."""
    at = rng.randrange(1, len(word) - 2)
    way = rng.randrange(4)
    if way == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if way == 1:
        return word[:at] + word[at + 1 :]
    if way == 2:
        return word[: at + 1] + word[at] + word[at + 1 :]
    return word[:at] + rng.choice("aeioutnrsl") + word[at + 1 :]


def _typo(rng: random.Random, scene: Scene, *, line_is: str) -> tuple[int, str, str] | None:
    touched = {s.of for s in scene.script if not s.kept and s.of is not None}
    left = {s.of for s in scene.script if s.kept}
    pool = [i for i in range(len(scene.old)) if (i in touched if line_is == "changed" else i in left)]
    words = [
        (i, w)
        for i in pool
        for w in re.findall(r"(?<![A-Za-z_0-9])[A-Za-z]{6,}(?![A-Za-z_0-9])", scene.old[i])
    ]
    if not words:
        return None
    index, word = rng.choice(words)
    bad = misspell(rng, word)
    plain = re.search(rf"\b{bad}\b", scene.content())
    if bad == word or plain or bad[-1] == "s" != word[-1]:
        return None
    return index, word, bad


def typo_kept(rng: random.Random, scene: Scene) -> Draft | None:
    """One misspelt word in a line the edit leaves alone, the same in both."""
    if (slip := _typo(rng, scene, line_is="kept")) is None:
        return None
    index, word, bad = slip
    wrong = re.sub(rf"\b{word}\b", bad, scene.old[index], count=1)
    old = tuple(wrong if i == index else line for i, line in enumerate(scene.old))
    new = tuple(wrong if s.kept and s.of == index else s.text for s in scene.script)
    return draft(scene, old, new, (scene.result(),))


def typo_healed(rng: random.Random, scene: Scene) -> Draft | None:
    """Misspelt in old only."""
    if (slip := _typo(rng, scene, line_is=rng.choice(("kept", "changed")))) is None:
        return None
    index, word, bad = slip
    wrong = re.sub(rf"\b{word}\b", bad, scene.old[index], count=1)
    old = tuple(wrong if i == index else line for i, line in enumerate(scene.old))
    return draft(scene, old, scene.new, (scene.result(),))


def typo_changed(rng: random.Random, scene: Scene) -> Draft | None:
    """Misspelt in a line the edit changes, the same in both."""
    if (slip := _typo(rng, scene, line_is="changed")) is None:
        return None
    index, word, bad = slip
    found = re.compile(rf"\b{word}\b")
    old = tuple(found.sub(bad, line) if i == index else line for i, line in enumerate(scene.old))
    new = tuple(found.sub(bad, s.text) if s.of == index else s.text for s in scene.script)
    return draft(scene, old, new, (scene.result(),))


# --- how arguments travel -------------------------------------------------------------------------


def escaped_json(_: random.Random, scene: Scene) -> Draft | None:
    """Escaped twice: the whole argument is a JSON string's inside."""
    old, new = (json.dumps("\n".join(lines), ensure_ascii=False)[1:-1] for lines in (scene.old, scene.new))
    return draft(scene, [old], [new], (scene.result(),))


def escaped_newlines(_: random.Random, scene: Scene) -> Draft | None:
    """`\\n` for line ends and nothing else."""
    if any("\\" in line for line in (*scene.old, *scene.new)) or len(scene.old) < 2:
        return None
    return draft(scene, ["\\n".join(scene.old)], ["\\n".join(scene.new)], (scene.result(),))


def escaped_quotes(_: random.Random, scene: Scene) -> Draft | None:
    if any("\\" in line for line in (*scene.old, *scene.new)):
        return None
    return spoiled(scene, lambda line: line.replace('"', '\\"'))


def entities(_: random.Random, scene: Scene) -> Draft | None:
    """`&lt;` for `<`, as from an XML tool call."""
    if any("&" in line and ";" in line for line in (*scene.old, *scene.new)):
        return None
    return spoiled(scene, lambda line: line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


NUMBERS = (
    "{:>6}\t",
    "{}\t",
    "{:>5}→",
    "{}: ",
    "{}:",
    "{}|",
    "{} | ",
    "{:>4} | ",
    "L{}: ",
    "{:>6}  ",
    "{}. ",
)


def line_numbers(rng: random.Random, scene: Scene) -> Draft | None:
    """The numbers of `read` copied along; the new text numbered on, or not at all."""
    form = rng.choice(NUMBERS)
    first = scene.start + 1
    old = tuple(form.format(first + i) + line for i, line in enumerate(scene.old))
    new = tuple(form.format(first + i) + line for i, line in enumerate(scene.new))
    return draft(scene, old, new if rng.random() < 0.7 else scene.new, (scene.result(),))


def fence(rng: random.Random, scene: Scene) -> Draft | None:
    if any(line.strip().startswith(("```", "~~~")) for line in (*scene.old, *scene.new)):
        return None
    opening = rng.choice(("```", f"```{scene.lang}"))
    new = (opening, *scene.new, "```") if rng.random() < 0.8 else scene.new
    return draft(scene, (opening, *scene.old, "```"), new, (scene.result(),))


ELISIONS = (
    "...",
    "// ...",
    "# ...",
    "// ... existing code ...",
    "# ... rest of the code ...",
    "/* ... */",
    "…",
)


def elision(rng: random.Random, scene: Scene) -> Draft | None:
    """Lines in the middle left out, in both; the edit lies wholly outside the gap."""
    size = len(scene.old)
    if size < 5:
        return None
    first = rng.randrange(1, size - 3)
    last = rng.randrange(first + 2, size)
    gap = set(range(first, last))
    touched = [i for i, step in enumerate(scene.script) if step.kept and step.of in gap]
    if [scene.script[i].of for i in touched] != sorted(gap) or touched[-1] - touched[0] + 1 != len(gap):
        return None
    mark = indent_of(scene.old[first]) + rng.choice(ELISIONS)
    old = (*scene.old[:first], mark, *scene.old[last:])
    new = (*scene.new[: touched[0]], mark, *scene.new[touched[-1] + 1 :])
    if loose(old[:first]).strip() == "" or any(e in scene.content() for e in (mark + "\n",)):
        return None
    return draft(scene, old, new, (scene.result(),))


def diff_markers(_: random.Random, scene: Scene) -> Draft | None:
    """Old lines sent with `-`, new ones with `+`, as in a diff."""
    if len(scene.old) < 2 or any(line.lstrip().startswith(("-", "+")) for line in (*scene.old, *scene.new)):
        return None
    kept = {s.of for s in scene.script if s.kept}
    old = tuple((" " if i in kept else "-") + line for i, line in enumerate(scene.old))
    new = tuple((" " if s.kept else "+") + s.text for s in scene.script)
    if not any(line.startswith("-") for line in old) or not any(line.startswith("+") for line in new):
        return None
    return draft(scene, old, new, (scene.result(),))


# --- blank lines ------------------------------------------------------------------------------------


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


# --- the file's own ways ----------------------------------------------------------------------------


def _recoded(scene: Scene, change: Line) -> Draft | None:
    plain = exact(random.Random(0), scene)
    assert plain is not None
    accept = tuple(change(text) for text in plain.accept if isinstance(text, str))
    return Draft(change(scene.content()), plain.old, plain.new, accept, meant=plain.meant)


def crlf_file(_: random.Random, scene: Scene) -> Draft | None:
    return _recoded(scene, lambda text: text.replace("\n", "\r\n"))


def cr_file(_: random.Random, scene: Scene) -> Draft | None:
    return _recoded(scene, lambda text: text.replace("\n", "\r"))


def crlf_arguments(rng: random.Random, scene: Scene) -> Draft | None:
    old, new = ("\r\n".join(lines) for lines in (scene.old, scene.new))
    body, result = scene.content(), scene.result()
    if rng.random() < 0.3:
        body, result = body.replace("\n", "\r\n"), result.replace("\n", "\r\n")
    return Draft(body, old, new, (result,), meant=("\n".join(scene.old), "\n".join(scene.new)))


def crlf_mixed(rng: random.Random, scene: Scene) -> Draft | None:
    """Each line keeps its own end; an added line takes that of the line before or after it."""
    ends = [rng.choice(("\n", "\r\n")) for _ in scene.lines]
    span = rng.choice(("\n", "\r\n"))
    first, last = scene.start, scene.start + len(scene.old)
    ends[max(0, first - 1) : last + 1] = [span] * (last + 1 - max(0, first - 1))
    ends = ends[: len(scene.lines)]
    body = "".join(line + end for line, end in zip(scene.lines[:-1], ends, strict=False)) + scene.lines[-1]
    head = "".join(line + end for line, end in zip(scene.before, ends, strict=False))
    tail = (
        "".join(line + end for line, end in zip(scene.after[:-1], ends[last:], strict=False))
        + scene.after[-1]
    )
    middle = "".join(line + span for line in scene.new)
    old, new = "\n".join(scene.old), "\n".join(scene.new)
    return Draft(body, old, new, (head + middle + tail,), meant=(old, new))


def bom(_: random.Random, scene: Scene) -> Draft | None:
    draw = Scene(scene.lang, scene.lines, scene.start, scene.old, scene.script, scene.shape)
    return _recoded(draw, lambda text: "\ufeff" + text)


def no_final_newline(rng: random.Random, scene: Scene) -> Draft | None:
    """The span is the end of a file that has no final line end; the arguments end with one."""
    body = "\n".join((*scene.before, *scene.old))
    result = "\n".join((*scene.before, *scene.new))
    tail = "\n" if rng.random() < 0.7 else ""
    old, new = "\n".join(scene.old) + tail, "\n".join(scene.new) + tail
    if not scene.new or body.count(old.rstrip("\n")) != 1:
        return None
    return Draft(body, old, new, (result,), meant=("\n".join(scene.old), "\n".join(scene.new)))


FOREIGN = (
    b"caf\xe9 \xa9",
    b"\xb0\xa1\xc4\xe3\xba\xc3",
    b"\x93quoted\x94 \x85",
    b"broken \xe2\x82",
    b"\xfa\xff\xfe",
)


def foreign_bytes(rng: random.Random, scene: Scene) -> Draft | None:
    """Bytes that are no UTF-8, away from the span."""
    odd = rng.choice(FOREIGN)
    head = rng.random() < 0.5
    blobs = []
    for text in (scene.content(), scene.result()):
        data = text.encode()
        blobs.append(odd + b"\n" + data if head else data + odd + b"\n")
    old, new = "\n".join(scene.old), "\n".join(scene.new)
    if not (old + new).isascii():
        return None
    return Draft(blobs[0], old, new, (blobs[1],), meant=(old, new))
