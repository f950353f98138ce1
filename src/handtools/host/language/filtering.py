"""Filtering: a confined program that makes bytes of bytes."""

import contextlib
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handtools.core.command import Allowance
from handtools.host.commands.environment import BASH, environment
from handtools.host.commands.launching import Launch, Runner
from handtools.host.commands.processes.running import Ended, run_process
from handtools.host.commands.runners.choosing import confining
from handtools.host.programs import search_path

_COMPLAINT_CHARS = 200
# Its input and output are files in memory: it can't block on a pipe, and never holds the file itself.
_PLUMBING = 'exec "${@:3}" <&"$1" >&"$2"'


@dataclass(frozen=True, slots=True)
class Filter:
    """The program, and what it may see: all of the workspace but what is private, none of it to write."""

    argv: tuple[str, ...]
    root: str
    cwd: str
    private: tuple[str, ...]
    readable: tuple[str, ...]


async def filtered(runner: Runner, program: Filter, data: bytes, seconds: float) -> tuple[bytes, str]:
    """What the program makes of the bytes, and what is wrong with that; empty is nothing."""
    with contextlib.ExitStack() as held:
        given, made = (held.enter_context(_memory(name)) for name in ("given", "made"))
        os.write(given, data)
        os.lseek(given, 0, os.SEEK_SET)
        kept = Path(tempfile.gettempdir(), f"handtools-{uuid.uuid4().hex}")
        held.callback(kept.unlink, missing_ok=True)
        # What nothing confines must not find programs of the project.
        path = {} if runner.confined else {"PATH": os.pathsep.join(search_path(program.root))}
        launch = _launch(program, path, (given, made), seconds, len(data))
        with confining(runner, launch) as confined:
            ended = await run_process(confined, kept)
        return os.pread(made, os.fstat(made).st_size, 0), _complaint(ended, seconds)


def _launch(
    program: Filter, path: Mapping[str, str], files: tuple[int, int], seconds: float, size: int
) -> Launch:
    plumbed = (BASH, "--noprofile", "--norc", "-c", _PLUMBING, "bash", *map(str, files))
    return Launch(
        argv=(*plumbed, *program.argv),
        env=environment(path, frozenset(), terminal=False),
        cwd=program.cwd,
        root=program.root,
        pass_fds=files,
        private=program.private,
        frozen=True,
        readable=program.readable,
        allowance=Allowance(
            seconds=seconds, processes=256, output_bytes=64 << 10, written_bytes=4 * size + (1 << 20)
        ),
    )


def _complaint(ended: Ended, seconds: float) -> str:
    if ended.how == "timeout":
        return f"took longer than {seconds:.1f} s and was stopped"
    if ended.fault:
        return f"could not be started: {ended.fault}"
    head, _ = ended.output.ends()
    said = " ".join(head.decode(errors="replace").split())[:_COMPLAINT_CHARS]
    return "" if ended.code == 0 else f"failed: {said or f'exit code {ended.code}'}"


@contextlib.contextmanager
def _memory(name: str) -> Iterator[int]:
    fd = os.memfd_create(f"handtools-{name}")
    try:
        yield fd
    finally:
        os.close(fd)
