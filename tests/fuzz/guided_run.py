"""One target under libFuzzer, by atheris: `python -m tests.fuzz.guided_run NAME SCRATCH [OPTION...]`.

libFuzzer ends the process itself, so `tests.fuzz` starts one for each target.
"""

import ast
import sys
from pathlib import Path

import atheris

from tests.fuzz.fuzz_targets import FOLDER, load_target, run_input


def parsers_of(name: str) -> list[str]:
    """`PARSERS` of a target that is not imported yet: what is imported once is not instrumented any more."""
    tree = ast.parse((FOLDER / "targets" / f"{name}.py").read_text())
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="PARSERS")], value=value):
                return list(ast.literal_eval(value))
    raise LookupError(f"{name} names no PARSERS")


def main() -> None:
    name, scratch, *options = sys.argv[1:]
    with atheris.instrument_imports(include=parsers_of(name)):
        target = load_target(name)
    from tests.fuzz.kept_corpus import (
        read_corpus,
    )  # it needs zipfile, which one target wants to see imported

    seeds, words = Path(scratch, "seeds"), Path(scratch, "words")
    seeds.mkdir()
    for number, data in enumerate([*target.SEEDS, *target.FOUND.values(), *read_corpus(name)]):
        (seeds / f"{number:05}").write_bytes(data)
    words.write_text("".join(f'"{escaped(word)}"\n' for word in target.WORDS))
    atheris.Setup(
        [sys.argv[0], f"-dict={words}", *options, str(seeds)], lambda data: run_input(target, data)
    )
    atheris.Fuzz()


def escaped(word: str) -> str:
    """A word as libFuzzer's dictionaries have it."""
    kept = range(32, 127)
    return "".join(
        chr(byte) if byte in kept and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word.encode()
    )


if __name__ == "__main__":
    main()
