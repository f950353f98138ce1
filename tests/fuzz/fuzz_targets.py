"""The targets: one module for each parser, and what must hold of every input of each."""

import importlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

FOLDER = Path(__file__).parent
SECONDS_PER_INPUT = 2.0
"""Processor time that no input of `MAX_INPUT_BYTES` may take; waiting for a busy machine does not count."""
MAX_INPUT_BYTES = 4096


class FuzzTarget(Protocol):
    """A module of `targets`."""

    SEEDS: Sequence[bytes]
    """Inputs to begin with: what the parser is usually given."""
    WORDS: Sequence[str]
    """What the format gives a meaning to; the fuzzer puts these in."""
    PARSERS: Sequence[str]
    """The modules and packages whose coverage guides the fuzzer."""
    FOUND: Mapping[str, bytes]
    """Inputs that once failed, by what was wrong."""

    def fuzz(self, data: bytes) -> None:
        """Parse an input, and raise unless everything holds."""


class TooSlow(AssertionError):
    """An input took longer than any may."""


def target_names() -> list[str]:
    """The names of all targets."""
    return sorted(file.stem for file in (FOLDER / "targets").glob("*.py"))


def load_target(name: str) -> FuzzTarget:
    """Import a target, and with it the parser."""
    return importlib.import_module(f"tests.fuzz.targets.{name}")  # type: ignore[return-value]


def run_input(target: FuzzTarget, data: bytes) -> None:
    """Run one input within its time."""
    began = time.thread_time()
    target.fuzz(data)
    if (taken := time.thread_time() - began) > SECONDS_PER_INPUT:
        raise TooSlow(f"{taken:.1f} s for {len(data)} bytes")
