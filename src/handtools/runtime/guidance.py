"""Guidance: what people wrote for agents about the files that a call has seen, told once in a session."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from anyio import to_thread

from handtools.core.content import Text
from handtools.core.effects import Read
from handtools.core.errors import HostError, ToolError
from handtools.core.result import Result
from handtools.core.skills import GUIDE, Skill
from handtools.runtime.guard import GuardedFiles, persistent
from handtools.text.clipping import clip
from handtools.text.encoding import decode

MOST_PATHS = 50
"""Files of one call that are looked at."""
GUIDE_BYTES = 6_000
"""Of one guide; the rest can be read."""
MOST_BYTES = 8_000
"""Of all guides in one answer; those that no longer fit are named."""
DESCRIPTION_CHARS = 200

Found = tuple[list[str], list[tuple[Skill, str]]]
"""Guides, and skills with the file that they are about."""


async def guided(result: Result[Any], files: GuardedFiles) -> Result[Any]:
    """The result with what there is to know about the files it shows, unless it was told before."""
    if not files.sights:
        return result
    quick = files.workspace.files.quick
    guides, skills = _found(files) if quick else await to_thread.run_sync(_found, files)
    if not guides and not skills:
        return result
    notes = await to_thread.run_sync(_notes, files, guides, skills)
    return result.settled(content=(*result.content, *map(Text, notes))) if notes else result


def _found(files: GuardedFiles) -> Found:
    known = files.workspace.skills
    guides: dict[str, None] = {}
    skills: dict[str, tuple[Skill, str]] = {}
    for path in islice(files.sights, MOST_PATHS):
        guides |= dict.fromkeys(known.guides(path))
        if path.endswith(f"/{GUIDE}"):
            guides[path] = None
        for skill in known.mentioned(path):
            if not skill.is_hidden(files.gate.policy.hides):
                skills.setdefault(skill.file, (skill, path))
    return list(guides), list(skills.values())


def _notes(files: GuardedFiles, guides: list[str], skills: list[tuple[Skill, str]]) -> list[str]:
    journal, call = files.workspace.journal, files.call

    def is_new(path: str) -> bool:
        return _is_open(files, path) and journal.once.in_session(call, f"told {path}")

    try:
        with journal.together():
            # What the agent has just read itself is marked as told, and not told again.
            new = [path for path in guides if is_new(path) and path not in files.sights]
            about = [(s, path) for s, path in skills if is_new(s.file) and s.file not in files.sights]
    except HostError:
        # That the record can't be written is said where the call is recorded; the call itself has gone well.
        return []
    return [*_guides(files, new), *(_mention(skill, path) for skill, path in about)]


def _is_open(files: GuardedFiles, path: str) -> bool:
    return files.gate.policy.decide(Read((path,)), files.call.tool).verdict == "allow"


def _guides(files: GuardedFiles, paths: list[str]) -> Iterator[str]:
    room = MOST_BYTES
    for path in paths:
        most = min(room, GUIDE_BYTES)
        data = _read(files, path, most)
        if data is None:
            continue
        about = f"for agents who work in `{path.rpartition('/')[0]}/`, shown once"
        if most < GUIDE_BYTES and len(data) > most:
            yield f"(`{path}` holds notes {about}: read it.)"
            continue
        shown = clip(decode(data).body, max_lines=400, max_bytes=most, keep="head")
        more = f"\n(Shortened: `read` the rest of `{path}`.)" if shown.clipped else ""
        room -= len(shown.text.encode())
        yield f"== {path} (notes {about}) ==\n{shown.text.rstrip()}{more}"


def _read(files: GuardedFiles, path: str, most: int) -> bytes | None:
    """The beginning of a guide; None when a link leads to what is not to be read."""
    host = files.workspace.files

    def look() -> bytes | None:
        located = host.locate(path)
        return host.read(located, size=most + 1) if _is_open(files, located) else None

    try:
        return persistent(look)
    except ToolError:
        return None


def _mention(skill: Skill, path: str) -> str:
    words = skill.description
    short = words if len(words) <= DESCRIPTION_CHARS else f"{words[:DESCRIPTION_CHARS].rstrip()}…"
    return f"(The skill `{skill.name}` is about files like `{path}`: {short} Its instructions: `{skill.file}`.)"
