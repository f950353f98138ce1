"""Find and start helper programs outside the workspace; the only module that starts processes.

What is started here runs with our rights, outside every boundary. So its file really lies outside the workspace,
its environment is made of a few names, its input is empty unless we give it bytes, and it is ended in time. What a
call asks for runs inside a boundary instead: as a `Launch`, which a supervisor executes.

Our own program may run from the folder it works on, and loads its code from there. No check of ours could tell
such a file from one that was put in its place: `installation_folders_in_workspace` names them; the toolbox adds a
rule about them. ADR 124.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from handtools.core.errors import HostError
from handtools.host.workspace_folders import is_in_workspace, path_in_workspace, real_path

if TYPE_CHECKING:
    from handtools.host.windows_jobs import JobObject

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
Process = subprocess.Popen[bytes]
_KEPT_VARIABLES = ("SYSTEMROOT", "TEMP", "TMP")
"""Variables of our environment that programs inherit: Windows needs them; any other could change behaviour."""
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin"
_SOURCE_FOLDER = Path(__file__).parents[2]
_PYTHON_BOOT = "import sys; sys.path.append({!r}); from {} import {} as run; run(*sys.argv[1:])"
_KILLED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Program:
    """An executable that may be started."""

    file: str
    """The real path of the executable, all links resolved, which is what is executed."""
    name: str
    """The name under which it was found, passed as argv[0]: some executables act by their name."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """A program's exit status and what it printed."""

    code: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """Time, memory and output limits of a program. On systems without prlimit only the time limit applies."""

    seconds: float
    memory_bytes: int | None = None
    output_bytes: int = 16 << 20
    file_bytes: int = 0
    """How large a file that it writes may be, if that is more than its output may be."""


class ProgramTimeout(Exception):
    """Raised when a program was killed because its time was up."""


