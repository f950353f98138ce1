"""Agent skills: folders with instructions in a SKILL.md; frontmatter, a list within a budget, and the ports."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Literal, Protocol

from handtools.core.files import FileFacts
from handtools.text.frontmatter import Frontmatter, FrontmatterValue, split_at_outer_commas
from handtools.text.paths import url_escaped_path
from handtools.text.search.glob import BadGlob, GlobSet
from handtools.text.token_estimate import estimate_tokens
from handtools.text.truncation import sanitized_line


@dataclass(frozen=True, slots=True)
class BudgetedListing:
    """A listing of names with descriptions that fits a token budget, and what was cut to make it fit."""

    rows: tuple[str, ...]
    shortened: int
    """How many descriptions of the listing were shortened."""
    left_out: int
    """How many names of the listing were left out."""
    foot: str = ""

    @property
    def note(self) -> str:
        """A phrase that says what was cut, such as `2 more are left out`; empty if nothing was."""
        parts = [f"{self.left_out} more are left out"] if self.left_out else []
        parts += [f"{self.shortened} descriptions are shortened"] if self.shortened else []
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """The listing as text: the rows, the note on what was cut, and the footer."""
        return "\n".join(filter(None, (*self.rows, self.note and f"({self.note}.)", self.foot)))


def budgeted_listing(entries: Sequence[tuple[str, str]], tokens: int, *, foot: str = "") -> BudgetedListing:
    """Fit names with descriptions into a token budget: all names first, then equal parts of descriptions.

    Short descriptions stay in full. A footer that would take more than a quarter of the budget is dropped.
    """
    below = estimate_tokens(f"{foot}\n") if foot else 0
    if below and below <= tokens // 4:
        return replace(budgeted_listing(entries, tokens - below), foot=foot)
    longest = max((len(description) for _, description in entries), default=0)
    width = _largest_fitting(longest, tokens, lambda width: _cut_listing(entries, len(entries), width))
    if width >= 0:
        return _cut_listing(entries, len(entries), width)
    count = _largest_fitting(len(entries), tokens, lambda count: _cut_listing(entries, count, 0))
    return _cut_listing(entries, max(count, 0), 0)


def _largest_fitting(most: int, tokens: int, made: Callable[[int], BudgetedListing]) -> int:
    """Find by bisection the largest number for which the listing fits the tokens; -1 if none does."""

    def cost(number: int) -> int:
        return estimate_tokens(made(number).text)

    if cost(most) <= tokens:
        return most
    found = bisect_right(range(most), tokens, key=cost) - 1
    # The note may get a digit longer while the rows shrink, so check that the found listing really fits.
    while found >= 0 and cost(found) > tokens:
        found -= 1
    return found


def _cut_listing(entries: Sequence[tuple[str, str]], count: int, width: int) -> BudgetedListing:
    cut = [(name, _cut_description(description, width)) for name, description in entries[:count]]
    shortened = sum(short != whole for (_, short), (_, whole) in zip(cut, entries, strict=False))
    rows = tuple(f"- {name}: {short}" if short else f"- {name}" for name, short in cut)
    return BudgetedListing(rows, shortened, len(entries) - count)


def _cut_description(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return f"{text[: width - 1].rstrip()}…" if width > 1 else ""


SkillOrigin = Literal["workspace", "user", "package"]

SKILL_FILE = "SKILL.md"
GUIDE_FILE = "AGENTS.md"
SKILL_ROOTS = (".agents/skills", ".claude/skills")
SKILL_SCHEME = "skill:"
"""Path prefix `skill:NAME/path` for files of skills outside the workspace, which are read-only."""
SKILL_LISTING_CONTEXT_DIVISOR = 50
"""The list of skills may use as many tokens as the model's context window divided by this number."""
SKILL_NAME_CHARS = 64
SKILL_DESCRIPTION_CHARS = 1_024
SKILL_DESCRIPTION_CUT_CHARS = 4_096
MAX_SKILL_GLOBS, SKILL_GLOB_CHARS = 64, 200
_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_UNFIT_FOR_SKILL_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f/\\:]+")
_SPECIFIED_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
_KEYS_READ_HERE = {"paths", "globs", "disable-model-invocation"}
_TRUE_WORDS = {"true", "yes", "on"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill: a folder with a SKILL.md, as described by its frontmatter."""

    name: str
    description: str
    origin: SkillOrigin
    folder: str
    """Folder as a path for `read`: a workspace path, or `skill:NAME`."""
    location: str
    """The skill's folder as a `file://` URL."""
    source: str = ""
    """Resolved path of its SKILL.md, which may be a symlink; empty outside the workspace."""
    scope: str = ""
    """Workspace folder to which the skill applies; empty means all of it."""
    paths: tuple[str, ...] = ()
    """File globs; the skill is mentioned to the model when it first reads a matching file."""
    listed: bool = True
    """Whether the model sees the skill in the list of skills."""
    problems: tuple[str, ...] = ()
    """Sentences on where the SKILL.md violates the specification."""

    @property
    def file(self) -> str:
        """Path of its SKILL.md, for `read`."""
        return f"{self.folder}/{SKILL_FILE}"

    def is_hidden(self, hides: Callable[[str], bool]) -> bool:
        """Whether policy rules hide the skill's folder or the file that its SKILL.md links to."""
        return hides(self.file) or bool(self.source and hides(self.source))

    def url_of_file(self, path: str) -> str:
        """Return the `file://` URL of one of the skill's files."""
        return f"{self.location}/{url_escaped_path(path)}"

    def is_about(self, path: str) -> bool:
        """Whether to mention the skill when a file is read.

        True if its globs match, or if it has no globs but applies to one folder only.
        """
        if not self.paths:
            return self.listed and bool(self.scope)
        below = path.removeprefix(f"{self.scope}/") if self.scope else path
        return self.listed and _any_of(self.paths).matches(below)


@dataclass(frozen=True, slots=True)
class SkillFileList:
    """List of the files in a skill's folder, with paths relative to it; may be incomplete (`more`)."""

    files: tuple[FileFacts, ...]
    more: bool = False
    """Whether there are more files than listed."""


class Skills(Protocol):
    """Port for tools to find skills that policy rules don't hide; their files are read with `Files`."""

    async def found(self, near: str) -> list[Skill]:
        """List the skills for a path: nearest folder first, then the user's, then from packages."""
        ...

    async def bundle(self, skill: Skill) -> SkillFileList:
        """List the files of a skill, hidden files included."""
        ...


class HostSkills(Protocol):
    """Host port to find skills: blocking, confined, without policy."""

    def found(self, near: str) -> list[Skill]:
        """List all skills for a located path, nearest first, including shadowed ones of the same name."""
        ...

    def skills_matching_path(self, path: str) -> list[Skill]:
        """List the skills whose globs match a located path; cached while their files don't change."""
        ...

    def guides(self, path: str) -> list[str]:
        """List the AGENTS.md files in folders above a located path, outermost first, except the root's."""
        ...

    def bundle(self, skill: Skill) -> SkillFileList:
        """List the files of a skill."""
        ...

    def read(self, name: str, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes, or a range of them, of a file in a skill outside the workspace."""
        ...

    def facts(self, name: str, path: str) -> FileFacts | None:
        """Return the metadata of a file in a skill outside the workspace; None if there is no such file."""
        ...


def skill_from_frontmatter(
    frontmatter: Frontmatter,
    name: str,
    *,
    origin: SkillOrigin,
    folder: str,
    location: str,
    source: str = "",
    scope: str = "",
    unreadable: str = "",
) -> Skill:
    """Build a skill from the frontmatter of a SKILL.md, leniently; `name` is the folder's name.

    `unreadable` is the reason why SKILL.md can't be read; the skill then only reports that problem.
    """
    fields = frontmatter.fields
    own = _text(fields.get("name")) or name
    own = (_UNFIT_FOR_SKILL_NAME.sub("-", own).strip("-. ") or "skill")[:SKILL_NAME_CHARS]
    return Skill(
        name=own,
        description=sanitized_line(
            _text(fields.get("description")) or _first_words(frontmatter.body), SKILL_DESCRIPTION_CUT_CHARS
        ),
        origin=origin,
        folder=folder if origin == "workspace" else f"{SKILL_SCHEME}{own}",
        location=location,
        source=source,
        scope=scope,
        paths=tuple(_globs(fields.get("paths"), fields.get("globs"))),
        listed=not unreadable and _text(fields.get("disable-model-invocation")).lower() not in _TRUE_WORDS,
        problems=(unreadable,)
        if unreadable
        else (*frontmatter.problems, *_frontmatter_problems(fields, name)),
    )


def nearest_skill_per_name(skills: Iterable[Skill]) -> list[Skill]:
    """Keep only the nearest skill of each name."""
    nearest_skills: dict[str, Skill] = {}
    for skill in skills:
        nearest_skills.setdefault(skill.name, skill)
    return list(nearest_skills.values())


def skill_listing(skills: Iterable[Skill], context_tokens: int) -> BudgetedListing:
    """Format the list of skills for the model, using at most 2 % of its context window."""
    told = [skill for skill in nearest_skill_per_name(skills) if skill.listed]
    shelves = dict.fromkeys(skill.location.rpartition("/")[0] for skill in told)
    entries = [(skill.name, skill.description) for skill in told]
    return budgeted_listing(
        entries,
        context_tokens // SKILL_LISTING_CONTEXT_DIVISOR,
        foot=f"(In {', '.join(shelves)}.)" if shelves else "",
    )


def _frontmatter_problems(fields: dict[str, FrontmatterValue], folder: str) -> Iterator[str]:
    """Yield sentences on where frontmatter violates the skill specification."""
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if not name:
        yield "`name` is missing; the folder's name is used."
    elif not _SKILL_NAME.match(name) or len(name) > SKILL_NAME_CHARS:
        yield f"`name` is {name[:80]!r}; use at most {SKILL_NAME_CHARS} of a-z, 0-9 and single hyphens."
    elif name != folder:
        yield f"`name` is `{name}` but the folder is `{folder}`; they should be the same."
    if not description:
        yield "`description` is missing; the first words of the text are used."
    elif len(description) > SKILL_DESCRIPTION_CHARS:
        yield f"`description` has {len(description):,} characters (limit {SKILL_DESCRIPTION_CHARS:,})."
    if len(_text(fields.get("compatibility"))) > 500:
        yield "`compatibility` has over 500 characters."
    for key in fields:
        if key in _KEYS_READ_HERE:
            yield f"`{key}` is supported here but is not in the specification."
        elif key not in _SPECIFIED_KEYS:
            yield f"`{key}` is not in the specification; put it under `metadata`."
    for pattern in _split_patterns(fields.get("paths"), fields.get("globs")):
        if not _is_glob(pattern):
            yield f"`{pattern[:80]}` is not a valid glob."


def _text(value: FrontmatterValue | None) -> str:
    return value.strip() if isinstance(value, str) else ""


def _globs(*values: FrontmatterValue | None) -> Iterator[str]:
    return (pattern for pattern in _split_patterns(*values) if _is_glob(pattern))


def _split_patterns(*values: FrontmatterValue | None) -> Iterator[str]:
    """Yield globs from a list, or from a comma-separated string."""
    for value in values:
        items = value if isinstance(value, list) else split_at_outer_commas(_text(value))
        named = [item.strip() for item in islice(items, MAX_SKILL_GLOBS) if item.strip()]
        yield from (item for item in named if len(item) <= SKILL_GLOB_CHARS)


@lru_cache(maxsize=1024)
def _any_of(patterns: tuple[str, ...]) -> GlobSet:
    return GlobSet(patterns)


def _is_glob(pattern: str) -> bool:
    if pattern.count("{") > 3:  # each brace can double the number of patterns to compile
        return False
    try:
        GlobSet((pattern,)).matches("a")
    except BadGlob:
        return False
    return True


def _first_words(body: str) -> str:
    """Return the first paragraph that is not a heading."""
    for paragraph in re.split(r"\n\s*\n", body[:4_000]):
        words = paragraph.strip()
        if words and not words.startswith(("#", "---", "```")):
            return words[:300]
    return ""
