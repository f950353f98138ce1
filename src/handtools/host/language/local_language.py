"""Local language: the HostLanguage port over servers of this machine. ADR 81."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.from_thread import start_blocking_portal

from handtools.core.changes import ChangeSet
from handtools.core.language import (
    DiagnosticReview,
    KnownServer,
    LanguageAnswer,
    LanguageQuestion,
    LateReviewListener,
)
from handtools.host import programs
from handtools.host.language.server_discovery import ServerFinder, servers_with_programs
from handtools.host.language.servers import SERVERS, LanguageServer, ServerTable
from handtools.host.sandbox.launch import Runner
from handtools.host.sandbox.readable_folders import program_folders

if TYPE_CHECKING:
    from handtools.host.language.workspace_session import WorkspaceSession

VERSION_SECONDS = 10.0


class LocalLanguage:
    """Servers in a folder of this machine. Nothing is started, or even loaded, before it is needed."""

    def __init__(
        self,
        root: str | Path,
        *,
        cache: Path,
        runner: Callable[[], Runner],
        servers: Sequence[LanguageServer] = SERVERS,
        search_path: str | None = None,
    ) -> None:
        self._workspace = os.path.realpath(root)
        self._cache = cache
        self._choose = runner
        self._table = ServerTable(tuple(servers))
        self._finder = ServerFinder(
            self._workspace,
            self._table,
            confined=lambda: self._runner.confined,
            search_path=search_path,
        )

    @cached_property
    def _runner(self) -> Runner:
        return self._choose()

    @cached_property
    def _desk(self) -> "WorkspaceSession":
        from handtools.host.language.workspace_session import WorkspaceSession

        return WorkspaceSession(self._workspace, self._finder, self._cache, lambda: self._runner)

    def speaks(self, path: str) -> bool:
        """Whether a server here knows the language of a file."""
        return self._finder.speaks(path)

    def missing(self, path: str) -> str:
        """Why nobody can answer about a file; empty when somebody can."""
        return self._finder.missing(path)

    def warm(self, path: str, *, private: Sequence[str]) -> None:
        """Have the server of a file ready, and know what is wrong with the file now."""
        if self._finder.spoken(path):
            self._desk.warm(path, tuple(private))

    async def review(
        self,
        changes: ChangeSet,
        *,
        private: Sequence[str],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """Tell servers what is on disk now, and give back what they prove in time."""
        if not any(self._finder.spoken(change.path) for change in changes):
            return DiagnosticReview()
        return await self._desk.review(changes, tuple(private), timeout, late)

    async def ask(self, question: LanguageQuestion, *, private: Sequence[str]) -> LanguageAnswer:
        """Ask the server of a file."""
        return await self._desk.ask(question, tuple(private))

    def speakers(self) -> list[KnownServer]:
        """Every server that we know how to use, found or not."""
        found = []
        for server, program in servers_with_programs(self._table, self._finder):
            names = tuple(dict.fromkeys(server.languages.values()))
            version = self._version(server, program) if program else ""
            found.append(KnownServer(server.name, names, program, version, server.install))
        return found

    def close(self) -> None:
        """Let go of servers that nobody else uses."""
        if "_desk" in self.__dict__:
            self._desk.close()

    def _version(self, server: LanguageServer, program: str) -> str:
        """The first line of what a program says about itself; empty when it does not run."""
        beside = os.path.dirname(program)
        other = [os.path.join(beside, server.version[0]), *server.version[1:]] if server.version else []
        for command in filter(None, (other, [program, "--version"], [program, "version"])):
            said = self._said(command).strip()
            if said:
                return said.splitlines()[0]
        return ""

    def _said(self, command: list[str]) -> str:
        """What a program prints, run as the server would be."""
        if not self._runner.confined:
            return _unconfined_output(command, self._workspace)
        from handtools.host.sandbox.stdin_filter import FilterProgram, run_filter

        readable = program_folders(command[0], self._workspace)
        asked = FilterProgram(tuple(command), self._workspace, self._workspace, (), readable)
        with start_blocking_portal() as portal:
            made, complaint = portal.call(run_filter, self._runner, asked, b"", VERSION_SECONDS)
        return "" if complaint else made.decode(errors="replace")


def _unconfined_output(command: list[str], workspace: str) -> str:
    program = programs.find_program(
        os.path.basename(command[0]), workspace, folders=[os.path.dirname(command[0])]
    )
    if program is None:
        return ""
    try:
        done = programs.run_program(program, command[1:], programs.ProgramLimits(seconds=VERSION_SECONDS))
    except (OSError, programs.ProgramTimeout):
        return ""
    return done.output.decode(errors="replace") if done.code == 0 else ""