def is_outside_workspace(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether the real path is outside the workspace; always true without a workspace."""
    return not os.fspath(root) or not is_in_workspace(path, root)


def search_path(root: str | os.PathLike[str]) -> Iterator[str]:
    """The folders of PATH, without relative ones and those in the workspace."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and is_outside_workspace(folder, root):
            yield folder


def find_program(
    name: str, root: str | os.PathLike[str], *, folders: Sequence[str | os.PathLike[str]] = ()
) -> Program | None:
    """Find a program in the given folders, then on PATH; one whose real path is in the workspace is never used."""
    return next(find_programs(name, root, folders=folders), None)


def find_programs(
    name: str, root: str | os.PathLike[str], *, folders: Sequence[str | os.PathLike[str]] = ()
) -> Iterator[Program]:
    """Find all programs of a name, in the order in which `find_program` would take them."""
    for folder in (*folders, *search_path(root)):
        found = os.path.join(folder, name)
        file = os.path.realpath(found)
        if os.path.isfile(file) and os.access(file, os.X_OK) and is_outside_workspace(file, root):
            yield Program(file, found)


def python_interpreter() -> Program:
    """The Python interpreter that runs this process, without its virtual environment.

    It is called by its real path: beside another one there may be settings that say where its library is.
    """
    base = getattr(sys, "_base_executable", "") or sys.executable
    if not base:
        raise HostError("There is no Python to start: this one does not say where it is.")
    file = os.path.realpath(base)
    return Program(file, file)


def minimal_environment() -> dict[str, str]:
    """The few environment variables that a helper program gets."""
    return {"PATH": _PROGRAM_PATH, "LC_ALL": "C.UTF-8"} | {
        name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ
    }


def start_program(
    program: Program,
    arguments: Sequence[str],
    *,
    cwd: str | os.PathLike[str] = os.sep,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
    buffer_bytes: int = -1,
    own_session: bool = False,
) -> Process:
    """Start a program and return its process without waiting for its end."""
    return subprocess.Popen(
        [program.name, *arguments],
        executable=program.file,
        cwd=cwd,
        env=minimal_environment() if env is None else env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        bufsize=buffer_bytes,
        start_new_session=own_session,
    )


def start_python(
    module: str,
    arguments: Sequence[str],
    *,
    pass_fds: Sequence[int] = (),
) -> Process:
    """Start the `main` of one of our modules in a new Python process and session, without other packages."""
    line = python_arguments(module, "main", arguments)
    return start_program(python_interpreter(), line, env={}, pass_fds=pass_fds, own_session=True)


def python_arguments(module: str, function: str, arguments: Sequence[str]) -> list[str]:
    """Arguments for Python to call one of our functions in isolated mode, without site packages."""
    return ["-I", "-S", "-c", _PYTHON_BOOT.format(str(_SOURCE_FOLDER), module, function), *arguments]


def run_program(
    program: Program,
    arguments: Sequence[str],
    bounds: ProgramLimits,
    *,
    cwd: str | os.PathLike[str] = os.sep,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> ProgramResult:
    """Run a program to its end and return its result; raises `ProgramTimeout` when it takes too long."""
    with anonymous_file() as output, anonymous_file() as errors:
        process = start_program(
            program,
            arguments,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            pass_fds=pass_fds,
            own_session=True,
        )
        job = _job_of(process)
        try:
            _set_limits(process.pid, bounds)
            code = process.wait(bounds.seconds)
        except subprocess.TimeoutExpired:
            raise ProgramTimeout(
                f"{os.path.basename(program.name)} took longer than {bounds.seconds:g} s"
            ) from None
        finally:
            _kill_group(process)
            if job is not None:
                job.close()
        return ProgramResult(code, *(_read_head(file, bounds.output_bytes) for file in (output, errors)))


def open_in_browser(page: Path) -> bool:
    """Open a file in the person's browser; tells whether one was found.

    It takes a file and no address: the arguments of a program can be read by every user of the machine, so a link
    that holds a secret is written into a file that only its owner can read.
    """
    import webbrowser

    return webbrowser.open(page.as_uri())


def wait_or_kill(process: Process, seconds: float) -> int:
    """Wait up to `seconds` for a process to end, then kill it; returns its exit status."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def end_process_group(pid: int, *, gently: bool) -> None:
    """Ask all processes of a group to end, or kill them; raises `ProcessLookupError` when none is left."""
    os.killpg(pid, signal.SIGTERM if gently else signal.SIGKILL)


def anonymous_file() -> IO[bytes]:
    """Create a temporary file without a name, in memory where possible."""
    if not hasattr(os, "memfd_create"):
        return TemporaryFile()
    return open(os.memfd_create("handtools", os.MFD_CLOEXEC), "w+b")


def _set_limits(pid: int, bounds: ProgramLimits) -> None:
    if not sys.platform.startswith("linux"):
        return
    import resource

    limits = {resource.RLIMIT_FSIZE: max(bounds.output_bytes, bounds.file_bytes), resource.RLIMIT_CORE: 0}
    if bounds.memory_bytes is not None:
        # What it writes to, not what it maps: a large file that is only looked at costs nothing.
        limits[resource.RLIMIT_DATA] = bounds.memory_bytes
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        for number, most in limits.items():
            _, hard = resource.prlimit(pid, number)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(pid, number, (least, least))


def _job_of(process: Process) -> "JobObject | None":
    """A job with the process in it, so that what it starts ends with it; None where process groups do that."""
    if os.name != "nt":
        return None
    from handtools.host.windows_jobs import JobObject

    job = JobObject()
    job.add(int(vars(process)["_handle"]))
    return job


def _kill_group(process: Process) -> None:
    """Kill a process and its whole process group."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait(_KILLED_SECONDS)


def _read_head(file: IO[bytes], most: int) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return file.read(min(size, most))


_OWN_PACKAGE = Path(__file__).parents[1]


def installation_folders_in_workspace(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders of the workspace from which this program itself runs, relative to it; usually none.

    `.` is the workspace itself.
    """
    if not os.fspath(root):
        return ()
    ours = {os.path.realpath(each): None for each in (sys.prefix, sys.base_prefix, _OWN_PACKAGE)}
    inside = [path for each in ours if (path := path_in_workspace(each, root)) is not None]
    return tuple(each for each in inside if not any(_is_below(each, other) for other in inside))


def is_own_installation(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether a path is in a folder of the workspace from which this program itself runs."""
    folders = [real_path(each, root) for each in installation_folders_in_workspace(root)]
    return any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders)


def trusted_import_path(root: str | os.PathLike[str]) -> list[str]:
    """An import path without the workspace (unless we run from it) and without relative entries."""
    return [
        folder
        for folder in sys.path
        if os.path.isabs(folder)
        and (
            is_outside_workspace(folder, root)
            or _holds_own_package(folder)
            or is_own_installation(folder, root)
        )
    ]


def _holds_own_package(folder: str) -> bool:
    """Whether a folder is the one that our own package is imported from."""
    return os.path.realpath(folder) == os.path.realpath(_OWN_PACKAGE.parent)


def _is_below(path: str, other: str) -> bool:
    return path != other and (other == "." or path.startswith(f"{other}/"))
