"""The second generator's patches: scopes, hunks out of order, equal hunks, hunks of context alone, resent ones."""

import itertools
import random

from bench.editbench.corpus import Specimen
from bench.editbench.spans import ModelError, Sent, Span, a_line_like, a_name, a_span, reworded, with_lines

_CONTEXT = 3


def _envelope(*hunks: str) -> str:
    return "\n".join(["*** Begin Patch", "*** Update File: a.txt", *hunks, "*** End Patch"])


def _hunk(text: str, span: Span, header: str = "@@", *, context: int = _CONTEXT) -> str:
    """The span's change with so many lines of the file around it."""
    lines = text.split("\n")
    at = span.start + span.edited
    above = [f" {line}" for line in lines[max(0, at - context) : at]]
    below = [f" {line}" for line in lines[at + 1 : at + 1 + context]]
    line = span.lines[span.edited]
    match span.fresh:
        case (first, fresh) if first == line:
            middle = [f" {line}", f"+{fresh}"]
        case fresh:
            middle = [f"-{line}", *(f"+{one}" for one in fresh)]
    return "\n".join([header, *above, *middle, *below])


def _old_of(hunk: str) -> str:
    return "\n".join(line[1:] for line in hunk.split("\n")[1:] if not line.startswith("+"))


def _spans(rng: random.Random, text: str, count: int) -> list[Span] | None:
    """Changes well apart, in file order, each with a context that stands once."""
    found: list[Span] = []
    for _ in range(40):
        span = a_span(rng, text, fewest=1, most=3)
        if span is None or text.count(_old_of(_hunk(text, span))) != 1:
            continue
        if all(abs(span.start - other.start) > 4 * _CONTEXT for other in found):
            found.append(span)
        if len(found) == count:
            return sorted(found, key=lambda one: one.start)
    return None


def _applied(text: str, spans: list[Span]) -> str:
    for span in sorted(spans, key=lambda one: -one.start):
        text = with_lines(text, span)
    return text


