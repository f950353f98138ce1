"""Workday: what a developer does all day, done through the tools, judged from outside, and taken back.

A story is a folder below `stories/`; what must not be possible in the same settings is below `safety/`. What fails
today is in `not_yet.toml` with the reason: a story that fails and is not there is an error, and one that is there
and passes is one, too. `docs/how-to/workday.md` tells how to add a story.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.figures import Figure, NotRun
from bench.ordinary_user import as_user
from bench.workday.needs import lacking
from bench.workday.peers import BARE, PEERS, install_peers, versions
from bench.workday.performers import OwnTools, peer_performer
from bench.workday.place import remove
from bench.workday.story import HERE, Kind, Story, all_stories
from bench.workday.trial import Maker, Outcome, try_story

SHARE = 0.98
"""Of the stories, so many must pass; of the undos every one must be exact."""
MAX_QUESTIONS = 2
QUICK_SECONDS: dict[Kind, float] = {"stories": 32.0, "safety": 14.0}
"""In CI none is begun after so long."""
NOT_YET = HERE / "not_yet.toml"
ORDINARY_USER = "ordinary_user"
"""The part of that list about stories that fail for all but root."""
OURS = "handtools"
_KINDS: tuple[Kind, Kind] = ("stories", "safety")
_ANSWER = re.compile(r" \(the last answer: |, but ['\"]| \(undo: ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only", action="append", help="only stories whose name begins so (may be repeated)"
    )
    parser.add_argument("--user", type=int, help="run it as this user")
    parser.add_argument(
        "--peers", action="store_true", help="other sandboxes on the same stories, as a table"
    )
    parser.add_argument("--column", action="append", help="with --peers, only this one (may be repeated)")
    parser.add_argument(
        "--idle", action="store_true", help="leave all calls out: every story must then fail"
    )
    parser.add_argument("--told", action="store_true", help="say what every story came to")
    parser.add_argument(
        "--settle", action="store_true", help="write the reasons of today into not_yet.toml"
    )


def run(options: argparse.Namespace) -> Iterable[Figure | NotRun]:
    if options.user:
        _run_as(options)
    elif options.peers:
        yield from _side_by_side(options)
    elif options.idle:
        yield from _idle(options)
    else:
        yield from _ours(options)


def _run_as(options: argparse.Namespace) -> None:
    base = Path(tempfile.mkdtemp(prefix="workday-", dir="/home" if Path("/home").is_dir() else None))
    os.chown(base, options.user, options.user)
    os.environ["WORKDAY_BASE"] = str(base)
    words = [word for each in options.only or () for word in ("--only", each)]
    words += [f"--{name}" for name in ("json", "quick", "peers", "idle", "told") if getattr(options, name)]
    try:
        code = as_user(options.user, ["workday", *words])
    finally:
        remove(base)
    if code:
        raise SystemExit(code)


def _asked_for(kind: Kind, options: argparse.Namespace) -> list[Story]:
    stories = all_stories(kind)
    if options.only:
        return [story for story in stories if any(story.name.startswith(word) for word in options.only)]
    return [story for story in stories if story.quick] if options.quick else list(stories)


def chosen(kind: Kind, options: argparse.Namespace) -> list[Story]:
    """The stories that are asked for and that this machine has the parts for; says which it has not."""
    wanted = _asked_for(kind, options)
    missing: dict[str, list[str]] = {}
    for story in wanted:
        for need in filter(lacking, story.needs):
            missing.setdefault(need, []).append(story.name)
    for need, names in missing.items():
        print(
            f"workday: no {need} here, so not told: {', '.join(names)} (get it: {lacking(need)})",
            file=sys.stderr,
        )
    return [story for story in wanted if not any(map(lacking, story.needs))]


def not_yet() -> dict[str, dict[str, str]]:
    """The stories, undos and safety rows that fail today, each with its reason."""
    return tomllib.loads(NOT_YET.read_text("utf-8")) if NOT_YET.is_file() else {}


def _expected() -> dict[str, dict[str, str]]:
    """What is known to fail for this user: some stories fail for all but root."""
    known = not_yet()
    more = {} if os.geteuid() == 0 else known.get(ORDINARY_USER, {})
    return known | {"stories": known.get("stories", {}) | more}


def _ours(options: argparse.Namespace) -> Iterator[Figure | NotRun]:
    told, safety = (list(_tell(chosen(kind, options), OwnTools, options)) for kind in _KINDS)
    reached = {each.name for each in (*told, *safety)}
    for story in (each for kind in _KINDS for each in _asked_for(kind, options)):
        if story.name not in reached:
            need = next(filter(lacking, story.needs), None)
            yield NotRun(story.name, f"no {need} here" if need else "no time was left for it")
    undone = [each for each in told if each.undone]
    failing = {
        "stories": {each.name: each.why for each in told if each.why},
        "undo": {each.name: each.undo for each in undone if each.undo},
        "safety": {each.name: each.why for each in safety if each.why},
    }
    tried = {
        "stories": {each.name for each in told},
        "undo": {each.name for each in undone},
        "safety": {each.name for each in safety},
    }
    if options.settle:
        _settle(failing, tried)
    yield from _held_against_not_yet(failing, tried, options)
    whole = not options.quick and not options.only
    passed = sum(each.passed for each in told)
    yield _share("stories that pass", passed, len(told), SHARE if whole else None)
    yield _share(
        "undos that are exact", len(undone) - len(failing["undo"]), len(undone), 1.0 if whole else None
    )
    yield _share("what must not be possible is not", len(safety) - len(failing["safety"]), len(safety), 1.0)
    counts = [len(each.questions) for each in told]
    if counts:
        yield Figure(
            name="questions, median",
            value=statistics.median(counts),
            unit="of a story",
            goal=None if options.only else 0,
        )
        yield Figure(name="questions, most", value=max(counts), unit="of a story", goal=MAX_QUESTIONS)
        yield Figure(
            name="time of a story, median", value=statistics.median(t.seconds for t in told), unit="s"
        )
        yield Figure(name="calls", value=sum(each.calls for each in told), unit="calls")
        yield Figure(name="tokens of answers", value=sum(each.tokens for each in told), unit="tokens")
        bash = sum(each.bash_tokens for each in told)
        share = sum(each.files_tokens for each in told) / max(bash, 1)
        yield Figure(name="`Files:` in answers of bash", value=round(share * 100, 1), unit="% of tokens")


def _tell(stories: list[Story], make: Maker, options: argparse.Namespace) -> Iterator[Outcome]:
    started = time.monotonic()
    for story in stories:
        if options.quick and time.monotonic() - started > QUICK_SECONDS[story.kind]:
            print(f"workday: no time was left for {story.name} and what follows it", file=sys.stderr)
            return
        outcome = try_story(story, make, idle=options.idle, undo=make is OwnTools)
        if options.told or options.only:
            print(_line(outcome), file=sys.stderr, flush=True)
        yield outcome


def _line(outcome: Outcome) -> str:
    asked = f"; asked: {' / '.join(outcome.questions)[:300]}" if outcome.questions else ""
    undo = f"; undo: {outcome.undo or 'exact'}" if outcome.undone else ""
    told = outcome.why or "passed"
    return f"{outcome.name:<40} {outcome.seconds:5.1f} s  {told}{undo}{asked}"


def _held_against_not_yet(
    failing: dict[str, dict[str, str]], tried: dict[str, set[str]], options: argparse.Namespace
) -> Iterator[Figure]:
    known = _expected()
    new, over = [], []
    for part, found in failing.items():
        listed = known.get(part, {})
        for name, why in found.items():
            if name not in listed:
                new.append(f"{part}/{name}")
            if name not in listed or not options.quick:
                print(f"workday: {part}/{name}: {why}", file=sys.stderr)
        over += [f"{part}/{name}" for name in listed if name in tried[part] and name not in found]
    if new:
        print(f"workday: failed, and not in {NOT_YET.name}: {', '.join(new)}", file=sys.stderr)
    if over:
        print(
            f"workday: in {NOT_YET.name}, and passes (--settle takes it out): {', '.join(over)}",
            file=sys.stderr,
        )
    yield Figure(name="failures that are not in not_yet.toml", value=len(new), unit="stories", goal=0)
    yield Figure(name="entries of not_yet.toml that pass", value=len(over), unit="stories", goal=0)


def _settle(failing: dict[str, dict[str, str]], tried: dict[str, set[str]]) -> None:
    """Write what fails now; a reason that a person wrote stays, and so does what was not tried.

    Answers are left out: they may name hosts, which are no part of the repository.
    """
    known = not_yet()
    rows = ["# What fails today and why; written by `python -m bench workday --settle`, reasons by people."]
    for part, found in failing.items():
        listed = known.get(part, {})
        kept = {name: why for name, why in listed.items() if name not in tried[part] or name in found}
        kept = {name: _ANSWER.split(why)[0] for name, why in found.items()} | kept
        rows += ["", f"[{part}]"]
        rows += [f"{name} = {_quoted(why)}" for name, why in sorted(kept.items())]
    rows += ["", f"[{ORDINARY_USER}]"]
    rows += [f"{name} = {_quoted(why)}" for name, why in sorted(known.get(ORDINARY_USER, {}).items())]
    NOT_YET.write_text("\n".join(rows) + "\n", "utf-8")


def _quoted(text: str) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _share(name: str, value: int, total: int, goal: float | None) -> Figure:
    least = None if goal is None else goal * total
    return Figure(name=f"{name}, of {total}", value=value, unit="stories", goal=least, better="higher")


def _idle(options: argparse.Namespace) -> Iterator[Figure]:
    """With nothing done every judge must say so: one that does not can't fail."""
    told = list(_tell(chosen("stories", options), OwnTools, options))
    blind = [each.name for each in told if each.passed]
    broken = [
        f"{each.name}: {each.why}" for each in told if each.why.startswith("it could not be prepared")
    ]
    for name in [*blind, *broken]:
        print(f"workday: its judge says nothing: {name}", file=sys.stderr)
    yield Figure(
        name=f"stories that pass with nothing done, of {len(told)}",
        value=len(blind) + len(broken),
        unit="stories",
        goal=0,
    )


