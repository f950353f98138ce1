"""The kept corpus of a target: inputs that together reach what the fuzzer has reached, in one reproducible zip."""

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tests.fuzz.fuzz_targets import FOLDER

MAX_CORPUS_BYTES = 8 << 10
"""How much of one target's inputs is kept, the smallest first: the suite runs them all, in seconds."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def _file(name: str) -> Path:
    return FOLDER / "corpus" / f"{name}.zip"


def read_corpus(name: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    if not _file(name).exists():
        return []
    with zipfile.ZipFile(_file(name)) as kept:
        return [kept.read(entry) for entry in kept.namelist()]


def write_corpus(name: str, inputs: Iterable[bytes]) -> int:
    """Keep the smallest of the inputs; returns how many."""
    left, chosen = MAX_CORPUS_BYTES, []
    for data in sorted(set(inputs), key=lambda each: (len(each), each)):
        left -= len(data)
        if left < 0:
            break
        chosen.append(data)
    with zipfile.ZipFile(_file(name), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        for data in chosen:
            kept.writestr(zipfile.ZipInfo(hashlib.sha256(data).hexdigest()[:12], _EPOCH), data)
    return len(chosen)
