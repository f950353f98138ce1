"""Find and start helper programs outside the workspace; the only module that starts processes.

These programs run with our permissions and without a sandbox. So the real path of the executable must be
outside the workspace, the environment contains only a few variables, stdin is empty unless we pass data,
and there is a timeout. Commands that a call asks for run in a sandbox instead: as a `Launch`, which a
supervisor executes.

handtools itself may be installed in the workspace and load its code from there. We can't detect that one of
these files was replaced, so `installation_folders_in_workspace` lists the folders and the toolbox adds a
rule for them.
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
"""Environment variables that programs inherit. Windows needs these; others could change what programs do."""
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/bin"
_SOURCE_FOLDER = Path(__file__).parents[2]
_PYTHON_BOOT = "import sys; sys.path.append({!r}); from {} import {} as run; run(*sys.argv[1:])"
_KILLED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Program:
    """An executable that may be started."""

    file: str
    """The real path of the executable, with all symlinks resolved. This file is executed."""
    name: str
    """The path at which it was found, passed as argv[0], since some executables check their name."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """A program's exit status and output."""

    code: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """Time, memory and output limits of a program. Without prlimit, only the time limit applies."""

    seconds: float
    memory_bytes: int | None = None
    output_bytes: int = 16 << 20
    file_bytes: int = 0
    """The maximum size of a file that it writes, if larger than `output_bytes`."""


class ProgramTimeout(Exception):
    """Raised when a program was killed because it exceeded its time limit."""


def is_outside_workspace(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether the real path is outside the workspace; always true if there is no workspace."""
    return not os.fspath(root) or not is_in_workspace(path, root)


def search_path(root: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the folders of PATH, except relative ones and those in the workspace."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and is_outside_workspace(folder, root):
            yield folder


def find_program(
    name: str, root: str | os.PathLike[str], *, folders: Sequence[str | os.PathLike[str]] = ()
) -> Program | None:
    """Find a program in the given folders, then on PATH; skips any whose real path is in the workspace."""
    return next(find_programs(name, root, folders=folders), None)


def find_programs(
    name: str, root: str | os.PathLike[str], *, folders: Sequence[str | os.PathLike[str]] = ()
) -> Iterator[Program]:
    """Find all programs with a name, in the order in which `find_program` would choose them."""
    for folder in (*folders, *search_path(root)):
        found = os.path.join(folder, name)
        file = os.path.realpath(found)
        if os.path.isfile(file) and os.access(file, os.X_OK) and is_outside_workspace(file, root):
            yield Program(file, found)


def python_interpreter() -> Program:
    """Return the Python interpreter that runs this process, without its virtual environment.

    It is run by its real path: next to a symlink there may be a `pyvenv.cfg` that changes where it finds
    its library.
    """
    base = getattr(sys, "_base_executable", "") or sys.executable
    if not base:
        raise HostError("Can't start Python: `sys.executable` is empty, so its path is unknown.")
    file = os.path.realpath(base)
    return Program(file, file)


def minimal_environment() -> dict[str, str]:
    """Return the few environment variables that a helper program gets."""
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
    """Start a program and return its process without waiting for it."""
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
    """Start the `main` of one of our modules in a new Python process and session, without site packages."""
    line = python_arguments(module, "main", arguments)
    return start_program(python_interpreter(), line, env={}, pass_fds=pass_fds, own_session=True)


def python_arguments(module: str, function: str, arguments: Sequence[str]) -> list[str]:
    """Return Python arguments that call one of our functions in isolated mode, without site packages."""
    return ["-I", "-S", "-c", _PYTHON_BOOT.format(str(_SOURCE_FOLDER), module, function), *arguments]


def run_program(
    program: Program,
    arguments: Sequence[str],
    limits: ProgramLimits,
    *,
    cwd: str | os.PathLike[str] = os.sep,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> ProgramResult:
    """Run a program to completion and return its result; raises `ProgramTimeout` if it takes too long."""
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
            _set_limits(process.pid, limits)
            code = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise ProgramTimeout(
                f"{os.path.basename(program.name)} took longer than {limits.seconds:g} s"
            ) from None
        finally:
            _kill_group(process)
            if job is not None:
                job.close()
        return ProgramResult(code, *(_read_head(file, limits.output_bytes) for file in (output, errors)))


def open_in_browser(page: Path) -> bool:
    """Open a file in the user's browser and return whether one was found.

    Takes a file instead of a URL: every user of the machine can read a program's arguments, so callers
    write a URL that contains a secret into a file that only its owner can read.
    """
    import webbrowser

    return webbrowser.open(page.as_uri())


def wait_or_kill(process: Process, seconds: float) -> int:
    """Wait up to `seconds` for a process to exit, then kill it; returns its exit status."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def end_process_group(pid: int, *, gently: bool) -> None:
    """Send SIGTERM (`gently`) or SIGKILL to a process group; raises `ProcessLookupError` if it is empty."""
    os.killpg(pid, signal.SIGTERM if gently else signal.SIGKILL)


def anonymous_file() -> IO[bytes]:
    """Create an unnamed temporary file, in memory if possible."""
    if not hasattr(os, "memfd_create"):
        return TemporaryFile()
    return open(os.memfd_create("handtools", os.MFD_CLOEXEC), "w+b")


def _set_limits(pid: int, program_limits: ProgramLimits) -> None:
    if not sys.platform.startswith("linux"):
        return
    import resource

    limits = {
        resource.RLIMIT_FSIZE: max(program_limits.output_bytes, program_limits.file_bytes),
        resource.RLIMIT_CORE: 0,
    }
    if program_limits.memory_bytes is not None:
        # RLIMIT_DATA counts writable memory only: a large file mapped read-only costs nothing.
        limits[resource.RLIMIT_DATA] = program_limits.memory_bytes
    with contextlib.suppress(ProcessLookupError):  # it has already exited
        for number, most in limits.items():
            _, hard = resource.prlimit(pid, number)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(pid, number, (least, least))


def _job_of(process: Process) -> "JobObject | None":
    """Put a process into a Windows job, which kills its children with it; None on other systems."""
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
    """Return the workspace paths of the folders from which handtools itself runs; usually none.

    The path `.` means the whole workspace.
    """
    if not os.fspath(root):
        return ()
    ours = {os.path.realpath(each): None for each in (sys.prefix, sys.base_prefix, _OWN_PACKAGE)}
    inside = [path for each in ours if (path := path_in_workspace(each, root)) is not None]
    return tuple(each for each in inside if not any(_is_below(each, other) for other in inside))


def is_own_installation(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether a path is in a workspace folder from which handtools itself runs."""
    folders = [real_path(each, root) for each in installation_folders_in_workspace(root)]
    return any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders)


def trusted_import_path(root: str | os.PathLike[str]) -> list[str]:
    """Return `sys.path` without relative entries and workspace folders, except those that we run from."""
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
    """Whether our own package is imported from this folder."""
    return os.path.realpath(folder) == os.path.realpath(_OWN_PACKAGE.parent)


def _is_below(path: str, other: str) -> bool:
    return path != other and (other == "." or path.startswith(f"{other}/"))
