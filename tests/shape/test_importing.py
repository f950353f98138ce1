"""What importing the package costs, and what it does without."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest

from handtools.toolbox import EVERYTHING
from tests.shape.reading import ROOT

PAIRS = 15
TIMES_ASYNCIO = 1.5

STRANGERS = """
import json, sys
before = set(sys.modules)
import handtools
tops = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(tops - sys.stdlib_module_names - {"handtools"})))
"""

HELP = """
import sys
sys.argv = ["handtools", "--help"]
from handtools.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("pydantic" in sys.modules, file=sys.stderr)
"""

EXACT_EDIT = """
import sys
from handtools import BlockingToolbox
from handtools.testing.memory_toolbox import memory_toolbox

tools = BlockingToolbox(memory_toolbox({"a.txt": b"one\\ntwo\\n"}))
changed = tools.call("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})
assert changed.ok, changed.text
tools.close()
print("rapidfuzz" in sys.modules)
"""

FIRST_CALL = """
import asyncio, json, sys
from handtools import coding

async def call():
    async with coding(sys.argv[1]) as toolbox:
        result = await toolbox.call(sys.argv[2], json.loads(sys.argv[3]))
        assert result.ok, result.text

asyncio.run(call())
print(json.dumps([name for name in sys.modules if name.startswith("handtools.")]))
"""
NOT_FOR_READING = (
    "host.commands.", "host.sandbox.processes.", "host.sandbox.runners.", "host.sandbox.launch", "host.web.",
    "core.dialects.", "tools.editing.", "text.shell", "runtime.guards.commands", "runtime.undo",
)  # fmt: skip
"""Modules that a call without commands, changes and the web does not need."""
MAX_MODULES_OF_A_LIST = 115
MAX_MODULES_OF_VERSION = 12

VERSION = """
import sys
sys.argv = ["handtools", "--version"]
from handtools.cli.entry import main
main()
print(*sys.modules, file=sys.stderr)
"""

WITHOUT_POSIX = """
import sys

class Hidden:
    names = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)

for name in Hidden.names:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())

# Programs of their own, started on Linux alone; nothing imports them.
PROGRAMS = ("processes.supervisor", "processes.pre_exec")

import pkgutil
import handtools
from importlib import import_module
from pathlib import Path

for module in pkgutil.walk_packages(handtools.__path__, "handtools."):
    # Each adapter needs its SDK.
    if not module.name.endswith(("__main__", *PROGRAMS)) and ".adapters." not in module.name:
        import_module(module.name)

from handtools import BlockingToolbox, coding
from handtools.testing.memory_toolbox import memory_toolbox

def use(box):
    tools = BlockingToolbox(box)
    made = tools.call("write", {"path": "a/b.txt", "content": "one\\n"})
    assert made.ok, made.text
    changed = tools.call("edit", {"path": "a/b.txt", "old_string": "one", "new_string": "two"})
    assert changed.ok, changed.text
    assert "two" in tools.call("read", {"path": "a/b.txt"}).text
    undone = tools.call("undo", {"name": "a/b.txt"})
    assert undone.ok, undone.text
    assert "one" in tools.call("read", {"path": "a/b.txt"}).text
    tools.close()

use(memory_toolbox({}))
use(coding(sys.argv[1]))
assert Path(sys.argv[1], "a/b.txt").read_bytes() == b"one\\n"
assert not Hidden.names & set(sys.modules)
print("used")
"""

AS_ON_WINDOWS = """
import os, pkgutil, select, signal, socket, sys
from importlib import import_module
import handtools

PROGRAMS = ("processes.supervisor", "processes.pre_exec")
NAMES = [
    module.name
    for module in pkgutil.walk_packages(handtools.__path__, "handtools.")
    if not module.name.endswith(("__main__", *PROGRAMS)) and ".adapters." not in module.name
]
for name in NAMES:
    import_module(name)  # other people's modules are loaded now, and have what they need
for name in [name for name in sys.modules if name.partition(".")[0] == "handtools"]:
    del sys.modules[name]
for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
MISSING = {
    os: "fork forkpty geteuid getuid getegid getgid getgroups setsid setpgid getpgid killpg uname chown lchown"
    " fchown mkfifo mknod major minor"
    " O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_NOCTTY O_PATH pread pwrite openpty"
    " sysconf statvfs memfd_create pidfd_open getxattr listxattr setxattr removexattr sched_getaffinity WNOHANG",
    signal: "SIGKILL SIGHUP SIGCHLD SIGCONT SIGURG SIGQUIT SIGUSR1 SIGUSR2 SIGSTOP SIGWINCH pthread_sigmask",
    socket: "AF_UNIX SCM_RIGHTS CMSG_SPACE MSG_CMSG_CLOEXEC SO_PEERCRED",
    select: "poll epoll",
}
for module, names in MISSING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd = set()
failed = {}
for name in NAMES:
    try:
        import_module(name)
    except (ImportError, AttributeError) as error:
        failed[name] = str(error)
