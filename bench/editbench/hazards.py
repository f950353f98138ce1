"""Cases where a careful person would not touch the file: all must be refused."""

import random
import re
from dataclasses import replace

from bench.editbench import eliding, harmless, lettering
from bench.editbench.drafting import Draft
from bench.editbench.edits import WORDS, Scene, indent_of, loose, one_word, renamed

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_SIGN = re.compile(r"==|!=|<=|>=|&&|\|\||(?<= )[<>+*-](?= )")
_OTHER_SIGN = {
    "==": "!=",
    "!=": "==",
    "<=": ">=",
    ">=": "<",
    "&&": "||",
    "||": "&&",
    "<": ">",
    ">": "<",
    "+": "-",
    "-": "+",
    "*": "/",
}


def _refuse(scene: Scene, content: str, old: str | None = None, new: str | None = None) -> Draft | None:
    """A must-refuse case, unless the words of `old` still stand somewhere after all."""
    told = "\n".join(scene.old) if old is None else old
    wanted = "\n".join(scene.new) if new is None else new
    if loose(told.split("\n")) in loose(content.split("\n")) or told in content or told == wanted:
        return None
    return Draft(content, told, wanted, ())


def _substantial(scene: Scene) -> bool:
    return sum(map(str.isalnum, "".join(scene.old))) >= 16


def deleted(_: random.Random, scene: Scene) -> Draft | None:
    return _refuse(scene, "\n".join((*scene.before, *scene.after)))


def deleted_decoy(rng: random.Random, scene: Scene) -> Draft | None:
    """The block is gone; a sibling with one name changed is still there."""
    twin = renamed(rng, scene.old)
    return _refuse(scene, scene.content(twin)) if twin else None


def _swapped_in_file(scene: Scene, index: int, line: str) -> Draft | None:
    return _refuse(scene, scene.content((*scene.old[:index], line, *scene.old[index + 1 :])))


def literal_changed(rng: random.Random, scene: Scene) -> Draft | None:
    """A number in the span is another one now."""
    spots = [(i, m) for i, line in enumerate(scene.old) for m in _NUMBER.finditer(line)]
    if not spots:
        return None
    index, number = rng.choice(spots)
    other = rng.choice((str(int(number[0][:15]) + 1), number[0] + "0", "99", number[0] + number[0][-1]))
    line = scene.old[index]
    return _swapped_in_file(scene, index, line[: number.start()] + other + line[number.end() :])


def word_changed(rng: random.Random, scene: Scene) -> Draft | None:
    index = rng.randrange(len(scene.old))
    line = one_word(rng, scene.old[index])
    return _swapped_in_file(scene, index, line) if line else None


def operator_changed(rng: random.Random, scene: Scene) -> Draft | None:
    spots = [(i, m) for i, line in enumerate(scene.old) for m in _SIGN.finditer(line)]
    if not spots:
        return None
    index, sign = rng.choice(spots)
    line = scene.old[index]
    return _swapped_in_file(scene, index, line[: sign.start()] + _OTHER_SIGN[sign[0]] + line[sign.end() :])


def twin_exact(_: random.Random, scene: Scene) -> Draft | None:
    content = "\n".join((*scene.before, *scene.old, *scene.after, *scene.old, ""))
    return Draft(content, "\n".join(scene.old), "\n".join(scene.new), ())


def twin_indent(_: random.Random, scene: Scene) -> Draft | None:
    """The block twice at different depths, the argument at neither."""
    if len(scene.old) < 2 or any(not line.strip() for line in scene.old[:1]):
        return None
    deeper = tuple("    " + line if line.strip() else line for line in scene.old)
    told = tuple("  " + line if line.strip() else line for line in scene.old)
    wanted = tuple("  " + line if line.strip() else line for line in scene.new)
    content = "\n".join((*scene.before, *scene.old, *scene.after, *deeper, ""))
    old = "\n".join(told)
    return Draft(content, old, "\n".join(wanted), ()) if old not in content else None


