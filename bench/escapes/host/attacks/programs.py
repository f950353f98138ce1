"""Programs: what our process starts is found in the workspace, or told by it what to do."""

import json
import os
import subprocess
import sys
import sysconfig

from bench.escapes.host.place import PREPARED_SECONDS, Place, changed_environment

NAMES = ("rg", "git", "bwrap", "bash", "sh", "python3", "env", "setpriv", "unshare", "file", "node")
_CALLER = """
import asyncio, json, sys
from handtools.toolbox import everything
async def main():
    async with everything(sys.argv[1]) as box:
        for tool, args in json.loads(sys.argv[2]):
            print((await box.call(tool, args)).text)
asyncio.run(main())
"""


async def _ordinary_calls(place: Place) -> None:
    for tool, args in _CALLS:
        await place.call(tool, **args)


_CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("grep", {"pattern": "main"}),
    ("read", {"path": "missing.txt"}),
    ("find", {"pattern": "*.py"}),
    ("bash", {"command": "echo hello"}),
)


async def environment_of_the_workspace(place: Place) -> None:
    """We are installed in the workspace's own .venv, where a command and a write replace rg; the next search runs it."""
    site = place.workspace / ".venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (site / "ours.pth").write_text("\n".join(path for path in sys.path if path))
    beside = place.workspace / ".venv" / "bin"
    beside.mkdir()
    real = os.path.realpath(sys.executable)
    (beside.parent / "pyvenv.cfg").write_text(f"home = {os.path.dirname(real)}\n")
    (beside / "python").symlink_to(real)
    place.put(".venv/bin/rg", "#!/bin/sh\nexit 1\n", mode=0o755)
    evil = f"#!/bin/sh\n{place.payload}\n"
    calls = (
        ("bash", {"command": f"rm .venv/bin/rg; printf '{evil}' > .venv/bin/rg; chmod +x .venv/bin/rg"}),
        ("grep", {"pattern": "main"}),
        ("write", {"path": ".venv/bin/rg", "content": evil, "mode": "overwrite"}),
        (
            "bash",
            {
                "command": f"for n in git bwrap; do printf '{evil}' > .venv/bin/$n; chmod +x .venv/bin/$n; done"
            },
        ),
        *_CALLS,
    )
    place.begin()
    for _ in range(2):
        done = subprocess.run(
            [str(beside / "python"), "-c", _CALLER, str(place.workspace), json.dumps(calls)],
            cwd=place.outside,
            capture_output=True,
            timeout=PREPARED_SECONDS,
            check=True,
        )
        place.tell("said", done.stdout.decode("utf-8", "replace"))


async def activated_environment(place: Place) -> None:
    """The workspace's .venv/bin is the first on PATH, and a command plants programs there."""
    with changed_environment(PATH=f"{place.workspace}/.venv/bin:{os.environ['PATH']}"):
        text = f"mkdir -p .venv/bin; for n in {' '.join(NAMES)}; do printf '#!/bin/sh\\n{place.payload}\\n' > .venv/bin/$n"
        await place.bash(f"{text}; chmod +x .venv/bin/$n; done")
        await _ordinary_calls(place)
        place.open()
        await _ordinary_calls(place)


async def planted_programs_on_the_first_call(place: Place) -> None:
    """An archive brings .venv/bin and node_modules/.bin, and the user's shell has both on PATH."""
    for name in NAMES:
        place.program(f".venv/bin/{name}")
        place.program(f"node_modules/.bin/{name}")
    both = f"{place.workspace}/.venv/bin:{place.workspace}/node_modules/.bin"
    with changed_environment(PATH=f"{both}:{os.environ['PATH']}"):
        await _ordinary_calls(place)


async def relative_path_entries(place: Place) -> None:
    """PATH has an empty, a dotted and a relative entry, and our process stands in the workspace."""
    for name in NAMES:
        place.program(name)
        place.program(f"bin/{name}")
    os.chdir(place.workspace)
    with changed_environment(PATH=f":.:bin:{os.environ['PATH']}"):
        await _ordinary_calls(place)


async def path_entry_that_is_a_link_into_the_workspace(place: Place) -> None:
    """PATH names a folder outside that is a link to one inside."""
    for name in NAMES:
        place.program(f"tools/{name}")
    (place.outside / "bin").symlink_to(place.workspace / "tools")
    with changed_environment(PATH=f"{place.outside}/bin:{os.environ['PATH']}"):
        await _ordinary_calls(place)


async def programs_linked_from_a_folder_outside(place: Place) -> None:
    """A folder of PATH outside holds links to programs inside, as `npm link` and `pip install -e` make them."""
    (place.outside / "bin").mkdir()
    for name in NAMES:
        place.program(f"tools/{name}")
        (place.outside / "bin" / name).symlink_to(place.workspace / "tools" / name)
    with changed_environment(PATH=f"{place.outside}/bin:{os.environ['PATH']}"):
        await _ordinary_calls(place)


