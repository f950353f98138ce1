"""A second generator: edits as models were seen to send them, resent, shortened, misremembered, invented.

Written from the descriptions of real sessions alone, before its author had read a line of the matcher
(docs/decisions/05-edits-and-patches.md says what was known).
"""

import random
import re
from collections.abc import Iterator

from bench.editbench.cases import Case
from bench.editbench.corpus import Specimen, sample
from bench.editbench.patch_errors import PATCH_FAMILIES
from bench.editbench.spans import (
    ModelError,
    Sent,
    Span,
    a_line_like,
    a_span,
    indentation,
    reworded,
    with_lines,
)

PER_FAMILY = 60
TRIES = 300
_STEP = 4
_NOTES = (
    "the remaining options stay unchanged for older clients",
    "everything else keeps its existing behaviour",
    "other callers rely on the rest of this staying as it is",
)
_OMISSIONS = (
    "... rest of the code unchanged ...",
    "... existing code ...",
    "rest of the function remains the same",
)
_LINE_COMMENT = {
    "python": "#",
    "shell": "#",
    "c": "//",
    "javascript": "//",
    "typescript": "//",
    "perl": "#",
}


def generate(seed: int, *, reduced: bool = False) -> Iterator[Case]:
    """Every family over files of this machine."""
    specimens = sample(seed, per_language=10 if reduced else 30)
    count = PER_FAMILY // 5 if reduced else PER_FAMILY
    for family in (*EDIT_FAMILIES, *PATCH_FAMILIES):
        rng = random.Random(f"{seed} {family.name}")
        made = 0
        for _ in range(count * TRIES):
            if made == count:
                break
            specimen = rng.choice(specimens)
            if (sent := family.make(rng, specimen, specimens)) is not None:
                yield _case(sent, family, specimen, made)
                made += 1


def _case(sent: Sent, family: ModelError, specimen: Specimen, number: int) -> Case:
    return Case(
        id=f"{family.name}-{number}",
        family=family.name,
        lang=specimen.lang,
        content=sent.content.encode(),
        old=sent.old,
        new=sent.new,
        patch=sent.patch,
        accept=tuple(text.encode() for text in sent.accept),
        kind=family.kind,
    )


def _exactly(content: str, old: str, new: str) -> Sent | None:
    """An edit that any editor could make: one place, byte for byte."""
    if content.count(old) != 1 or old == new:
        return None
    return Sent(content, old=old, new=new, accept=(content.replace(old, new),))


