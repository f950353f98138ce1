"""Cases from a seed: the same seed on the same machine gives the same cases."""

import random
from collections.abc import Iterator

from bench.editbench.cases import Case, Kind
from bench.editbench.corpus import Specimen, sample
from bench.editbench.drafting import Draft, Family
from bench.editbench.edits import scene
from bench.editbench.families import APPLY, PER_APPLY, PER_REFUSE, REFUSE

TRIES = 400
PREFERRED_SHAPE = {"stale_context": "modify", "stale_conflict": "modify", "typo_changed": "modify"}


def generate(seed: int, *, reduced: bool = False) -> Iterator[Case]:
    """All families over all languages; `reduced` is a fifth of each."""
    specimens = sample(seed, per_language=12 if reduced else 40)
    by_language: dict[str, list[Specimen]] = {}
    for specimen in specimens:
        by_language.setdefault(specimen.lang, []).append(specimen)
    share = 5 if reduced else 1
    yield from _families(seed, by_language, APPLY, "apply", PER_APPLY // share)
    yield from _families(seed, by_language, REFUSE, "refuse", PER_REFUSE // share)


def _families(
    seed: int,
    by_language: dict[str, list[Specimen]],
    families: dict[str, Family],
    kind: Kind,
    count: int,
) -> Iterator[Case]:
    for name, family in families.items():
        # Each family draws from its own stream, so a change to one leaves the cases of the others alone.
        own = random.Random(f"{seed} {name}")
        made = 0
        for _ in range(count * TRIES):
            if made == count:
                break
            language = own.choice(sorted(by_language))
            if (case := _one(own, own.choice(by_language[language]), family, name)) is not None:
                yield _case(case, name=name, number=made, lang=language, kind=kind)
                made += 1


def _one(rng: random.Random, specimen: Specimen, family: Family, name: str) -> Draft | None:
    drawn = scene(rng, specimen.lang, specimen.text, shape=PREFERRED_SHAPE.get(name))
    return None if drawn is None else family(rng, drawn)


def _case(draft: Draft, *, name: str, number: int, lang: str, kind: Kind) -> Case:
    return Case(
        id=f"{name}-{number}",
        family=name,
        lang=lang,
        content=_bytes(draft.content),
        old=draft.old,
        new=draft.new,
        accept=tuple(dict.fromkeys(map(_bytes, draft.accept))),
        kind=kind,
        line=draft.line,
        seen=None if draft.seen is None else _bytes(draft.seen),
        meant=draft.meant,
    )


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text
