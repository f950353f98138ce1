"""Edits as models send them: how many are applied exactly, refused, or applied wrongly."""

import argparse
import json
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from bench.editbench import cases as files
from bench.editbench import generating, model_errors, peers
from bench.editbench.cases import Case, Kind
from bench.editbench.judging import Verdict, is_right, judge, recovers
from bench.editbench.matchers import MATCHERS, Answer
from bench.editbench.sessions import Sessions, intent
from bench.figures import Figure

GENERATORS = {"perturbations": generating.generate, "model-errors": model_errors.generate}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this bench."""
    parser.add_argument("--seed", type=int, default=1, help="the seed of the generator")
    parser.add_argument("--generator", choices=sorted(GENERATORS), default="perturbations")
    parser.add_argument("--cases", type=Path, nargs="+", help="run the cases of these files instead")
    parser.add_argument("--write-cases", type=Path, help="keep the generated cases in this file")
    parser.add_argument("--results", type=Path, help="write one JSON line per case")
    parser.add_argument(
        "--recovery", action="store_true", help="retry every refused apply case by its message"
    )
    parser.add_argument("--matcher", choices=(*sorted(MATCHERS), *peers.NAMES), default="ours")
    parser.add_argument("--peers", type=Path, help="where the matchers of others are installed")
    parser.add_argument("--show", default="", help="print cases of this verdict or family/verdict")


def run(options: argparse.Namespace) -> Iterator[Figure]:
    """Judge every case; wrong ones and applied must-refuse ones miss their goal."""
    generate = GENERATORS[options.generator]
    cases: Iterable[Case] = (
        chain.from_iterable(map(files.read, options.cases))
        if options.cases
        else generate(options.seed, reduced=options.quick)
    )
    if options.write_cases:
        cases = list(cases)
        files.write(options.write_cases, cases)
    tally = _Tally(options)
    for case in cases:
        tally.take(case)
    yield from tally.figures()


class _Tally:
    """Verdicts and times as they come in."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.matcher = (
            MATCHERS[options.matcher]
            if options.matcher in MATCHERS
            else peers.peer(options.matcher, options.peers)
        )
        self.baseline = options.matcher != "ours"
        self.recovery = options.recovery
        self.show = options.show
        self.results = options.results.open("w", encoding="utf-8") if options.results else None
        self.verdicts: dict[tuple[Kind, str], Counter[Verdict]] = defaultdict(Counter)
        self.right: Counter[tuple[Kind, str]] = Counter()
        self.seconds: list[float] = []
        self.sessions = Sessions(goals=not self.baseline)
        self.retried: dict[Kind, Counter[str]] = {"apply": Counter(), "refuse": Counter()}
        self.recovered: dict[Kind, Counter[str]] = {"apply": Counter(), "refuse": Counter()}

    def take(self, case: Case) -> None:
        # Matching waits for nothing: the time of this thread is what it takes, whatever else the machine does.
        start = time.thread_time()
        answer = self.matcher(case)
        self.seconds.append(time.thread_time() - start)
        if self.results:
            self.results.write(_result(case, answer) + "\n")
        known = intent(case)
        if known is not None:
            self._show(case, answer, self.sessions.take(case, answer, known))
            return
        verdict = judge(case, answer)
        self.verdicts[case.kind, case.family][verdict] += 1
        self.right[case.kind, case.family] += is_right(case, verdict)
        self._show(case, answer, verdict)
        # Of what must be refused some was still meant for one place: then a retry may be right by a guess.
        if self.recovery and verdict == "refused" and case.accept and case.kind in self.retried:
            self.retried[case.kind][case.family] += 1
            success = recovers(case, answer, self.matcher)
            self.recovered[case.kind][case.family] += success
            if not success and self.show == "unrecovered":
                print(case.as_json(), "\n   ", answer.how, answer.message[:800])

    def _show(self, case: Case, answer: Answer, verdict: str) -> None:
        if self.show and self.show in (verdict, f"{case.family}/{verdict}"):
            print(case.as_json(), "\n   ", answer.how, answer.message[:400])

    def figures(self) -> Iterator[Figure]:
        if self.results:
            self.results.close()
        yield from self.sessions.figures()
        for (kind, family), verdicts in self.verdicts.items():
            count = sum(verdicts.values())
            good = self.right[kind, family]
            yield Figure(
                name=f"{kind} {family} right", value=round(100 * good / count, 1), unit="%", better="higher"
            )
            if verdicts["wrong"]:
                yield Figure(name=f"{kind} {family} wrong", value=verdicts["wrong"], unit="")
        yield from self._totals()

    def _totals(self) -> Iterator[Figure]:
        apply, done, refuse = (self._sum(kind) for kind in ("apply", "done", "refuse"))
        count = sum(apply.values())
        goal = not self.baseline
        if count:
            exact = 100 * apply["exact"] / count
            yield Figure(name="apply cases", value=count, unit="")
            yield Figure(
                name="exact", value=round(exact, 2), unit="%", goal=95 if goal else None, better="higher"
            )
            yield Figure(name="refused", value=round(100 * apply["refused"] / count, 2), unit="%")
            yield Figure(name="wrong", value=apply["wrong"], unit="", goal=0)
        if done:
            yield Figure(name="done cases", value=sum(done.values()), unit="")
            yield Figure(name="applied twice", value=done["wrong"], unit="", goal=0)
        if refuse:
            yield Figure(name="refuse cases", value=sum(refuse.values()), unit="")
            yield Figure(name="must-refuse applied", value=refuse["wrong"], unit="", goal=0)
        if self.recovery:
            yield from self._recovery(goal=95 if goal else None)
        if len(self.seconds) > 1:
            tail = statistics.quantiles(self.seconds, n=100)[98]
            median = statistics.median(self.seconds)
            yield Figure(name="median", value=round(median * 1000, 3), unit="ms", goal=2 if goal else None)
            yield Figure(name="p99", value=round(tail * 1000, 3), unit="ms", goal=25 if goal else None)

    def _recovery(self, goal: float | None) -> Iterator[Figure]:
        for kind, families in self.retried.items():
            rightly = " rightly" if kind == "refuse" else ""
            for family, count in sorted(families.items()):
                good = self.recovered[kind][family]
                name = f"recovery {family}, of {count}{rightly} refused"
                yield Figure(name=name, value=good, unit="", better="higher")
        if total := self.retried["apply"].total():
            share = 100 * self.recovered["apply"].total() / total
            name = f"recovery of all {total}"
            yield Figure(name=name, value=round(share, 1), unit="%", goal=goal, better="higher")

    def _sum(self, kind: Kind) -> Counter[Verdict]:
        return sum((count for (of, _), count in self.verdicts.items() if of == kind), Counter[Verdict]())


def _result(case: Case, answer: Answer) -> str:
    outcome = "refused" if answer.text is None else "done" if answer.text == case.content else "applied"
    row: dict[str, object] = {"id": case.id, "outcome": outcome}
    if answer.text is not None:
        row["text"] = files.outward(answer.text)
    return json.dumps(row)