def patch_of_hunks(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    spans = _spans(rng, specimen.text, rng.randint(1, 3))
    if spans is None:
        return None
    hunks = [_hunk(specimen.text, span) for span in spans]
    return Sent(specimen.text, patch=_envelope(*hunks), accept=(_applied(specimen.text, spans),))


def patch_out_of_order(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    spans = _spans(rng, specimen.text, rng.randint(2, 4))
    if spans is None:
        return None
    hunks = [_hunk(specimen.text, span) for span in reversed(spans)]
    return Sent(specimen.text, patch=_envelope(*hunks), accept=(_applied(specimen.text, spans),))


def _repeated(rng: random.Random, text: str, places: int) -> tuple[list[str], list[int], str] | None:
    """The file with one line more, put at several places well apart below lines that stand once."""
    lines = text.split("\n")
    once = [
        i
        for i, line in enumerate(lines[:-1])
        if len(line.strip()) > 8 and lines.count(line) == 1 and text.count(line.strip()) == 1
    ]
    if len(once) < places * 8:
        return None
    marks = sorted(rng.sample(once, places))
    if any(after - before < 8 for before, after in itertools.pairwise(marks)):
        return None
    line = a_line_like(rng, lines[marks[0]])
    if line is None or line.strip() in text:
        return None
    for mark in reversed(marks):
        lines.insert(mark + 1, line)
    return lines, [mark + number for number, mark in enumerate(marks)], line


def patch_below_a_locator(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """The line stands several times; a hunk of one kept line, or the header, says which is meant: the last."""
    drawn = _repeated(rng, specimen.text, rng.randint(2, 3))
    if drawn is None:
        return None
    lines, marks, line = drawn
    put = line + "  " + a_name(rng)
    after = [*lines[: marks[-1] + 1], put, *lines[marks[-1] + 2 :]]
    mark = lines[marks[-1]]
    header = rng.choice((f"@@ {mark.strip()}", f"@@\n {mark}\n@@"))
    hunk = f"{header}\n-{line}\n+{put}"
    return Sent("\n".join(lines), patch=_envelope(hunk), accept=("\n".join(after),))


def patch_of_equal_hunks(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """As many equal hunks as there are places."""
    drawn = _repeated(rng, specimen.text, rng.randint(2, 3))
    if drawn is None:
        return None
    lines, marks, line = drawn
    put = line + "  " + a_name(rng)
    after = [put if one == line else one for one in lines]
    hunks = [f"@@\n-{line}\n+{put}"] * len(marks)
    return Sent("\n".join(lines), patch=_envelope(*hunks), accept=("\n".join(after),))


def patch_with_a_context_reworded(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """One line of the context, not beside the change, is not as in the file."""
    spans = _spans(rng, specimen.text, 1)
    if spans is None:
        return None
    lines = _hunk(specimen.text, spans[0], context=6).split("\n")
    kept = [i for i, line in enumerate(lines) if line.startswith(" ") and i > 0 and len(line.strip()) > 8]
    away = [i for i in kept if all(line.startswith((" ", "@")) for line in lines[max(0, i - 2) : i + 3])]
    if not away:
        return None
    at = rng.choice(away)
    wrong = reworded(rng, lines[at])
    if wrong is None or wrong.strip() in specimen.text:
        return None
    lines[at] = wrong
    return Sent(specimen.text, patch=_envelope("\n".join(lines)), accept=(_applied(specimen.text, spans),))


def patch_at_the_end(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    lines = specimen.text.rstrip("\n").split("\n")
    fresh = a_line_like(rng, lines[-1])
    if fresh is None or fresh in specimen.text or not specimen.text.endswith("\n") or not lines[-1].strip():
        return None
    kept = [f" {line}" for line in lines[-2:]]
    hunk = "\n".join(["@@", *kept, f"+{fresh}", "*** End of File"])
    body = specimen.text[: len("\n".join(lines))]
    return Sent(
        specimen.text, patch=_envelope(hunk), accept=(f"{body}\n{fresh}{specimen.text[len(body) :]}",)
    )


def patch_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    spans = _spans(rng, specimen.text, rng.randint(1, 3))
    if spans is None:
        return None
    after = _applied(specimen.text, spans)
    hunks = [_hunk(specimen.text, span) for span in spans]
    return Sent(after, patch=_envelope(*hunks), accept=(after,))


def patch_of_an_addition_resent(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    """Context above and the added lines, nothing below: the context still stands after the first time."""
    spans = _spans(rng, specimen.text, 1)
    if spans is None or len(spans[0].fresh) != 2:
        return None
    span = spans[0]
    at = span.start + span.edited
    above = specimen.text.split("\n")[max(0, at - 2) : at + 1]
    if specimen.text.count("\n".join(above)) != 1:
        return None
    hunk = "\n".join(["@@", *(f" {line}" for line in above), f"+{span.fresh[1]}"])
    after = _applied(specimen.text, [span])
    return Sent(after, patch=_envelope(hunk), accept=(after,))


def patch_with_fewer_hunks_than_places(
    rng: random.Random, specimen: Specimen, _: list[Specimen]
) -> Sent | None:
    drawn = _repeated(rng, specimen.text, 3)
    if drawn is None:
        return None
    lines, _marks, line = drawn
    hunks = [f"@@\n-{line}\n+{line}  {a_name(rng)}"] * rng.randint(1, 2)
    return Sent("\n".join(lines), patch=_envelope(*hunks), accept=())


def patch_below_a_locator_that_is_nowhere(
    rng: random.Random, specimen: Specimen, _: list[Specimen]
) -> Sent | None:
    drawn = _repeated(rng, specimen.text, 2)
    if drawn is None:
        return None
    lines, marks, line = drawn
    mark = reworded(rng, lines[marks[-1]])
    if mark is None or mark.strip() in specimen.text:
        return None
    hunk = f"@@\n {mark}\n@@\n-{line}\n+{line}  {a_name(rng)}"
    return Sent("\n".join(lines), patch=_envelope(hunk), accept=())


def patch_of_context_alone(rng: random.Random, specimen: Specimen, _: list[Specimen]) -> Sent | None:
    span = a_span(rng, specimen.text, fewest=1, most=4)
    if span is None:
        return None
    hunk = "\n".join(["@@", *(f" {line}" for line in span.lines)])
    return Sent(specimen.text, patch=_envelope(hunk), accept=())


def patch_of_a_line_that_is_another(
    rng: random.Random, specimen: Specimen, _: list[Specimen]
) -> Sent | None:
    """The line to be taken out is not as the patch says."""
    spans = _spans(rng, specimen.text, 1)
    if spans is None:
        return None
    lines = _hunk(specimen.text, spans[0]).split("\n")
    removed = [i for i, line in enumerate(lines) if line.startswith("-")]
    if not removed:
        return None
    wrong = reworded(rng, lines[removed[0]])
    if wrong is None or wrong[1:].strip() in specimen.text:
        return None
    fresh = a_line_like(rng, wrong[1:])
    if fresh is None:
        return None
    kept = [line for line in lines[removed[0] + 1 :] if not line.startswith("+")]
    hunk = "\n".join([*lines[: removed[0]], wrong, f"+{fresh}", *kept])
    return Sent(specimen.text, patch=_envelope(hunk), accept=())


PATCH_FAMILIES = (
    *(
        ModelError("apply", make)
        for make in (
            patch_of_hunks,
            patch_out_of_order,
            patch_below_a_locator,
            patch_of_equal_hunks,
            patch_with_a_context_reworded,
            patch_at_the_end,
        )
    ),
    *(ModelError("done", make) for make in (patch_resent, patch_of_an_addition_resent)),
    *(
        ModelError("refuse", make)
        for make in (
            patch_with_fewer_hunks_than_places,
            patch_below_a_locator_that_is_nowhere,
            patch_of_context_alone,
            patch_of_a_line_that_is_another,
        )
    ),
)