def copied_exactly(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    span = a_span(rng, specimen.text, fewest=1, most=12)
    return _exactly(specimen.text, span.old_text, span.new_text) if span else None


def cut_inside_a_word(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The piece begins and ends within words, with more than one word in it: nobody means a whole name."""
    line = rng.choice(specimen.text.split("\n"))
    words = list(re.finditer(r"[A-Za-z_]{5,}", line))
    if len(words) < 3:
        return None
    first, last = words[0], words[-1]
    piece = line[first.start() + 2 : last.end() - 2]
    middle = words[1]
    at = middle.end() - first.start() - 2
    return _exactly(specimen.text, piece, piece[:at] + "_ext" + piece[at:])


def first_line_a_blank_short(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The first line lost one to three blanks, which is no step; all other lines are as in the file."""
    span = a_span(rng, specimen.text, fewest=2, most=8)
    if span is None or span.edited == 0:
        return None
    width = indentation(span.lines[0])
    if width < _STEP or "\t" in span.lines[0][:width]:
        return None
    cut = rng.randint(1, 3)
    return _exactly(specimen.text, span.old_text[cut:], span.new_text[cut:])


def one_line_less_deep(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """One line is sent at a shallower depth, and what replaces it is laid out from there."""
    lines = specimen.text.split("\n")
    at = rng.randrange(len(lines))
    line, width = lines[at], indentation(lines[at])
    if (
        width < 3 * _STEP
        or "\t" in line
        or line != line.rstrip()
        or len(line.strip()) < 12
        or specimen.text.count(line.strip()) != 1
    ):
        return None
    shallow = " " * rng.choice((0, _STEP))
    fresh = a_line_like(rng, line)
    if fresh is None or fresh.strip() in specimen.text:
        return None
    added = [line.strip(), fresh.strip(), " " * _STEP + fresh.strip() + "2"]
    after = [*lines[:at], *(" " * width + text for text in added), *lines[at + 1 :]]
    return Sent(
        specimen.text,
        old=shallow + line.strip(),
        new="\n".join(shallow + text for text in added),
        accept=("\n".join(after),),
    )


def line_deleted_less_deep(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """A whole line goes; it was sent with less indentation than it has."""
    lines = specimen.text.split("\n")
    at = rng.randrange(len(lines) - 1)
    line, width = lines[at], indentation(lines[at])
    if width <= _STEP or "\t" in line or specimen.text.count(line.strip()) != 1 or len(line.strip()) < 6:
        return None
    sent = " " * rng.randrange(width) + line.strip() + "\n"
    return Sent(specimen.text, old=sent, new="", accept=("\n".join([*lines[:at], *lines[at + 1 :]]),))


def note_that_is_no_omission(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """A comment speaks of what stays unchanged, and no line of the old text is missing."""
    sign = _LINE_COMMENT.get(specimen.lang)
    span = a_span(rng, specimen.text, fewest=2, most=6, kind="insert")
    if sign is None or span is None:
        return None
    line = span.lines[span.edited]
    note = line[: indentation(line)] + f"{sign} {rng.choice(_NOTES)}"
    lines = [*span.new_lines[: span.edited + 1], note, *span.new_lines[span.edited + 1 :]]
    return _exactly(specimen.text, span.old_text, "\n".join(lines))


def new_line_as_elsewhere(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The added line stands elsewhere in the file already: that is no sign of an edit made before."""
    span = a_span(rng, specimen.text, fewest=2, most=6, kind="insert")
    if span is None:
        return None
    lines = specimen.text.split("\n")
    near = set(lines[max(0, span.start - 8) : span.end + 8])
    far = [line for line in lines if line.strip() and line not in near and len(line.strip()) > 8]
    if not far:
        return None
    put = [*span.old_lines[: span.edited + 1], rng.choice(far), *span.old_lines[span.edited + 1 :]]
    return _exactly(specimen.text, span.old_text, "\n".join(put))


def context_misremembered(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """One line of the context is not as the model says, and the change does not touch it."""
    return _misremembered(rng, specimen.text, specimen.text)


def _misremembered(rng: random.Random, told: str, content: str) -> Sent | None:
    span = a_span(rng, told, fewest=7, most=14)
    if span is None or told.count(span.old_text) != 1:
        return None
    away = [i for i, line in enumerate(span.lines) if abs(i - span.edited) > 2 and len(line.strip()) > 8]
    if not away:
        return None
    at = rng.choice(away)
    wrong = reworded(rng, span.lines[at])
    if wrong is None or wrong.strip() in told:
        return None
    moved = at if at < span.edited else at + len(span.new_lines) - len(span.old_lines)
    old = [*span.old_lines[:at], wrong, *span.old_lines[at + 1 :]]
    new = [*span.new_lines[:moved], wrong, *span.new_lines[moved + 1 :]]
    after = with_lines(told, span)
    return Sent(content, old="\n".join(old), new="\n".join(new), accept=(after,))


def insertion_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The same insertion again; its old text still stands, inside what it became."""
    span = a_span(rng, specimen.text, fewest=1, most=8, kind="insert")
    if span is None or specimen.text.count(span.old_text) != 1:
        return None
    after = with_lines(specimen.text, span)
    return Sent(after, old=span.old_text, new=span.new_text, accept=(after,))


def replacement_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    span = a_span(rng, specimen.text, fewest=2, most=8, kind="change")
    if span is None or specimen.text.count(span.old_text) != 1:
        return None
    after = with_lines(specimen.text, span)
    if span.old_text in after:
        return None
    return Sent(after, old=span.old_text, new=span.new_text, accept=(after,))


def addition_within_a_line_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """`a and b` became `a and b and c`; the model sends it again."""
    line = rng.choice(specimen.text.split("\n"))
    if len(line.strip()) < 14 or specimen.text.count(line.strip()) != 1:
        return None
    old = line.strip()
    new = old + rng.choice((" and ready_now", ", extra_item", " + offset_now"))
    after = specimen.text.replace(old, new)
    return Sent(after, old=old, new=new, accept=(after,))


def line_wrapped_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """A guard was put before a line; the model sends it again, with the line alone as its old text."""
    lines = specimen.text.split("\n")
    at = rng.randrange(len(lines))
    line = lines[at]
    fresh = a_line_like(rng, line)
    if fresh is None or len(line.strip()) < 10 or specimen.text.count(line.strip()) != 1:
        return None
    after = "\n".join([*lines[:at], fresh, line, *lines[at + 1 :]])
    return (
        Sent(after, old=line + "\n", new=f"{fresh}\n{line}\n", accept=(after,)) if fresh != line else None
    )


def invented(rng: random.Random, specimen: Specimen, others: list[Specimen]) -> Sent | None:
    """Text of another file of the same language, with names that no file has."""
    other = rng.choice([one for one in others if one.lang == specimen.lang] or others)
    span = a_span(rng, other.text, fewest=2, most=10)
    if span is None or other.text == specimen.text:
        return None
    present = {line.strip() for line in specimen.text.split("\n")}
    wordy = [line.strip() for line in span.lines if len(line.strip()) > 4]
    if not wordy or any(line in present for line in wordy):
        return None
    return Sent(specimen.text, old=span.old_text, new=span.new_text, accept=())


def edited_line_is_another(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The very line that is to be changed is not what the model says."""
    span = a_span(rng, specimen.text, fewest=1, most=9, kind="change")
    if span is None:
        return None
    wrong = reworded(rng, span.lines[span.edited])
    fresh = wrong and a_line_like(rng, wrong)
    if not wrong or not fresh or wrong.strip() in specimen.text:
        return None
    # Who remembers a line wrongly changes it as remembered: what is new knows nothing of the real one.
    above, below = span.old_lines[: span.edited], span.old_lines[span.edited + 1 :]
    old, new = ("\n".join([*above, line, *below]) for line in (wrong, fresh))
    return Sent(specimen.text, old=old, new=new, accept=())


def misremembered_and_twice(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """A misremembered context that fits two copies of the block equally well."""
    sent = _misremembered(rng, specimen.text, specimen.text)
    if sent is None:
        return None
    span_lines = sent.old.split("\n")
    lines = specimen.text.split("\n")
    same = [i for i, line in enumerate(lines) if line == span_lines[0]]
    if len(same) != 1:
        return None
    block = lines[same[0] : same[0] + len(span_lines)]
    twice = "\n".join([*lines, *block, ""])
    return Sent(twice, old=sent.old, new=sent.new, accept=())


def code_left_out(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """A comment stands where lines of the old text were."""
    sign = _LINE_COMMENT.get(specimen.lang)
    span = a_span(rng, specimen.text, fewest=7, most=14)
    if sign is None or span is None or specimen.text.count(span.old_text) != 1 or span.edited > 2:
        return None
    kept = span.new_lines[: span.edited + 2]
    blank = span.lines[span.edited][: indentation(span.lines[span.edited])]
    new = "\n".join([*kept, f"{blank}{sign} {rng.choice(_OMISSIONS)}"])
    return Sent(specimen.text, old=span.old_text, new=new, accept=())


def nothing_changed(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    span: Span | None = a_span(rng, specimen.text, fewest=1, most=8)
    if span is None:
        return None
    return Sent(specimen.text, old=span.old_text, new=span.old_text, accept=())


EDIT_FAMILIES = (
    *(
        ModelError("apply", make)
        for make in (
            copied_exactly,
            cut_inside_a_word,
            first_line_a_blank_short,
            one_line_less_deep,
            line_deleted_less_deep,
            note_that_is_no_omission,
            new_line_as_elsewhere,
            context_misremembered,
        )
    ),
    *(
        ModelError("done", make)
        for make in (
            insertion_resent,
            replacement_resent,
            addition_within_a_line_resent,
            line_wrapped_resent,
        )
    ),
    *(
        ModelError("refuse", make)
        for make in (
            invented,
            edited_line_is_another,
            misremembered_and_twice,
            code_left_out,
            nothing_changed,
        )
    ),
)
