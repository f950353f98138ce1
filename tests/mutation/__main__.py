"""`python -m tests.mutation [--area A | --module M] --sample N --seed S`: which mistakes the tests don't notice.

Mutants run in a copy of `src`: the tree that you work in is not touched. A survivor that is listed in
`survivors.toml` with a reason changes nothing that a user could see; any other one is a test that is missing.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from tests.mutation.areas import AREAS, Area
from tests.mutation.mutants import Mutant, mutants_of, mutated
from tests.mutation.trial import Suites

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text("utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--area", choices=AREAS, action="append", help="one of the areas (all)")
    parser.add_argument("--module", help="one module of an area: text.patches.hunk_placement")
    parser.add_argument("--only", help="only mutants whose name contains this")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each area (40)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--json", action="store_true", help="a line for each mutant")
    options = parser.parse_args()
    # Ended from outside, it ends its trial first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    missed = 0
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source)
        for name in options.area or AREAS:
            area = AREAS[name]
            modules = [module for module in area.modules if options.module in (None, module)]
            if modules:
                missed += _area(name, area, modules, source, options)
    return 1 if missed else 0


def _area(name: str, area: Area, modules: list[str], source: Path, options: argparse.Namespace) -> int:
    """Try a sample; gives the number of survivors that nobody has explained."""
    everyone = [
        mutant
        for module in modules
        for mutant in mutants_of(module, _file(source, module).read_text("utf-8"))
    ]
    named = [mutant for mutant in everyone if not options.only or options.only in str(mutant)]
    # A larger sample begins with the smaller one of its seed.
    chosen = random.Random(options.seed).sample(named, len(named))[: options.sample]
    began = time.monotonic()
    counts = {"killed": 0, "timed out": 0, "equivalent": 0, "survived": 0}
    with Suites(ROOT, source, area.suites) as suites:
        limit = 60 + 5 * (time.monotonic() - began)
        for mutant in chosen:
            began = time.monotonic()
            verdict = _verdict(mutant, suites, _file(source, mutant.module), limit)
            counts[verdict] += 1
            if options.json:
                seconds = round(time.monotonic() - began, 1)
                told = {"area": name, "mutant": str(mutant), "verdict": verdict, "seconds": seconds}
                print(json.dumps(told), flush=True)
            elif verdict == "survived":
                print(f"  survived: {mutant}", flush=True)
    gone = counts["killed"] + counts["timed out"]
    able = len(chosen) - counts["equivalent"]
    share = f"{100 * gone / able:.0f} %" if able else "none"
    print(
        f"{name}: {len(chosen)} of {len(everyone)}, {counts}, killed of those that can be: {share}",
        file=sys.stderr,
    )
    return counts["survived"]


def _verdict(mutant: Mutant, suites: Suites, file: Path, limit: float) -> str:
    wrong = mutated(file.read_text("utf-8"), mutant)
    verdict = suites.verdict(str(file), wrong, suites.tests_of(str(file), mutant.function), limit)
    return "equivalent" if verdict == "survived" and str(mutant) in LISTED else verdict


def _file(source: Path, module: str) -> Path:
    path = source.joinpath("handtools", *module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    sys.exit(main())
