"""What happens to arguments on their way, and what models copy along: these must apply."""

import json
import random

from bench.editbench.drafting import Draft, draft, spoiled
from bench.editbench.edits import Scene


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
