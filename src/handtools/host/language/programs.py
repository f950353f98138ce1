"""Programs: what must be readable for one to run where only the system's own folders are."""

import os
import shutil
from collections.abc import Iterator


def program_folders(program: str) -> tuple[str, ...]:
    """The folders of a program and of what interprets it, each no larger than it must be."""
    found: list[str] = []
    for path in _files(program):
        found += _around(path)
    return tuple(dict.fromkeys(found))


def _files(program: str) -> Iterator[str]:
    yield program
    real = os.path.realpath(program)
    yield real
    interpreter = _interpreter(real)
    if interpreter:
        yield interpreter
        yield os.path.realpath(interpreter)


def _around(path: str) -> Iterator[str]:
    """A program's folder; of a package or an environment, all of it: programs look for their parts there."""
    before, found, _ = path.partition("/node_modules/")
    if found:
        yield f"{before}/node_modules"
        return
    folder = os.path.dirname(path)
    prefix = os.path.dirname(folder)
    if os.path.exists(os.path.join(prefix, "pyvenv.cfg")):
        yield prefix
        return
    yield folder
    if os.path.basename(path).startswith("python"):
        yield os.path.join(prefix, "lib")


def _interpreter(script: str) -> str | None:
    """What the first line of a script names; None for anything else."""
    try:
        with open(script, "rb") as file:
            head = file.read(256)
    except OSError:
        return None
    words = head[2:].split(b"\n", 1)[0].decode(errors="replace").split() if head.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return shutil.which(named[0]) if named else None
    return words[0] if words else None
