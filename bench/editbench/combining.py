"""More than one thing going on at once, and still to be applied."""

import json
import random
from dataclasses import replace

from bench.editbench import harmless, lettering, spacing
from bench.editbench.drafting import Draft, Line
from bench.editbench.edits import Scene, Step, one_word, renamed


def several(rng: random.Random, scene: Scene) -> Draft | None:
    """Two independent damages: one to the words or the indentation, one on the way."""
    inner = rng.choice(
        (
            spacing.dedented,
            spacing.overindented,
            spacing.trailing_lost,
            lettering.typo_kept,
            spacing.blank_extra,
            spacing.tabs_to_spaces,
            lettering.quote_style,
        )
    )
    first = inner(rng, scene)
    if first is None or not isinstance(first.content, str):
        return None
    way = rng.choice(("fence", "crlf", "numbers", "json", "trailing", "bom"))
    if way == "fence":
        return replace(first, old=f"```\n{first.old}\n```", new=f"```\n{first.new}\n```")
    if way == "crlf":
        return _mapped(first, lambda text: text.replace("\n", "\r\n"))
    if way == "bom":
        return _mapped(first, lambda text: "\ufeff" + text)
    if way == "json":
        old, new = (json.dumps(text, ensure_ascii=False)[1:-1] for text in (first.old, first.new))
        return replace(first, old=old, new=new) if old != first.old else None
    if way == "trailing":
        if inner is spacing.trailing_lost or scene.shape != "delete":
            return None
        return replace(first, old=_with_blanks(first.old), new=_with_blanks(first.new))
    return replace(first, old=_numbered(scene, first.old), new=_numbered(scene, first.new))


def _with_blanks(text: str) -> str:
    return "\n".join(line + "  " if line and len(line) % 2 else line for line in text.split("\n"))


def _numbered(scene: Scene, text: str) -> str:
    return "\n".join(f"{scene.start + 1 + i:>6}\t{line}" for i, line in enumerate(text.split("\n")))


def _mapped(first: Draft, change: Line) -> Draft:
    assert isinstance(first.content, str)
    return replace(
        first,
        content=change(first.content),
        accept=tuple(change(text) for text in first.accept if isinstance(text, str)),
    )


def near_twin(rng: random.Random, scene: Scene) -> Draft | None:
    """A sibling block that differs in one word stands before or after; the arguments are slightly off."""
    twin = renamed(rng, scene.old)
    if twin is None:
        return None
    lines = (
        (*scene.before, *twin, "", *scene.old, *scene.after)
        if rng.random() < 0.5
        else (*scene.before, *scene.old, "", *twin, *scene.after)
    )
    start = scene.start + (len(twin) + 1 if lines[scene.start : scene.start + len(twin)] == twin else 0)
    over = Scene(scene.lang, lines, start, scene.old, scene.script, scene.shape)
    return rng.choice((spacing.dedented, spacing.trailing_lost, spacing.overindented, harmless.exact))(
        rng, over
    )


def hinted(rng: random.Random, scene: Scene) -> Draft | None:
    """The span occurs twice; a line number says which."""
    lines = (*scene.before, *scene.old, *scene.after, "", *scene.old, "")
    first, second = scene.start, len(scene.lines) + 1
    start = rng.choice((first, second))
    over = Scene(scene.lang, lines, start, scene.old, scene.script, scene.shape)
    if abs(first - second) < 10:
        return None
    old, new = "\n".join(scene.old), "\n".join(scene.new)
    return Draft(over.content(), old, new, (over.result(),), meant=(old, new), line=start + 1)


def drift_small(rng: random.Random, scene: Scene) -> Draft | None:
    """Found up to three lines from where it was said to be."""
    plain = harmless.exact(rng, scene)
    assert plain is not None
    line = scene.start + 1 + rng.randrange(-3, 4)
    return replace(plain, line=line) if line > 0 else None


def stale_context(rng: random.Random, scene: Scene) -> Draft | None:
    """A line of the span that the edit leaves alone, and not next to it, was changed after it was read."""
    kept = {s.of for s in scene.script if s.kept and s.of is not None}
    gone = set(range(len(scene.old))) - kept
    added = {i for at, s in enumerate(scene.script) if s.of is None for i in _edge(scene.script, at)}
    free = [i for i in sorted(kept) if scene.old[i].strip() and not {i - 1, i, i + 1} & (gone | added)]
    if not free:
        return None
    index = rng.choice(free)
    other = one_word(rng, scene.old[index])
    if other is None:
        return None
    now = scene.with_old((*scene.old[:index], other, *scene.old[index + 1 :]))
    old, new = "\n".join(scene.old), "\n".join(scene.new)
    return Draft(
        now.content(),
        old,
        new,
        (now.result(),),
        seen=scene.content(),
        meant=("\n".join(now.old), "\n".join(now.new)),
    )


def _edge(script: tuple[Step, ...], at: int) -> list[int]:
    """Old lines on both sides of an added one."""
    left = next((s.of for s in reversed(script[:at]) if s.of is not None), -1)
    right = next((s.of for s in script[at:] if s.of is not None), left + 1)
    return [left, right]