def _side_by_side(options: argparse.Namespace) -> Iterator[Figure]:
    """Ours and the peers on the same stories and safety rows, as far as those are commands."""
    folder = install_peers()
    makers: dict[str, Maker] = {OURS: OwnTools} | {name: peer_performer(name, folder) for name in PEERS}
    makers = {name: make for name, make in makers.items() if name in (options.column or makers)}
    print(f"peers: {versions(folder)}", file=sys.stderr)
    for kind, word in zip(_KINDS, ("useful", "safe"), strict=True):
        stories = [story for story in chosen(kind, options) if story.commands_only]
        table: dict[str, dict[str, bool]] = {}
        for name, make in makers.items():
            # What must not be is a row of its own below `safety/`.
            told = list(_tell(stories, make, options))
            table[name] = {each.name: each.done if kind == "stories" else each.passed for each in told}
        _print_table(word, stories, table)
        for name, row in table.items():
            others = [sum(table[peer].values()) for peer in PEERS if peer in table and peer != BARE]
            goal = max(others, default=None) if name == OURS else None
            yield Figure(
                name=f"{name}: {word}, of {len(stories)}",
                value=sum(row.values()),
                unit="rows",
                goal=goal,
                better="higher",
            )
        if kind == "safety" and BARE in table:
            bare = sum(table[BARE].values())
            yield Figure(name="safe with no sandbox at all", value=bare, unit="rows", goal=0)


def _print_table(word: str, stories: list[Story], table: dict[str, dict[str, bool]]) -> None:
    print(f"\n| {word} | {' | '.join(table)} |", file=sys.stderr)
    print(f"|---|{'---|' * len(table)}", file=sys.stderr)
    for story in stories:
        cells = ["yes" if row.get(story.name) else "no" for row in table.values()]
        print(f"| {story.name} | {' | '.join(cells)} |", file=sys.stderr)
