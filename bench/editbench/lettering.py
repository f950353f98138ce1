"""Quotes, typographic signs and misspelt words: these must apply."""

import random
import re
import unicodedata

from bench.editbench.drafting import Draft, draft, spoil, spoiled, variants
from bench.editbench.edits import Scene, Step, indent_of


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
