"""What a soak's process holds after so many calls, and how much of that grows."""

import itertools
import json
import os
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol


class SampledWorkspace(Protocol):
    """What is asked of a workspace when a sample is taken."""

    failed: int
    seconds: list[float]
    root: Path

    def wrong_files(self) -> int:
        """How many files are not as they must be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line of the figures file."""

    calls: int
    process: int
    """1 for the process that began the run, one more for each that went on with it."""
    at: float
    memory_mb: float
    handles: int
    threads: int
    processes: int
    record_bytes: int
    median_ms: float
    p99_ms: float
    processor_ms: float
    """Processor time of a call in this process: other work on the machine is not in it."""
    failed: int
    wrong_files: int
    left_files: int
    load: float

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


class Sampler:
    """Takes samples of this process; times are those since the sample before."""

    def __init__(self, folder: Path, places: Sequence[SampledWorkspace], *, process: int) -> None:
        self._folder, self._places, self._process = folder, places, process
        self._processor = time.process_time()

    def take(self, calls: int) -> Sample:
        """The sample after so many calls."""
        seconds = [second for place in self._places for second in place.seconds]
        failed = sum(place.failed for place in self._places)
        for place in self._places:
            place.seconds.clear()
            place.failed = 0
        processor, self._processor = self._processor, time.process_time()
        return Sample(
            calls=calls,
            process=self._process,
            at=time.time(),
            memory_mb=round(_memory_mb(), 2),
            handles=len(os.listdir("/proc/self/fd")) - 1,
            threads=threading.active_count(),
            processes=len(_descendants(os.getpid())),
            record_bytes=sum(_bytes_below(path) for path in self._folder.glob("*/state")),
            median_ms=round(statistics.median(seconds) * 1000, 3),
            p99_ms=round(statistics.quantiles(seconds, n=100)[98] * 1000, 3),
            processor_ms=round((self._processor - processor) / len(seconds) * 1000, 4),
            failed=failed,
            wrong_files=sum(place.wrong_files() for place in self._places),
            left_files=sum(len(list(place.root.rglob(".handtools*"))) for place in self._places),
            load=round(os.getloadavg()[0], 2),
        )


def read_samples(figures: Path) -> list[Sample]:
    """The samples of a figures file; none where there is no file."""
    if not figures.exists():
        return []
    return [Sample(**json.loads(line)) for line in figures.read_text().splitlines()]


def growth(samples: Sequence[Sample], name: str) -> float:
    """How much a value grows over the samples: the median slope between all pairs of one process (Theil-Sen)."""
    slopes = [
        (getattr(later, name) - getattr(earlier, name)) / (later.calls - earlier.calls)
        for earlier, later in itertools.combinations(samples, 2)
        if earlier.process == later.process and earlier.calls < later.calls
    ]
    return statistics.median(slopes) * (samples[-1].calls - samples[0].calls) if slopes else 0.0


def _memory_mb() -> float:
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    return resident * os.sysconf("SC_PAGE_SIZE") / 2**20


def _bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _descendants(pid: int) -> list[int]:
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return children + [below for child in children for below in _descendants(child)]
