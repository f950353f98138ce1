"""Run a sandboxed program as a filter: bytes to its stdin, bytes from its stdout."""

import contextlib
import os
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from handtools.core.commands import CommandExit, CommandLimits
from handtools.host.files.syscalls import read_bytes_at, write_all
from handtools.host.programs import anonymous_file, search_path
from handtools.host.sandbox.environment_variables import BASH_PROGRAM, command_environment
from handtools.host.sandbox.launch import Launch, Runner, confined_launch
from handtools.host.sandbox.processes.running_process import run_process
from handtools.text.search.glob import PathGlobs

_COMPLAINT_CHARS = 200
# stdin and stdout are memory files: the program can't block on a pipe and never has the real file open.
_REDIRECT_SCRIPT = 'exec "${@:3}" <&"$1" >&"$2"'


@dataclass(frozen=True, slots=True)
class StdinFilterProgram:
    """A filter program and what it can read: the workspace without private paths, and `readable`."""

    argv: tuple[str, ...]
    root: str
    cwd: str
    private_globs: tuple[PathGlobs, ...]
    readable: tuple[str, ...]


async def run_stdin_filter(
    runner: Runner, program: StdinFilterProgram, data: bytes, seconds: float
) -> tuple[bytes, str]:
    """Pass bytes through the program; returns its output and, if it failed, the reason (otherwise "")."""
    with contextlib.ExitStack() as held:
        given, made = (held.enter_context(anonymous_file()).fileno() for _ in range(2))
        write_all(given, data)
        os.lseek(given, 0, os.SEEK_SET)
        kept = Path(tempfile.gettempdir(), f"handtools-{uuid.uuid4().hex}")
        held.callback(kept.unlink, missing_ok=True)
        # Without a sandbox, the program must not run executables from the project.
        path = {} if runner.confined else {"PATH": os.pathsep.join(search_path(program.root))}
        launch = _filter_launch(program, path, (given, made), seconds, len(data))
        ended = await run_process(launch, kept, None, partial(confined_launch, runner))
        return read_bytes_at(made, os.fstat(made).st_size, 0), _failure_message(ended, seconds)


def _filter_launch(
    program: StdinFilterProgram, path: Mapping[str, str], files: tuple[int, int], seconds: float, size: int
) -> Launch:
    plumbed = (BASH_PROGRAM, "--noprofile", "--norc", "-c", _REDIRECT_SCRIPT, "bash", *map(str, files))
    return Launch(
        argv=(*plumbed, *program.argv),
        env=command_environment(path, frozenset(), terminal=False),
        cwd=program.cwd,
        root=program.root,
        pass_fds=files,
        private_globs=program.private_globs,
        frozen=True,
        readable=program.readable,
        limits=CommandLimits(
            seconds=seconds, processes=256, output_bytes=64 << 10, written_bytes=4 * size + (1 << 20)
        ),
    )


def _failure_message(command_exit: CommandExit, seconds: float) -> str:
    if command_exit.ended == "timeout":
        return f"took longer than {seconds:.1f} s and was stopped"
    if command_exit.fault:
        return f"could not be started: {command_exit.fault}"
    said = " ".join(command_exit.output.head.decode(errors="replace").split())[:_COMPLAINT_CHARS]
    return "" if command_exit.code == 0 else f"failed: {said or f'exit code {command_exit.code}'}"
