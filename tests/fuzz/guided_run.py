"""One target under libFuzzer, by atheris: `python -m tests.fuzz.guided_run NAME SCRATCH [OPTION...]`.

libFuzzer ends the process itself, so `tests.fuzz` starts one for each target.
"""

import inspect
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType

import atheris

from tests.fuzz.fuzz_targets import load_target, run_input
from tests.fuzz.kept_corpus import read_corpus


def instrument(parsers: Sequence[str]) -> None:
    """Have the functions of these modules and packages report where they have been.

    The import hook of atheris would do so for every module of ours, which takes ten times as long to import.
    """
    for name, module in list(sys.modules.items()):
        if any(name == parser or name.startswith(f"{parser}.") for parser in parsers):
            for function in functions_of(module, name):
                atheris.instrument_func(function)


def functions_of(holder: object, module: str) -> Iterator[FunctionType]:
    """The functions and methods that a module defines, also behind caches and properties."""
    for value in list(vars(holder).values()):
        bare = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        if isinstance(bare, FunctionType) and bare.__module__ == module:
            yield bare
        elif isinstance(value, type) and value.__module__ == module and value is not holder:
            yield from functions_of(value, module)


def main() -> None:
    name, scratch, *options = sys.argv[1:]
    target = load_target(name)
    instrument(target.PARSERS)
    seeds, words = Path(scratch, "seeds"), Path(scratch, "words")
    seeds.mkdir(exist_ok=True)
    for number, data in enumerate([*target.SEEDS, *target.FOUND.values(), *read_corpus(name)]):
        (seeds / f"{number:05}").write_bytes(data)
    words.write_text("".join(f'"{escaped(word)}"\n' for word in target.WORDS))
    # Merging, libFuzzer starts this program again for the inputs after one that failed, by a shell.
    this = f"{shlex.quote(sys.executable)} -m {__spec__.name} {name} {shlex.quote(scratch)}"
    atheris.Setup([this, f"-dict={words}", *options, str(seeds)], lambda data: run_input(target, data))
    atheris.Fuzz()


def escaped(word: str) -> str:
    """A word as libFuzzer's dictionaries have it."""
    kept = range(32, 127)
    return "".join(
        chr(byte) if byte in kept and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode()
    )


if __name__ == "__main__":
    main()