def twin_quotes(_: random.Random, scene: Scene) -> Draft | None:
    """Two candidates that differ from the argument each in its own quotes or blanks."""
    if not any('"' in line for line in scene.old) or any("'" in line for line in scene.old):
        return None
    one = tuple(line.replace('"', "'") for line in scene.old)
    two = tuple(line.replace('"', "`") for line in scene.old)
    content = "\n".join((*scene.before, *one, *scene.after, *two, ""))
    old = "\n".join(scene.old)
    return Draft(content, old, "\n".join(scene.new), ()) if old not in content else None


def sibling(rng: random.Random, scene: Scene) -> Draft | None:
    """Same first and last line, other lines between."""
    if len(scene.old) < 3:
        return None
    indent = indent_of(scene.old[1])
    middle = [f"{indent}{rng.choice(WORDS)}({rng.choice(WORDS)})" for _ in scene.old[1:-1]]
    content = scene.content((scene.old[0], *middle, scene.old[-1]))
    touched = [s for s in scene.script if s.of not in {0, len(scene.old) - 1} and not s.kept]
    return _refuse(scene, content) if touched else None


def drift_far(rng: random.Random, scene: Scene) -> Draft | None:
    """Right text, more than three lines from where the patch says."""
    line = scene.start + 1 + rng.choice((-1, 1)) * rng.randrange(4, 12)
    plain = harmless.exact(rng, scene)
    assert plain is not None
    return Draft(plain.content, plain.old, plain.new, (), line=line) if line > 0 else None


def other_file(_: random.Random, scene: Scene) -> Draft | None:
    """The file here is made of every other line: the text belongs to another one."""
    half = [line for i, line in enumerate((*scene.before, *scene.after)) if i % 2]
    return _refuse(scene, "\n".join((*half, ""))) if _substantial(scene) else None


def line_missing(rng: random.Random, scene: Scene) -> Draft | None:
    """Old leaves out a line that says something, and does not mark it."""
    kept = [s.of for s in scene.script if s.kept and s.of is not None and 0 < s.of < len(scene.old) - 1]
    picks = [i for i in kept if any(map(str.isalnum, scene.old[i]))]
    if not picks:
        return None
    index = rng.choice(picks)
    old = "\n".join(line for i, line in enumerate(scene.old) if i != index)
    new = "\n".join(s.text for s in scene.script if s.of != index)
    return _refuse(scene, scene.content(), old, new)


def line_extra(rng: random.Random, scene: Scene) -> Draft | None:
    """Old has a line that the file has not."""
    index = rng.randrange(1, len(scene.old) + 1)
    line = f"{indent_of(scene.old[index - 1])}{rng.choice(WORDS)} = {rng.choice(WORDS)}"
    old = "\n".join((*scene.old[:index], line, *scene.old[index:]))
    return _refuse(scene, scene.content(), old)


def lines_swapped(rng: random.Random, scene: Scene) -> Draft | None:
    if len(scene.old) < 3:
        return None
    at = rng.randrange(len(scene.old) - 1)
    told = [*scene.old]
    told[at], told[at + 1] = told[at + 1], told[at]
    return _refuse(scene, scene.content(), "\n".join(told))


def _with_word(
    scene: Scene, index: int, word: re.Match[str], other: str, *, extra: str = ""
) -> Draft | None:
    line = scene.old[index]
    told = line[: word.start()] + other + line[word.end() :]
    old = "\n".join((*scene.old[:index], told, *scene.old[index + 1 :]))
    new = "\n".join(told if s.kept and s.of == index else s.text for s in scene.script)
    return _refuse(scene, scene.content() + extra, old, new)


def _a_word(
    rng: random.Random, scene: Scene, shape: str = r"(?<!\w)[A-Za-z]{6,}(?!\w)"
) -> tuple[int, re.Match[str]] | None:
    kept = {s.of for s in scene.script if s.kept}
    spots = [(i, m) for i, line in enumerate(scene.old) if i in kept for m in re.finditer(shape, line)]
    return rng.choice(spots) if spots else None


def symbol_misspelt(rng: random.Random, scene: Scene) -> Draft | None:
    """One letter off, and the file knows that spelling as another name."""
    if (spot := _a_word(rng, scene)) is None:
        return None
    index, word = spot
    other = lettering.misspell(rng, word[0])
    return _with_word(scene, index, word, other, extra=f"{other} = 0\n") if other != word[0] else None