async def ripgrep_configuration(place: Place) -> None:
    """RIPGREP_CONFIG_PATH names a file of the workspace that has every file preprocessed."""
    place.program("pre.sh", before="cat")
    config = place.put(
        "ripgreprc", f"--pre={place.workspace}/pre.sh\n--search-zip\n--follow\n--hidden\n--no-ignore\n"
    )
    with changed_environment(RIPGREP_CONFIG_PATH=str(config)):
        await place.call("grep", pattern="main")
        await place.call("grep", pattern="CANARY")


async def decompression_programs(place: Place) -> None:
    """A search meets packed files, whose programs (gzip, xz, zstd) lie on PATH in the workspace."""
    for name in ("gzip", "xz", "zstd", "bzip2", "brotli"):
        place.program(f"bin/{name}")
    for suffix in ("gz", "xz", "zst", "bz2", "br"):
        place.put(f"packed.{suffix}", b"\x1f\x8b\x08main")
    with changed_environment(PATH=f"{place.workspace}/bin:{os.environ['PATH']}"):
        await place.call("grep", pattern="main", include_ignored=True)
        await place.call("read", path="packed.gz")


async def options_in_place_of_patterns(place: Place) -> None:
    """Patterns, globs and paths of a search begin like options of ripgrep."""
    place.program("pre.sh")
    options = (
        f"--pre={place.workspace}/pre.sh",
        "--pre=./pre.sh",
        "-f.env",
        "--file=.env",
        "--hidden",
        "--no-ignore",
    )
    for option in options:
        await place.call("grep", pattern=option)
        await place.call("grep", pattern="CANARY", include=option)
        await place.call("grep", pattern="CANARY", path=option)
        await place.call("find", pattern=option)


async def names_that_are_options(place: Place) -> None:
    """Files of the workspace are called like options."""
    place.program("pre.sh")
    for name in ("--pre=pre.sh", "--hostname-bin=pre.sh", "-rf", "--follow", "--no-config"):
        place.put(name, "main\n")
    await _ordinary_calls(place)
    await place.call("grep", pattern="main", path="--pre=pre.sh")
    await place.call("read", path="--pre=pre.sh")


async def modules_of_the_workspace(place: Place) -> None:
    """Modules named like those that our children import lie where our process stands."""
    text = f"import os; os.system({place.payload!r})\n"
    for name in (
        "sitecustomize",
        "usercustomize",
        "json",
        "zlib",
        "struct",
        "anyio",
        "pypdfium2",
        "PIL/__init__",
    ):
        place.put(f"{name}.py", text)
    place.put("handtools/__init__.py", text)
    place.put(
        "report.pdf", b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n"
    )
    place.put("book.ipynb", '{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}')
    os.chdir(place.workspace)
    with changed_environment(PYTHONPATH=os.pathsep.join(["", os.environ.get("PYTHONPATH", "")])):
        await _ordinary_calls(place)
        await place.each("read", "path", ["report.pdf", "book.ipynb", "src/main.py"])


async def environment_left_by_a_command(place: Place) -> None:
    """A command exports variables that change what every program does; the host side's must not have them."""
    place.program("bin/bwrap")
    await place.bash(
        "export LD_PRELOAD=$PWD/e.so LD_LIBRARY_PATH=$PWD BASH_ENV=$PWD/env.sh ENV=$PWD/env.sh PYTHONPATH=$PWD "
        "PYTHONSTARTUP=$PWD/e.py GIT_SSH_COMMAND=$PWD/env.sh RIPGREP_CONFIG_PATH=$PWD/rc PATH=$PWD/bin:$PATH "
        f"TMPDIR=$PWD; echo '{place.payload}' > env.sh; echo 'import os; os.system(\"sh env.sh\")' > sitecustomize.py"
    )
    await _ordinary_calls(place)


async def temporary_folder_in_the_workspace(place: Place) -> None:
    """TMPDIR lies in the workspace, so what our programs are given could be changed on the way."""
    place.shell(
        "mkdir tmp; git init -q; touch a; git add a; git -c user.name=a -c user.email=a commit -qm a"
    )
    place.program("evil.sh")
    watching = subprocess.Popen(
        [sys.executable, "-c", _MEDDLE, str(place.workspace / "tmp"), str(place.workspace / "evil.sh")]
    )
    place.keep(watching)
    with changed_environment(TMPDIR=str(place.workspace / "tmp")):
        for number in range(20):
            await place.call("read", path=f"missing{number}.txt")
        await _ordinary_calls(place)


_MEDDLE = """
import os, sys
folder, program = sys.argv[1:]
while True:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        try:
            with open(os.path.join(path, "config"), "a") as file:
                file.write(f"[core]\\n\\tfsmonitor = {program}\\n[log]\\n\\tshowSignature = true\\n[gpg]\\n\\tprogram = {program}\\n")
        except OSError:
            pass
"""


async def interpreter_of_the_workspace(place: Place) -> None:
    """PYTHONHOME, PYTHONEXECUTABLE and the interpreter's neighbours are the workspace's."""
    library = sysconfig.get_path("stdlib")
    place.put("lib/python3.11/site.py", f"import os; os.system({place.payload!r})\n")
    place.put("pyvenv.cfg", f"home = {place.workspace}\n")
    with changed_environment(
        PYTHONEXECUTABLE=str(place.program("python3")), PYTHONUSERBASE=str(place.workspace)
    ):
        assert library
        await _ordinary_calls(place)
