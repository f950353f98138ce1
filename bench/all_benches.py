"""Every bench at the size of CI, one after another: goals met or missed, and what was not run. decision 12."""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {"fleet": ROOT / ".ci" / "fleet-environment" / "bin" / "python"}
"""Benches that need another environment; where it is not there they say what they can't run."""
TIMES = {"ms", "s", "x"}
TRIES = 3
LIMIT_SECONDS = 240.0
MISSED, NOT_ALL_RUN = 1, 3


@dataclass(slots=True)
class Outcome:
    """What one bench said. A bench that broke off has a failure: what it did not get to is not met."""

    bench: str
    seconds: float = 0.0
    tries: int = 1
    met: list[dict[str, Any]] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    without_goal: list[dict[str, Any]] = field(default_factory=list)
    not_run: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What the bench said about itself (`workday: …`) beside a goal that it missed: which story it was."""
    failure: str = ""

    @property
    def may_be_noise(self) -> bool:
        """Whether all that was missed are times: a noisy minute is no finding, a lost edit is one."""
        return bool(self.missed) and not self.failure and all(_is_time(each) for each in self.missed)


def main(arguments: list[str], benches: list[str]) -> int:
    """Run them all; exit 1 when a goal is missed or a bench fails, 3 when nothing is but a part was not run."""
    parser = argparse.ArgumentParser(prog="python -m bench all", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object, when all is done")
    parser.add_argument("--only", action="append", choices=benches, help="only this one (may be repeated)")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    outcomes = []
    for bench in options.only or benches:
        outcome = _tried(bench)
        outcomes.append(outcome)
        print(_row(outcome), file=sys.stderr if options.json else sys.stdout, flush=True)
    summary = {
        "seconds": round(time.monotonic() - began, 1),
        "met": sum(len(each.met) for each in outcomes),
        "missed": sum(len(each.missed) for each in outcomes),
        "failed": sum(bool(each.failure) for each in outcomes),
        "not_run": sum(len(each.not_run) for each in outcomes),
    }
    if options.json:
        print(json.dumps({**summary, "benches": [asdict(each) for each in outcomes]}, indent=1))
    else:
        print(", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in summary.items()))
    return exit_code(outcomes)


def exit_code(outcomes: list[Outcome]) -> int:
    """Zero only if every goal was measured and met."""
    if any(each.missed or each.failure for each in outcomes):
        return MISSED
    return NOT_ALL_RUN if any(each.not_run for each in outcomes) else 0


def read_outcome(bench: str, printed: str, code: int, complaint: str) -> Outcome:
    """What a bench printed with `--json`, sorted; its exit code must agree with it."""
    outcome = Outcome(bench)
    for line in printed.splitlines():
        said = json.loads(line)
        if "not_run" in said:
            outcome.not_run.append(said)
        elif said["goal"] is None:
            outcome.without_goal.append(said)
        else:
            (outcome.met if said["ok"] else outcome.missed).append(said)
    if outcome.missed:
        outcome.remarks = [line for line in complaint.splitlines() if line.startswith(f"{bench}: ")]
    if code != (1 if outcome.missed else 0) or not printed:
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        outcome.failure = f"ended with {code}: {last[0]}"
    return outcome


def _tried(bench: str) -> Outcome:
    began = time.monotonic()
    for number in range(1, TRIES + 1):
        outcome = _run(bench)
        outcome.tries = number
        if not outcome.may_be_noise:
            break
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def _run(bench: str) -> Outcome:
    python = ENVIRONMENTS.get(bench, Path())
    line = [str(python) if python.is_file() else sys.executable, "-m", "bench", bench, "--json", "--quick"]
    # Programs of the environment are found as when it is activated: formatters, servers, handtools itself.
    path = os.pathsep.join([str(Path(line[0]).parent), os.environ.get("PATH", os.defpath)])
    env = os.environ | {"PATH": path}
    try:
        done = subprocess.run(
            line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(bench, failure=f"took more than {LIMIT_SECONDS:g} s")
    return read_outcome(bench, done.stdout, done.returncode, done.stderr)


def _row(outcome: Outcome) -> str:
    tries = f", try {outcome.tries}" if outcome.tries > 1 else ""
    verdict = "FAILED" if outcome.failure else "MISSED" if outcome.missed else "met"
    counts = f"{len(outcome.met):>3} met {len(outcome.missed):>3} missed {len(outcome.not_run):>3} not run"
    lines = [f"{outcome.bench:<12} {verdict:<7} {counts} {outcome.seconds:>7.1f} s{tries}"]
    for each in outcome.missed:
        seen = each["value"] if each["ratio"] is None else each["ratio"]
        lines.append(f"    missed: {each['name']}: {seen:g}, goal {each['goal']:g}")
    lines += [f"    {remark}" for remark in outcome.remarks]
    lines += [f"    not run: {each['name']}: {each['not_run']}" for each in outcome.not_run]
    if outcome.failure:
        lines.append(f"    failed: {outcome.failure}")
    return "\n".join(lines)


def _is_time(figure: dict[str, Any]) -> bool:
    return figure["unit"] in TIMES or figure["ratio"] is not None