def number_misspelt(rng: random.Random, scene: Scene) -> Draft | None:
    """A digit off, alone or in a name."""
    if (spot := _a_word(rng, scene, r"(?<!\w)[A-Za-z_]*\d+(?!\w)")) is None:
        return None
    index, word = spot
    other = word[0][:-1] + str((int(word[0][-1]) + rng.randrange(1, 9)) % 10)
    return _with_word(scene, index, word, other)


def plural(rng: random.Random, scene: Scene) -> Draft | None:
    """Singular for plural, or a letter at the end that makes another word."""
    if (spot := _a_word(rng, scene)) is None:
        return None
    index, word = spot
    other = word[0][:-1] if word[0].endswith("s") else word[0] + rng.choice("ssrd")
    return _with_word(scene, index, word, other)


def case_changed(rng: random.Random, scene: Scene) -> Draft | None:
    """Same letters, other case: in most languages another name."""
    if (spot := _a_word(rng, scene)) is None:
        return None
    index, word = spot
    other = rng.choice((word[0].upper(), word[0].swapcase(), word[0][0].swapcase() + word[0][1:]))
    old_line = scene.old[index]
    told = old_line[: word.start()] + other + old_line[word.end() :]
    if told in scene.content():
        return None
    return _with_word(scene, index, word, other)


OMISSIONS = (
    "// ... rest of code unchanged ...",
    "# ... existing code ...",
    "# rest of the function remains the same",
    "/* ... rest of file ... */",
    "// (unchanged)",
)


def omission(rng: random.Random, scene: Scene) -> Draft | None:
    """The new text leaves code out with a note that the old text does not have."""
    if len(scene.old) < 3:
        return None
    indent = indent_of(scene.old[1])
    new = "\n".join((scene.new[0] if scene.new else "", indent + rng.choice(OMISSIONS)))
    return Draft(scene.content(), "\n".join(scene.old), new, ())


def same(_: random.Random, scene: Scene) -> Draft | None:
    old = "\n".join(scene.old)
    return Draft(scene.content(), old, old, ())


def elision_one_sided(rng: random.Random, scene: Scene) -> Draft | None:
    """Old leaves lines out, new does not say where they go."""
    if len(scene.old) < 4:
        return None
    mark = indent_of(scene.old[1]) + rng.choice(eliding.ELISIONS)
    old = "\n".join((scene.old[0], mark, scene.old[-1]))
    new = "\n".join((scene.old[0], f"{indent_of(scene.old[1])}{rng.choice(WORDS)}()", scene.old[-1]))
    return Draft(scene.content(), old, new, ()) if old not in scene.content() else None


def stale_conflict(rng: random.Random, scene: Scene) -> Draft | None:
    """The very line that is to change was changed by someone else since it was read."""
    changed = [s.of for s in scene.script if not s.kept and s.of is not None]
    if not changed:
        return None
    index = rng.choice(changed)
    line = one_word(rng, scene.old[index])
    # Where both made the same change they agree, and there is nothing to refuse.
    case = _swapped_in_file(scene, index, line) if line and line not in scene.new else None
    return replace(case, seen=scene.content()) if case else None


def nesting_changed(rng: random.Random, scene: Scene) -> Draft | None:
    """The same lines at other relative depths are other code."""
    picks = [
        i
        for i in range(1, len(scene.old))
        if scene.old[i].strip() and indent_of(scene.old[i]) == indent_of(scene.old[0])
    ]
    if not picks or len(scene.old) < 3 or not {s.of for s in scene.script if s.of is None or not s.kept}:
        return None
    index = rng.choice(picks)
    old = list(scene.old)
    old[index] = ("\t" if old[index].startswith("\t") else "    ") + old[index]
    if any(s.of == index for s in scene.script if not s.kept):
        return None
    new = [old[index] if s.of == index else s.text for s in scene.script]
    return Draft(scene.content(), "\n".join(old), "\n".join(new), ())
