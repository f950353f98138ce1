"""Files for people who find the repository: they parse, and what they name is there. One version everywhere."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import handtools

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = [
    ".devcontainer/devcontainer.json",
    ".github/PULL_REQUEST_TEMPLATE.md",
    "docs/how-to/release.md",
    "CONTRIBUTING.md",
    *(str(path.relative_to(ROOT)) for path in (*TEMPLATES, *WORKFLOWS)),
]
PATH = re.compile(
    r"(?<![\w/.$-])((?:\.ci|\.github|docs|packages|requirements|tests|changelog\.d)/[\w./-]*\w)"
)


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def recipes() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*)(?: [^:\n]*)?:(?!=)", text("justfile"), re.MULTILINE))


def commands() -> set[str]:
    """A command is a module."""
    return {path.stem for path in (ROOT / "src/handtools/cli").glob("*.py")}


@pytest.mark.parametrize("path", TEXTS)
def test_what_a_file_names_is_there(path):
    said = text(path)
    made = text(".gitignore").split()  # what a command makes here is in no clone
    names = [name for name in PATH.findall(said) if name not in made and f"{name}/" not in made]
    missing = [name for name in names if not (ROOT / name).exists()]
    missing += [name for name in re.findall(r"`just ([a-z-]+)", said) if name not in recipes()]
    missing += [name for name in re.findall(r"`handtools ([a-z]+)", said) if name not in commands()]
    assert not missing


def test_the_lists_that_names_are_held_against_are_not_empty():
    assert {"check", "test", "supply-chain"} <= recipes()
    assert {"show", "doctor", "undo"} <= commands()
    assert PATH.findall("`.ci/run`, tests/unit and requirements/uv.txt") == [
        ".ci/run",
        "tests/unit",
        "requirements/uv.txt",
    ]


def test_the_development_container_is_built_from_a_file_that_is_there():
    container = json.loads(text(".devcontainer/devcontainer.json"))
    dockerfile = ROOT / ".devcontainer" / container["build"]["dockerfile"]
    assert dockerfile.read_text("utf-8").startswith("FROM python:3.11")
    steps = container["postCreateCommand"].split(" && ")
    installed = text("justfile").split("install:\n")[1].split("\n\n")[0].splitlines()
    # It makes the environment as `just install` does, which has uv already.
    assert [step.split("--python")[0].strip() for step in steps[1:]] == [
        line.strip().split(" || ")[-1].split("--python")[0].replace("{{bin}}", ".venv/bin").strip()
        for line in installed
    ]


@pytest.mark.parametrize(
    "path", [path for path in TEMPLATES if path.name != "config.yml"], ids=lambda path: path.name
)
def test_an_issue_form_has_what_a_form_needs(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert form["name"] and form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_jobs_with_steps_and_few_rights(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        assert all("run" in step or "uses" in step for step in job["steps"])


def test_the_citation_names_what_is_packaged():
    citation = yaml.safe_load(text("CITATION.cff"))
    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"] and citation["type"] == "software"
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]


def test_one_version_everywhere():
    slim = tomllib.loads(text("pyproject.toml"))
    full = tomllib.loads(text("packages/full/pyproject.toml"))["project"]
    version = slim["project"]["version"]
    assert full["version"] == version
    assert [line.partition("==")[2] for line in full["dependencies"]] == [version]
    assert slim["tool"]["towncrier"]["version"] == version
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    assert handtools.__version__ == version