print(failed)
"""


def python(
    program: str, *arguments: str, source: Path | None = None, **environment: str
) -> tuple[str, str]:
    """Run a program in a Python of its own, over the project's source or a copy of it; what it printed."""
    variables = os.environ | environment | ({"PYTHONPATH": str(source)} if source else {})
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def strangers(source: Path | None = None) -> list[str]:
    """Third-party modules that `import handtools` loads."""
    return list(json.loads(python(STRANGERS, source=source)[0]))


def times_asyncio(source: Path, pairs: int = PAIRS) -> float:
    """How long `import handtools` takes, compared with `import asyncio`: medians of interleaved runs."""
    seconds: dict[str, list[float]] = {"asyncio": [], "handtools": []}
    for _ in range(pairs):
        for name, taken in seconds.items():
            began = time.perf_counter()
            python(f"import {name}", source=source)
            taken.append(time.perf_counter() - began)
    return median(seconds["handtools"]) / median(seconds["asyncio"])


def test_importing_the_package_loads_no_third_party_module() -> None:
    assert strangers() == []


def test_a_third_party_import_is_noticed(copy: Path) -> None:
    with (copy / "src/handtools/__init__.py").open("a") as source:
        source.write("import stranger\n")
    (copy / "src/stranger.py").touch()
    assert strangers(copy / "src") == ["stranger"]


def test_importing_the_package_costs_little_more_than_python_itself() -> None:
    assert times_asyncio(ROOT / "src") <= TIMES_ASYNCIO


def test_a_slow_import_is_noticed(copy: Path) -> None:
    with (copy / "src/handtools/__init__.py").open("a") as source:
        source.write("sum(range(10_000_000))\n")
    assert times_asyncio(copy / "src", pairs=5) > TIMES_ASYNCIO


def test_help_is_given_without_loading_pydantic() -> None:
    shown, loaded = python(HELP)
    assert "undo" in shown
    assert loaded == "False\n"


def test_a_help_that_loads_pydantic_is_noticed(copy: Path) -> None:
    source = copy / "src/handtools/cli/main.py"
    source.write_text(f"import pydantic.main\n{source.read_text('utf-8')}", "utf-8")
    assert python(HELP, source=copy / "src")[1] == "True\n"


def modules_of_first_call(folder: Path, tool: str, source: Path | None = None, **args: str) -> list[str]:
    """Our modules that are loaded after a first call, without the package's name."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "a.py").write_text("import os\n")
    state = str(folder / "state")
    shown = python(FIRST_CALL, str(work), tool, json.dumps(args), source=source, HANDTOOLS_STATE=state)[0]
    return [name.removeprefix("handtools.") for name in json.loads(shown)]


@pytest.mark.parametrize(("tool", "args"), [("list", {}), ("read", {"path": "a.py"}), ("now", {})])
def test_a_first_call_that_reads_loads_no_sandbox_editing_shell_or_web(
    tmp_path: Path, tool: str, args: dict[str, str]
) -> None:
    loaded = modules_of_first_call(tmp_path, tool, **args)
    assert [name for name in loaded if name.startswith(NOT_FOR_READING)] == []
    assert {name for name in EVERYTHING if f"tools.{name}" in loaded} == {tool}


def test_a_first_list_loads_few_modules(tmp_path: Path) -> None:
    assert len(modules_of_first_call(tmp_path, "list")) <= MAX_MODULES_OF_A_LIST


def test_a_sandbox_that_a_list_loads_is_noticed(copy: Path, tmp_path: Path) -> None:
    with (copy / "src/handtools/toolbox.py").open("a") as source:
        source.write("from handtools.host.commands.local_commands import LocalCommands\n")
    loaded = modules_of_first_call(tmp_path, "list", copy / "src")
    assert "host.sandbox.launch" in loaded
    assert len(loaded) > MAX_MODULES_OF_A_LIST


def test_the_version_is_printed_without_the_command_lines_parser() -> None:
    shown, loaded = python(VERSION)
    assert shown.startswith("handtools ")
    names = loaded.split()
    assert not {"typer", "pydantic", "asyncio", "rich"} & set(names)
    assert len([name for name in names if name.startswith("handtools")]) <= MAX_MODULES_OF_VERSION


def test_an_edit_that_matches_exactly_does_not_load_rapidfuzz() -> None:
    assert python(EXACT_EDIT)[0] == "False\n"


def test_the_package_imports_and_works_where_posix_modules_are_missing(tmp_path: Path) -> None:
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    assert python(WITHOUT_POSIX, str(root), XDG_STATE_HOME=str(state))[0] == "used\n"


def test_a_posix_import_outside_host_is_noticed(copy: Path, tmp_path: Path) -> None:
    with (copy / "src/handtools/core/call.py").open("a") as source:
        source.write("import pwd\n")
    with pytest.raises(AssertionError, match="pwd is hidden"):
        python(WITHOUT_POSIX, str(tmp_path), source=copy / "src")


def test_every_module_can_be_imported_without_the_names_that_windows_lacks() -> None:
    """What is in them is for other systems, too: nobody of us has Windows, but an import can be tried here."""
    assert python(AS_ON_WINDOWS)[0].strip() == "{}"
