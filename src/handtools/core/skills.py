"""Skills: instructions that people wrote for agents, in folders with a SKILL.md; and how they are read.

ADR 94.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal, Protocol

from handtools.core.files import FileFacts
from handtools.text.frontmatter import Frontmatter, FrontmatterValue, split_at_commas
from handtools.text.paths import url_escaped
from handtools.text.search.glob import BadGlob, GlobSet
from handtools.text.token_budget import BudgetedListing, budgeted_listing
from handtools.text.truncation import sanitized_line

SkillOrigin = Literal["workspace", "user", "package"]

SKILL_FILE = "SKILL.md"
GUIDE_FILE = "AGENTS.md"
SKILL_ROOTS = (".agents/skills", ".claude/skills")
SKILL_SCHEME = "skill:"
"""`skill:NAME/path` names a file of a skill that is not in the workspace: readable, never written."""
CONTEXT_SHARE = 50
"""The listing takes at most one part in so many of a context."""
SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1_024
MAX_DESCRIPTION_CHARS = 4_096
MAX_GLOBS, GLOB_CHARS = 64, 200
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:]+")
_SPECIFIED = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
_READ_HERE = {"paths", "globs", "disable-model-invocation"}
_TRUE = {"true", "yes", "on"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One folder with a SKILL.md, as its head describes it."""

    name: str
    description: str
    origin: SkillOrigin
    folder: str
    """As `read` takes it: a path of the workspace, or `skill:NAME`."""
    location: str
    """The folder as a `file://` address."""
    source: str = ""
    """The located path of what was read as its SKILL.md, which may be a link; empty outside of the workspace."""
    scope: str = ""
    """The folder of the workspace that it is for; empty when it is for all of it."""
    paths: tuple[str, ...] = ()
    """Globs of files: when one is first read, the skill is mentioned."""
    listed: bool = True
    """Whether the model is told of it unasked."""
    problems: tuple[str, ...] = ()
    """What the specification would have otherwise."""

    @property
    def file(self) -> str:
        """Its SKILL.md, as `read` takes it."""
        return f"{self.folder}/{SKILL_FILE}"

    def is_hidden(self, hides: Callable[[str], bool]) -> bool:
        """Whether rules hide it, by its own name or by what its SKILL.md leads to."""
        return hides(self.file) or bool(self.source and hides(self.source))

    def address(self, path: str) -> str:
        """The `file://` address of one of its files."""
        return f"{self.location}/{url_escaped(path)}"

    def is_about(self, path: str) -> bool:
        """Whether it names a file below its scope; a nested skill that names none is about all of them."""
        if not self.paths:
            return self.listed and bool(self.scope)
        below = path.removeprefix(f"{self.scope}/") if self.scope else path
        return self.listed and _any_of(self.paths).matches(below)


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """The files of a skill, by their paths in its folder."""

    files: tuple[FileFacts, ...]
    more: bool = False
    """Whether there are files that are not named."""


class Skills(Protocol):
    """Skills as a tool sees them; what rules hide is not there. Their files are read with `Files`."""

    async def found(self, near: str) -> list[Skill]:
        """The skills for a file or folder: nearest first, then the user's, then those of packages."""
        ...

    async def bundle(self, skill: Skill) -> SkillFiles:
        """The files of a skill, hidden ones included."""
        ...


