"""CLI command `handtools skills`: list a workspace's agent skills (SKILL.md) and their problems."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.results import EXIT_FAILED
from handtools.cli.terminal import make_plain_table, print_json, print_remark, stdout_console, table_cell
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.core.skills import Skill


def skills(
    near: Annotated[
        str, typer.Option("--near", help="File or folder whose nearest skills come first.")
    ] = ".",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a skill violates the specification.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List agent skills, and where they violate the specification.

    Example: handtools skills --near src
    """
    found = _skills_with_problems(workspace, near)
    if as_json:
        for skill, problems in found:
            print_json({**asdict(skill), "problems": problems})
    elif not found:
        print_remark("No skills found. A skill is a folder with a SKILL.md in .agents/skills.")
    else:
        _print_skills(found)
    if strict and any(problems for _, problems in found):
        raise typer.Exit(EXIT_FAILED)


def _skills_with_problems(workspace: Path, near: str) -> list[tuple["Skill", list[str]]]:
    """The skills found near a path, each with its problems, such as a nearer skill of the same name."""
    from handtools.core.skills import nearest_skill_per_name as nearest
    from handtools.toolbox import local_workspace

    opened = local_workspace(workspace)
    found = opened.skills.found(opened.files.locate(near))
    seen = {skill.name: skill for skill in nearest(found)}
    return [
        (
            skill,
            [
                *skill.problems,
                *([] if seen[skill.name] is skill else [_problem_of_covered_skill(seen[skill.name])]),
            ],
        )
        for skill in found
    ]


def _problem_of_covered_skill(skill: "Skill") -> str:
    return f"Hidden by {skill.location}, which has the same name and is nearer."


def _print_skills(skills: list[tuple["Skill", list[str]]]) -> None:
    rows = make_plain_table("SKILL", "FROM", "WHERE", "DESCRIPTION")
    for skill, _ in skills:
        path = skill.folder if skill.origin == "workspace" else skill.location.removeprefix("file://")
        rows.add_row(
            table_cell(skill.name),
            skill.origin,
            with_visible_characters(path),
            table_cell(skill.description, 80),
        )
    stdout_console().print(rows)
    for skill, problems in skills:
        if problems:
            stdout_console().print(
                f"\n{with_visible_characters(skill.name)}  {with_visible_characters(skill.location)}",
                soft_wrap=True,
            )
            for problem in problems:
                stdout_console().print(f"  {with_visible_characters(problem)}", soft_wrap=True)
