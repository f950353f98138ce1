"""The workflow files of the public repository: nobody runs them here, so what they refer to is looked at."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.shape.reading import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
_PATH = re.compile(r"(?<![\w./$-])(?:\.ci|tests|requirements|packages|src|docs)/[\w./-]*\w")
_PLUGIN_OPTIONS = {"-n": "pytest-xdist", "--timeout": "pytest-timeout"}


def problems(text: str) -> list[str]:
    """What is wrong with a workflow: jobs without steps or an end, and steps that refer to what is not there."""
    found = []
    for name, job in yaml.safe_load(text)["jobs"].items():
        found += [
            f"{name} has no {key}" for key in ("runs-on", "steps", "timeout-minutes") if key not in job
        ]
        found += [f"{name}: {problem}" for step in job.get("steps", ()) for problem in _step_problems(step)]
    return found


def _step_problems(step: dict[str, Any]) -> Iterator[str]:
    if "uses" in step and not re.fullmatch(r"[\w-]+/[\w./-]+@v\d[\w.]*", step["uses"]):
        yield f"{step['uses']} names no version"
    if ("uses" in step) == ("run" in step):
        yield "a step either uses or runs something"
    script = step.get("run", "")
    yield from (f"there is no {path}" for path in _PATH.findall(script) if not (ROOT / path).exists())
    groups = PROJECT["dependency-groups"]
    yield from (
        f"there is no group {name}" for name in re.findall(r"--group (\S+)", script) if name not in groups
    )
    wanted = {
        _PLUGIN_OPTIONS[word] for word in script.split() if "pytest" in script and word in _PLUGIN_OPTIONS
    }
    named = {re.split(r"[\[>=<]", each)[0] for each in groups["dev"]}
    yield from (f"{plugin} is not in the group dev" for plugin in sorted(wanted - named))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_refers_to_things_that_exist(file: Path) -> None:
    assert problems(file.read_text("utf-8")) == []


def test_the_suites_run_on_every_system_and_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))["jobs"]
    matrix = jobs["systems"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == PYTHONS
    assert any("pytest" in step.get("run", "") for step in jobs["systems"]["steps"])
    assert [step["run"] for step in jobs["gate"]["steps"] if ".ci/run" in step.get("run", "")]


def test_every_parser_is_fuzzed_each_night() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "fuzzing.yml").read_text("utf-8"))
    assert workflow[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    [steps] = [job["steps"] for job in workflow["jobs"].values()]
    assert [step["run"] for step in steps if ".ci/fuzz" in step.get("run", "") and "--all" in step["run"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("tests/property", "tests/properties"), "systems: there is no tests/properties"),
        (("--group dev", "--group devel"), "systems: there is no group devel"),
        (("actions/checkout@v4", "actions/checkout"), "gate: actions/checkout names no version"),
        (("timeout-minutes: 60", "name: x"), "systems has no timeout-minutes"),
    ],
)
def test_a_workflow_that_is_broken_is_noticed(change: tuple[str, str], said: str) -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    assert change[0] in text
    assert said in problems(text.replace(*change))
