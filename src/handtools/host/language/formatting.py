"""Formatting on this machine: the project's formatter over the bytes of a change, confined, in bounded time."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.core.formatting import Formatted
from handtools.core.ports import Syntax
from handtools.host.language.formatters import Formatter, asked_for, program_of
from handtools.host.language.readable_folders import program_folders
from handtools.text.encoding import Source, Unencodable, decode, is_binary
from handtools.text.scoping import same_words, scoped

if TYPE_CHECKING:
    from handtools.host.commands.launching import Runner

SECONDS = 5.0
MOST_BYTES = 2_000_000
REMEMBERED = 4_096


class Unformatted(Exception):
    """Why a file is left as it is."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A formatter as it is to be run for one file."""

    formatter: Formatter
    program: str
    path: str
    folder: str
    private: tuple[str, ...]
    deadline: float


class LocalFormatters:
    """The formatters that a project asks for and this machine has."""

    def __init__(
        self,
        root: str | Path,
        syntax: Syntax,
        *,
        runner: Callable[[], "Runner"] | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._root = os.path.realpath(root)
        self._syntax = syntax
        self._given = runner
        self._seconds = seconds
        self._clean: dict[str, bytes] = {}
        """Digests of files as they were when they were last known to be formatted."""

    @cached_property
    def _runner(self) -> "Runner":
        from handtools.host.commands.runners.choosing import choose

        return self._given() if self._given else choose(root=self._root).runner

    def formats(self, path: str) -> bool:
        """Whether the project asks for a formatter that is here."""
        found = asked_for(self._root, path)
        return found is not None and self._program(*found) is not None

    async def format(
        self, path: str, before: bytes | None, after: bytes, *, private: Sequence[str]
    ) -> Formatted | None:
        """Format what a change made of a file, as far as the change goes; None when there is nothing to tell."""
        found = asked_for(self._root, path)
        program = self._program(*found) if found else None
        if found is None or program is None or is_binary(after) or len(after) > MOST_BYTES:
            return None
        formatter, folder = found
        job = _Job(formatter, program, path, folder, tuple(private), time.monotonic() + self._seconds)
        try:
            done = await self._settled(job, before, after)
        except Unformatted as why:
            return Formatted(formatter.name, why=f"{formatter.name} {why}.")
        return None if done == after else Formatted(formatter.name, done)

    async def _settled(self, job: _Job, before: bytes | None, after: bytes) -> bytes:
        """The bytes as they should be: all that the formatter does where the file was clean, else a part."""
        formatted = await self._run(job, after)
        if formatted == after:
            self._keep(job.path, after)
            return after
        await self._check(job.path, after, formatted)
        if before is None or await self._was_clean(job, before):
            self._keep(job.path, formatted)
            return formatted
        source = decode(after)
        near = scoped(decode(before).body, source.body, decode(formatted).body)
        part = _encoded(source, near)
        # A part of a formatter's work can be no work at all: it must still mean the same to the formatter.
        if part != after and await self._run(job, part) != formatted:
            raise Unformatted("would change more than this edit")
        return part

    def _keep(self, path: str, data: bytes) -> None:
        if len(self._clean) >= REMEMBERED:
            self._clean.clear()
        self._clean[path] = _digest(data)

    async def _was_clean(self, job: _Job, before: bytes) -> bool:
        if self._clean.get(job.path) == _digest(before):
            return True
        try:
            return await self._run(job, before) == before
        except Unformatted:
            return False  # it could not be read before the edit: then nothing is known of the rest

    async def _check(self, path: str, after: bytes, formatted: bytes) -> None:
        if is_binary(formatted) or not same_words(decode(after).body, decode(formatted).body):
            raise Unformatted("gave back something else, which was not used")
        was = await self._syntax.outline(path, after)
        now = await self._syntax.outline(path, formatted)
        if was and now and not was.broken_lines and now.broken_lines:
            raise Unformatted(f"broke the syntax at line {now.broken_lines[0]}, which was not used")

    async def _run(self, job: _Job, data: bytes) -> bytes:
        # Loaded with the first file that is formatted: most workspaces never get there.
        from handtools.host.language.filtering import Filter, filtered

        seconds = job.deadline - time.monotonic()
        if seconds <= 0:
            raise Unformatted(f"took longer than {self._seconds:g} s")
        path = os.path.join(self._root, job.path)
        argv = (job.program, *(part.replace("{path}", path) for part in job.formatter.argv))
        program = Filter(
            argv, self._root, job.folder, job.private, program_folders(job.program, self._root)
        )
        made, complaint = await filtered(self._runner, program, data, seconds)
        if complaint:
            raise Unformatted(complaint)
        return made

    def _program(self, formatter: Formatter, folder: str) -> str | None:
        """What may be run: code of the project only where the kernel confines it."""
        confined = self._runner.confined
        if formatter.runs_code and not confined:
            return None
        return program_of(formatter, self._root, folder, ours_only=not confined)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _encoded(source: Source, text: str) -> bytes:
    try:
        return source.encode(text)
    except Unencodable as problem:
        raise Unformatted(f"can't be used here: {problem}") from problem
