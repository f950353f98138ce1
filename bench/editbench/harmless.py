"""Nothing wrong with the arguments, or only the file has its own ways: these must apply."""

import random
import re

from bench.editbench.drafting import Draft, Line
from bench.editbench.edits import WORDS, Scene, Step, indent_of


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


def inside_word(rng: random.Random, scene: Scene) -> Draft | None:
    """The only hit lies inside a longer name: it is exact and stands once, so it is replaced there."""
    words = [w for line in scene.old for w in re.findall(r"(?<!\w)[a-z]{4,}(?!\w)", line)]
    if not words:
        return None
    word, other = rng.choice(words), rng.choice(WORDS)
    longer = rng.choice((f"{word}{other}", f"{other}_{word}", f"do_{word}", f"{word}2"))
    content = re.sub(rf"\w*{word}\w*", "x", scene.content())
    spot = scene.start
    lines = content.split("\n")
    content = "\n".join((*lines[:spot], f"{longer}(1)", *lines[spot:]))
    wanted = rng.choice((other, f"{other}_{word}"))
    if content.count(word) != 1 or wanted in content:
        return None
    return Draft(content, word, wanted, (content.replace(word, wanted),))


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
