"""`python -m bench NAME [--json] [--quick]`: run one bench; exit 1 when a goal is missed.

`python -m bench all [--json]` runs every bench at the size of CI: pass or fail of each goal, in one table.
"""

import argparse
import importlib
import os
import pkgutil
import sys
from dataclasses import replace
from pathlib import Path

from bench import all_benches
from bench.figures import Figure

FRAME = {"all_benches", "bare", "children", "figures", "ordinary_user", "__main__"}


def names() -> list[str]:
    """Every bench there is: a module or package beside this file with a `run`."""
    here = str(Path(__file__).parent)
    return sorted(m.name for m in pkgutil.iter_modules([here]) if m.name not in FRAME)


def main(argv: list[str] | None = None) -> int:
    """Run the named bench and print its figures as they come."""
    arguments = sys.argv[1:] if argv is None else argv
    known = names()
    if arguments[:1] == ["all"]:
        return all_benches.main(arguments[1:], known)
    if not arguments or arguments[0] not in known:
        print(
            f"usage: python -m bench NAME [--json] [--quick]\nbenches: all, {', '.join(known)}",
            file=sys.stderr,
        )
        return 2
    # Benches that are not about language servers start none, whatever is installed.
    os.environ["HANDTOOLS_LANGUAGE"] = "off"
    # An installed program has its bytecode; where it is never written, each start of a server would compile all.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bench = importlib.import_module(f"bench.{arguments[0]}")
    parser = argparse.ArgumentParser(prog=f"python -m bench {arguments[0]}", description=bench.__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--quick", action="store_true", help="the reduced run of CI, under 40 s")
    parser.add_argument("--untimed", action="store_true", help="print times, but judge no goal of a time")
    bench.add_arguments(parser)
    options = parser.parse_args(arguments[1:])
    missed = 0
    for measured in bench.run(options):
        untimed = options.untimed and isinstance(measured, Figure) and measured.is_timing
        figure = replace(measured, goal=None) if untimed else measured
        print(figure.as_json() if options.json else figure.as_text(), flush=True)
        missed += not figure.ok
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
