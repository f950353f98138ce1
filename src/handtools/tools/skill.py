"""Tool `skill`: lists skills (instructions for agents), or loads one."""

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.errors import NotFound
from handtools.core.result import Result
from handtools.core.skills import Skill, SkillFileList, nearest_skill_per_name, skill_listing
from handtools.core.tool import tool
from handtools.text.encoding import decode
from handtools.text.frontmatter import parse_frontmatter
from handtools.text.paths import similar_names

DEFAULT_CONTEXT_TOKENS = 200_000
MAX_SKILL_FILE_BYTES = 256 << 10
"""Largest SKILL.md in bytes that is loaded."""


class SkillParams(BaseModel):
    """Arguments of the `skill` tool."""

    name: str = Field("", description="Skill to load; without it you get the list.")
    near: str = Field("", description="File or folder whose skills come first.")
    context_tokens: int = Field(
        DEFAULT_CONTEXT_TOKENS,
        ge=1_000,
        description="Your context size: the list uses at most 2 % of it.",
    )


class SkillEntry(BaseModel):
    """An available skill."""

    name: str
    description: str
    origin: str
    path: str
    location: str


class SkillDetails(BaseModel):
    """Structured result of the `skill` tool: the list of skills, or the loaded skill."""

    skills: list[SkillEntry]
    files: list[str] = Field(default=[])
    left_out: int = 0
    """Number of skills left out of the list; or 1 if a skill has more files than listed."""
    shortened: int = 0


@tool(effects=("read",), paths=lambda _: ())
async def skill(ctx: Context, params: SkillParams) -> Result[SkillDetails]:
    """List the skills, or load one."""
    found = nearest_skill_per_name(await ctx.skills.found(params.near))
    if not params.name:
        return _listing_result(found, params.context_tokens)
    wanted = next((each for each in found if each.name == params.name), None)
    if wanted is None:
        raise _unknown_skill_error(params.name, [each.name for each in found])
    data = await ctx.files.read(wanted.file, size=MAX_SKILL_FILE_BYTES)
    body = parse_frontmatter(decode(data).body).body
    bundle = await ctx.skills.bundle(wanted)
    files = [f"{wanted.folder}/{facts.path}" for facts in bundle.files]
    details = SkillDetails(skills=[_skill_entry(wanted)], files=files, left_out=int(bundle.more))
    return Result("\n".join((*_header_lines(wanted, bundle), "", body)), details)


def _listing_result(skills: list[Skill], context_tokens: int) -> Result[SkillDetails]:
    offered = [each for each in skills if each.listed]
    shared = skill_listing(offered, context_tokens)
    details = SkillDetails(
        skills=[_skill_entry(each) for each in offered[: len(shared.rows)]],
        left_out=shared.left_out,
        shortened=shared.shortened,
    )
    return Result(shared.text or "There are no skills here.", details)


def _header_lines(skill: Skill, files: SkillFileList) -> list[str]:
    """Return lines with the skill's path, URL and files."""
    rows = [f"Skill `{skill.name}` ({skill.origin}): {skill.folder} ({skill.location})"]
    rows += [
        f"- {skill.folder}/{facts.path} ({facts.bytes:,} bytes, {skill.url_of_file(facts.path)})"
        for facts in files.files
    ]
    return [*rows, "(There are more files.)"] if files.more else rows


def _skill_entry(skill: Skill) -> SkillEntry:
    return SkillEntry(
        name=skill.name,
        description=skill.description,
        origin=skill.origin,
        path=skill.file,
        location=skill.location,
    )


def _unknown_skill_error(name: str, names: list[str]) -> NotFound:
    close = similar_names(name, names, most=3)
    hint = f"Did you mean {', '.join(close)}?" if close else "Leave out `name` to list the skills."
    return NotFound(f"Unknown skill `{name}`.", hint=hint)
