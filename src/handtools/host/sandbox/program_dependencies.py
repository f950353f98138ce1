"""Folders that a program outside the system folders must be able to read: its package and its interpreter.

A program in the project is not trusted here: its shebang line or a symlink could name a folder with
secrets.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_NODE_MODULES = "node_modules"
_SHEBANG = re.compile(rb"#!\s*(\S+)(?:\s+(\S+))?")
_SHEBANG_BYTES = 256


def folders_needed_by_program(program: str, root: str) -> tuple[str, ...]:
    """Return the folders outside the workspace that a program and its interpreter need."""
    found: list[str] = []
    for path in _trusted_paths(program, os.path.realpath(root)):
        found += _installation_folders(path)
    return tuple(dict.fromkeys(found))


def interpreter_folders(python: str) -> tuple[str, ...]:
    """Return the prefix of a project virtual environment's interpreter if its `bin` is on our PATH.

    Otherwise the result is empty.
    """
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(python)))
    ours = {os.path.realpath(place) for place in os.environ.get("PATH", "").split(os.pathsep) if place}
    known = os.path.join(prefix, "bin") in ours and not contains_home_folder(prefix)
    return (prefix,) if known else ()


def node_modules_folder(program: str) -> str:
    """Return the `node_modules` folder that contains an npm program; empty for other programs."""
    for path in _link_chain(program):
        if _NODE_MODULES in Path(path).parts:
            return path[: path.rindex(_NODE_MODULES) + len(_NODE_MODULES)]
    return ""


def contains_home_folder(folder: str) -> bool:
    """Whether a folder contains the home folder, and therefore far more than programs."""
    home = os.path.realpath(os.environ.get("HOME", "/"))
    return Path(home).is_relative_to(os.path.realpath(folder))


def _trusted_paths(program: str, root: str) -> Iterator[str]:
    """Yield the program, the targets of its symlinks and its interpreter.

    For a program in the project, yield only an interpreter that is on our PATH.
    """
    own = any(_is_inside(path, root) for path in _link_chain(program))
    # Prefer an interpreter next to the program, as when it is run, unless the program is in the project.
    beside = "" if own else os.path.dirname(program)
    named, through_path = _interpreter(os.path.realpath(program), beside)
    if not own:
        yield from _link_chain(program)
        yield from _link_chain(named) if named else ()
    elif named and through_path and not any(_is_inside(path, root) for path in _link_chain(named)):
        yield from _link_chain(named)


def _link_chain(program: str) -> Iterator[str]:
    """Yield the path of a program and every symlink target on the way to the real file."""
    path = Path(os.path.normpath(program))
    yield str(path)
    for _ in range(40):
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
        yield str(path)
    yield os.path.realpath(program)


def _is_inside(path: str, root: str) -> bool:
    return Path(path).is_relative_to(root) or Path(os.path.realpath(path)).is_relative_to(root)


def _installation_folders(path: str) -> Iterator[str]:
    """Yield the folder of a program, or the entire package or virtual environment it belongs to."""
    if _NODE_MODULES in Path(path).parts:
        yield path[: path.rindex(_NODE_MODULES) + len(_NODE_MODULES)]
        return
    folder = os.path.dirname(path)
    prefix = os.path.dirname(folder)
    shared = os.path.join(os.environ.get("HOME", "/"), ".local")
    if os.path.basename(folder) != "bin" or contains_home_folder(prefix) or prefix == shared:
        yield folder
        # Packages that the user installed for all environments (`pip install --user`).
        yield from (os.path.join(shared, "lib"),) if prefix == shared else ()
    else:
        yield prefix


def _interpreter(script: str, beside: str) -> tuple[str | None, bool]:
    """Return the interpreter in a script's shebang line, and whether it was looked up on our PATH."""
    try:
        # O_NONBLOCK: opening a FIFO would otherwise wait for a writer.
        with open(os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            match = _SHEBANG.match(file.read(_SHEBANG_BYTES).split(b"\n", 1)[0])
    except OSError:
        return None, False
    if not match:
        return None, False
    named, argument = os.fsdecode(match[1]), os.fsdecode(match[2] or b"")
    if os.path.basename(named) == "env" and argument:
        places = filter(None, [beside, os.environ.get("PATH", os.defpath)])
        return shutil.which(argument, path=os.pathsep.join(places)), True
    return named, False
