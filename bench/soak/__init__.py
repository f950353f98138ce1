"""A soak: mixed calls over workspaces that are used again and again; memory, handles, journal and time stay flat.

Every sample is a line of JSON in the figures file. A run that was stopped goes on from there with the same
`--figures`, in the workspaces beside that file; `--plot` draws it.
"""

import argparse
import asyncio
import contextlib
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

from bench.figures import Figure, gathered
from bench.soak.mixed_calls import SoakWorkspace, next_call
from bench.soak.plot import drawn
from bench.soak.samples import Sample, Sampler, growth, read_samples

CALLS, QUICK_CALLS = 1_000_000, 2_000
SAMPLES, QUICK_SAMPLES = 100, 10
WORKSPACES = 4
KEPT_SAMPLES = 5
"""The journal keeps what was recorded since so many samples, as `handtools gc` does with days."""
STINT_CALLS = 250
"""After so many calls an agent goes on in another workspace, in a new session."""
WARM_UP = 0.2
"""The first part of a run, in which caches fill; growth is counted after it."""
MEMORY_MB, QUICK_MEMORY_MB = 10.0, 16.0
COUNTS, QUICK_COUNTS = 1, 8
"""Handles, threads and processes that may come to be over a run; in a short one the pools still fill."""
TIME_GROWTH, QUICK_TIME_GROWTH = 0.15, 1.0
RECORD_GROWTH = 0.15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, help="how many (1,000,000; 2,000 with --quick)")
    parser.add_argument("--figures", type=Path, help="file of the samples; a run that is in it goes on")
    parser.add_argument("--folder", type=Path, help="where the workspaces are (beside the figures file)")
    parser.add_argument("--plot", type=Path, help="draw the figures file as SVG and make no calls")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Iterable[Figure]:
    calls = options.calls or (QUICK_CALLS if options.quick else CALLS)
    if options.plot:
        samples = read_samples(options.figures)
        options.plot.write_text(drawn(samples))
        return _judged(samples, quick=options.quick)
    with _place(options.figures, options.folder) as (figures, folder):
        return gathered(lambda: _soak(figures, folder, calls, options))


@contextlib.contextmanager
def _place(figures: Path | None, workspaces: Path | None) -> Iterator[tuple[Path, Path]]:
    """The figures file and the folder of the workspaces: temporary ones unless the file is named."""
    if figures is not None:
        yield figures, workspaces or figures.with_suffix(".workspaces")
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "soak.jsonl"), Path(folder, "workspaces")


async def _soak(
    figures: Path, folder: Path, calls: int, options: argparse.Namespace
) -> AsyncIterator[Figure]:
    known = read_samples(figures)
    if not known:
        shutil.rmtree(folder, ignore_errors=True)
    step = max(calls // (QUICK_SAMPLES if options.quick else SAMPLES), 1)
    places = [SoakWorkspace(folder / str(number)) for number in range(WORKSPACES)]
    sampler = Sampler(folder, places, process=known[-1].process + 1 if known else 1)
    done = known[-1].calls if known else 0
    try:
        while done < calls:
            await _until_next_sample(places, done, step, options.seed)
            done += step
            _progress(done, calls)
            known.append(sampler.take(done))
            with figures.open("a") as file:
                file.write(known[-1].as_json() + "\n")
            await _keep_house(places, known, done // step)
    finally:
        for place in places:
            await place.close()
    for figure in _judged(known, quick=options.quick):
        yield figure


async def _until_next_sample(places: list[SoakWorkspace], done: int, step: int, seed: int) -> None:
    for number in range(done, done + step):
        place = places[number // STINT_CALLS % len(places)]
        call = next_call(place, number, seed, session=f"s{number // STINT_CALLS}")
        await place.make(call)


async def _keep_house(places: list[SoakWorkspace], known: list[Sample], round_number: int) -> None:
    """What a user does now and then: let go of old records, and start the agent anew in one of the folders."""
    if len(known) > KEPT_SAMPLES:
        for place in places:
            await asyncio.to_thread(place.let_go_of_records_before, known[-1 - KEPT_SAMPLES].at)
    await places[round_number % len(places)].close()


def _judged(samples: list[Sample], *, quick: bool) -> list[Figure]:
    last = samples[-1]
    kept = samples[int(len(samples) * WARM_UP) :]
    figures = [
        Figure(name="calls", value=last.calls, unit="calls"),
        Figure(name="calls that failed", value=sum(s.failed for s in samples), unit="calls", goal=0),
        Figure(name="files not as the calls left them", value=last.wrong_files, unit="files", goal=0),
        Figure(name="temporary files left", value=last.left_files, unit="files", goal=0),
        _grown(kept, "memory_mb", "memory", "MB", QUICK_MEMORY_MB if quick else MEMORY_MB),
        Figure(name="memory at the end", value=last.memory_mb, unit="MB"),
        *[
            _grown(kept, name, name, name, QUICK_COUNTS if quick else COUNTS)
            for name in ("handles", "threads", "processes")
        ],
        Figure(name="handles at the end", value=last.handles, unit="handles"),
        _grown_share(
            kept, "processor_ms", "processor time of a call", QUICK_TIME_GROWTH if quick else TIME_GROWTH
        ),
        Figure(name="processor time of a call", value=last.processor_ms, unit="ms"),
    ]
    if not quick:
        # In a short run nothing is old enough to be let go of.
        figures.append(_grown_share(kept, "record_bytes", "records on disk", RECORD_GROWTH))
    figures.append(
        Figure(name="records on disk at the end", value=round(last.record_bytes / 2**20, 1), unit="MB")
    )
    return figures


def _grown(samples: list[Sample], field: str, what: str, unit: str, goal: float) -> Figure:
    return Figure(
        name=f"{what}: growth over the run", value=round(growth(samples, field), 2), unit=unit, goal=goal
    )


def _grown_share(samples: list[Sample], field: str, what: str, goal: float) -> Figure:
    middle = statistics.median(getattr(sample, field) for sample in samples)
    value = round(growth(samples, field) / middle, 4)
    return Figure(name=f"{what}: growth over the run", value=value, unit="of the median", goal=goal)


def _progress(done: int, calls: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done:,} of {calls:,}", end="\n" if done >= calls else "", file=sys.stderr, flush=True)
