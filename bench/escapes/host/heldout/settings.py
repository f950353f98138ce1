"""Settings of the project: files that our process reads to find out which checkers and formatters there are."""

import subprocess
import sys

from bench.escapes.host.place import Place, changed_environment

_RECURSE = "[" * 100_000
_SWAP_WITH_A_PIPE = """
import ctypes, sys
libc, (here, one, other) = ctypes.CDLL(None), map(str.encode, sys.argv[1:])
while True:
    libc.renameat2(-100, here + b"/" + one, -100, here + b"/" + other, 2)
"""


async def _changes(place: Place) -> None:
    with changed_environment(HANDTOOLS_LANGUAGE="on"):
        for path in ("a.py", "b.ts", "c.sh"):
            await place.call("write", path=path, content="x = 1\n")
            await place.call("edit", path=path, old_string="1", new_string="2")
            await place.call("lsp", operation="diagnostics", path=path)


def _programs(place: Place) -> None:
    for name in ("pyright-langserver", "ty", "ruff", "black"):
        place.put(f".venv/bin/{name}", "#!/bin/sh\nexit 1\n", mode=0o755)
    for name in ("typescript-language-server", "vtsls", "tsc", "tsgo", "prettier", "biome"):
        place.put(f"node_modules/x/bin/{name}", "#!/bin/sh\nexit 1\n", mode=0o755)
        place.link(f"node_modules/.bin/{name}", f"../x/bin/{name}")


async def settings_that_are_pipes(place: Place) -> None:
    """Settings of checkers and formatters are pipes: whoever opens them waits for ever."""
    _programs(place)
    place.shell(
        "mkfifo pyproject.toml package.json tsconfig.json .editorconfig node_modules/x/package.json"
    )
    await _changes(place)


async def settings_that_never_end(place: Place) -> None:
    """Settings of checkers and formatters are links to a device that never ends."""
    _programs(place)
    for name in (
        "pyproject.toml",
        "package.json",
        "tsconfig.json",
        ".editorconfig",
        "node_modules/x/package.json",
    ):
        place.link(name, "/dev/zero")
    await _changes(place)


async def settings_that_are_deep(place: Place) -> None:
    """Settings of checkers and formatters are nested a hundred thousand levels deep."""
    _programs(place)
    place.put("pyproject.toml", f"x = {_RECURSE}")
    for name in ("package.json", "tsconfig.json", "node_modules/x/package.json"):
        place.put(name, _RECURSE)
    await _changes(place)


async def settings_that_become_pipes(place: Place) -> None:
    """Another process exchanges the settings and a pipe, while files are changed."""
    _programs(place)
    place.put("pyproject.toml", "[tool.black]\n")
    place.shell("mkfifo pipe")
    argv = [sys.executable, "-c", _SWAP_WITH_A_PIPE, str(place.workspace), "pyproject.toml", "pipe"]
    place.keep(subprocess.Popen(argv))
    for number in range(40):
        await place.call("write", path="a.py", content=f"x = {number}\n")
