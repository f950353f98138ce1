"""Fuzz parsers: `python -m tests.fuzz patch --seconds 3600`, `python -m tests.fuzz --all --seconds 30`.

Needs atheris: `.ci/fuzz UV` makes an environment that has it, and passes its options on. decision 12.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.fuzz_targets import FOLDER, MAX_INPUT_BYTES, target_names
from tests.fuzz.kept_corpus import write_corpus

WORKING = FOLDER.parent.parent / ".ci" / "fuzz-corpus"
"""What runs have found so far on this machine; `--keep` takes the best of it into the repository."""
HANG_SECONDS = 60
"""After so long without an end one input is a hang, which libFuzzer reports with its stack."""
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERAGE = re.compile(r"\bft: (\d+)")


@dataclass(frozen=True)
class RunOutcome:
    name: str
    inputs: int
    features: int
    seconds: float
    failure: str
    """The end of what was printed, and the input; empty if all inputs held."""

    def __str__(self) -> str:
        line = (
            f"{self.name:20} {self.inputs:>10,} inputs  {self.features:>6} features  {self.seconds:>6.0f} s"
        )
        return f"{line}  FAILED\n{self.failure}" if self.failure else line


def run_target(name: str, *, seconds: int, seed: int) -> RunOutcome:
    """Fuzz one target in a process of its own."""
    began = time.monotonic()
    working = WORKING / name
    working.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder, "failed")
        failed.mkdir()
        said = _run(
            name, folder,
            f"-max_total_time={seconds}", f"-max_len={MAX_INPUT_BYTES}", f"-timeout={HANG_SECONDS}",
            "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={failed}/", f"-seed={seed}",
            str(working),
        )  # fmt: skip
        inputs = [
            file.read_bytes() for file in sorted(failed.iterdir()) if not file.name.startswith("slow")
        ]
    executed, features = _EXECUTED.findall(said.stdout), _COVERAGE.findall(said.stdout)
    failure = ""
    if said.returncode:
        shown = [line for line in said.stdout.splitlines() if not line.startswith(("#", "\t"))]
        failure = "\n".join([*shown[-60:], *(f"input: {data!r}" for data in inputs)])
    return RunOutcome(
        name=name,
        inputs=int(executed[-1]) if executed else 0,
        features=int(features[-1]) if features else 0,
        seconds=time.monotonic() - began,
        failure=failure,
    )


def keep_corpus(name: str) -> None:
    """Take those inputs of the runs so far into the repository that together reach as much as all of them."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder, "chosen")
        chosen.mkdir()
        options = ["-merge=1", f"-max_len={MAX_INPUT_BYTES}", f"-timeout={HANG_SECONDS}"]
        said = _run(name, folder, *options, str(chosen), str(WORKING / name))
        inputs = [file.read_bytes() for file in chosen.iterdir()]
        if not inputs:
            raise RuntimeError(f"{name}: the runs can't be merged\n{said.stdout[-2000:]}")
        count = write_corpus(name, inputs)
    print(f"{name:20} {count} inputs kept")


def _run(name: str, scratch: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz.guided_run", name, scratch, *options]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz parsers.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(target_names())}")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--seed", type=int, default=0, help="the same draws again; 0 for others each time")
    parser.add_argument("--keep", action="store_true", help="afterwards, keep what was found as the corpus")
    given = parser.parse_args()
    names = target_names() if given.all else given.names
    if unknown := set(names) - set(target_names()) or not names:
        parser.error(f"no target {unknown}" if names else "name a target, or --all")
    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = []
        for outcome in pool.map(
            lambda name: run_target(name, seconds=given.seconds, seed=given.seed), names
        ):
            print(outcome, flush=True)
            outcomes.append(outcome)
        if given.keep:
            list(pool.map(keep_corpus, names))
    return int(any(outcome.failure for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