class HostSkills(Protocol):
    """Skills as a machine offers them: blocking, confined, without policy."""

    def found(self, near: str) -> list[Skill]:
        """Every skill for a located path, nearest first, also those that a nearer one of the same name covers."""
        ...

    def mentioned(self, path: str) -> list[Skill]:
        """The skills that name a located path among their files; from memory where nothing has changed."""
        ...

    def guides(self, path: str) -> list[str]:
        """The AGENTS.md files in the folders above a located path, outermost first, without the root's."""
        ...

    def bundle(self, skill: Skill) -> SkillFiles:
        """The files of a skill."""
        ...

    def read(self, name: str, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """A file of a skill that is not in the workspace."""
        ...

    def facts(self, name: str, path: str) -> FileFacts | None:
        """What is at a path of such a skill, or None."""
        ...


def skill_from_frontmatter(
    head: Frontmatter,
    name: str,
    *,
    origin: SkillOrigin,
    folder: str,
    location: str,
    source: str = "",
    scope: str = "",
    unreadable: str = "",
) -> Skill:
    """The skill that a SKILL.md describes, read leniently; `name` is its folder's.

    One whose SKILL.md is `unreadable` for some reason is only reported.
    """
    fields = head.fields
    own = _text(fields.get("name")) or name
    own = (_ODD.sub("-", own).strip("-. ") or "skill")[:SKILL_NAME_CHARS]
    return Skill(
        name=own,
        description=sanitized_line(
            _text(fields.get("description")) or _first_words(head.body), MAX_DESCRIPTION_CHARS
        ),
        origin=origin,
        folder=folder if origin == "workspace" else f"{SKILL_SCHEME}{own}",
        location=location,
        source=source,
        scope=scope,
        paths=tuple(_globs(fields.get("paths"), fields.get("globs"))),
        listed=not unreadable and _text(fields.get("disable-model-invocation")).lower() not in _TRUE,
        problems=(unreadable,) if unreadable else (*head.problems, *_problems(fields, name)),
    )


def nearest_by_name(skills: Iterable[Skill]) -> list[Skill]:
    """The nearest of each name."""
    nearest: dict[str, Skill] = {}
    for skill in skills:
        nearest.setdefault(skill.name, skill)
    return list(nearest.values())


def listing(skills: Iterable[Skill], context_tokens: int) -> BudgetedListing:
    """The skills a model is told of and where they are, in at most 2 % of its context."""
    told = [skill for skill in nearest_by_name(skills) if skill.listed]
    shelves = dict.fromkeys(skill.location.rpartition("/")[0] for skill in told)
    entries = [(skill.name, skill.description) for skill in told]
    return budgeted_listing(
        entries, context_tokens // CONTEXT_SHARE, foot=f"(In {', '.join(shelves)}.)" if shelves else ""
    )


def _problems(fields: dict[str, FrontmatterValue], folder: str) -> Iterator[str]:
    """Where a head differs from the specification."""
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if not name:
        yield "`name` is missing; the folder's name stands for it."
    elif not _NAME.match(name) or len(name) > SKILL_NAME_CHARS:
        yield f"`name` is {name[:80]!r}: at most {SKILL_NAME_CHARS} of a-z, 0-9 and single hyphens are meant."
    elif name != folder:
        yield f"`name` is `{name}`, the folder is `{folder}`: they should be the same."
    if not description:
        yield "`description` is missing; the first words of the text stand for it."
    elif len(description) > SKILL_DESCRIPTION_CHARS:
        yield f"`description` has {len(description):,} characters, at most {SKILL_DESCRIPTION_CHARS:,} are meant."
    if len(_text(fields.get("compatibility"))) > 500:
        yield "`compatibility` has over 500 characters."
    for key in fields:
        if key in _READ_HERE:
            yield f"`{key}` is understood here, and is not in the specification."
        elif key not in _SPECIFIED:
            yield f"`{key}` is not in the specification; put it under `metadata`."
    for pattern in _patterns(fields.get("paths"), fields.get("globs")):
        if not _is_glob(pattern):
            yield f"`{pattern[:80]}` is no glob."


def _text(value: FrontmatterValue | None) -> str:
    return value.strip() if isinstance(value, str) else ""


def _globs(*values: FrontmatterValue | None) -> Iterator[str]:
    return (pattern for pattern in _patterns(*values) if _is_glob(pattern))


def _patterns(*values: FrontmatterValue | None) -> Iterator[str]:
    """Globs of a list, or of a text with commas."""
    for value in values:
        items = value if isinstance(value, list) else split_at_commas(_text(value))
        named = [item.strip() for item in islice(items, MAX_GLOBS) if item.strip()]
        yield from (item for item in named if len(item) <= GLOB_CHARS)


@lru_cache(maxsize=1024)
def _any_of(patterns: tuple[str, ...]) -> GlobSet:
    return GlobSet(patterns)


def _is_glob(pattern: str) -> bool:
    if pattern.count("{") > 3:  # each doubles what must be compiled
        return False
    try:
        GlobSet((pattern,)).matches("a")
    except BadGlob:
        return False
    return True


def _first_words(body: str) -> str:
    """The first paragraph that is no heading."""
    for paragraph in re.split(r"\n\s*\n", body[:4_000]):
        words = paragraph.strip()
        if words and not words.startswith(("#", "---", "```")):
            return words[:300]
    return ""
