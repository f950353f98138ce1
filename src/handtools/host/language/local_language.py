"""The HostLanguage port, implemented with language servers on this machine."""

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
from handtools.host.language.servers import LANGUAGE_SERVERS, LanguageServer, ServerTable
from handtools.host.sandbox.launch import Runner
from handtools.host.sandbox.program_dependencies import folders_needed_by_program
from handtools.text.search.glob import PathGlobs

if TYPE_CHECKING:
    from handtools.host.language.workspace_session import WorkspaceLanguageServers

SERVER_VERSION_SECONDS = 10.0


class LocalLanguage:
    """Answers code questions and checks changes with local language servers, started on demand."""

    def __init__(
        self,
        root: str | Path,
        *,
        cache: Path,
        runner: Callable[[], Runner],
        servers: Sequence[LanguageServer] = LANGUAGE_SERVERS,
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
    def _desk(self) -> "WorkspaceLanguageServers":
        from handtools.host.language.workspace_session import WorkspaceLanguageServers

        return WorkspaceLanguageServers(self._workspace, self._finder, self._cache, lambda: self._runner)

    def speaks(self, path: str) -> bool:
        return self._finder.speaks(path)

    def missing_server_sentence(self, path: str) -> str:
        return self._finder.missing_server_sentence(path)

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        if self._finder.servers_of_file(path):
            self._desk.warm(path, tuple(private_globs))

    async def review(
        self,
        changes: ChangeSet,
        *,
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        if not any(self._finder.servers_of_file(change.path) for change in changes):
            return DiagnosticReview()
        return await self._desk.review(changes, tuple(private_globs), timeout, late)

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        return await self._desk.ask(question, tuple(private_globs))

    def known_servers(self) -> list[KnownServer]:
        found = []
        for server, program in servers_with_programs(self._table, self._finder):
            names = tuple(dict.fromkeys(server.languages.values()))
            version = self._version(server, program) if program else ""
            found.append(KnownServer(server.name, names, program, version, server.install))
        return found

    def close(self) -> None:
        if "_desk" in self.__dict__:
            self._desk.close()

    def _version(self, server: LanguageServer, program: str) -> str:
        """The first line of a server's version output; empty if it can't be run."""
        beside = os.path.dirname(program)
        other = [os.path.join(beside, server.version[0]), *server.version[1:]] if server.version else []
        for command in filter(None, (other, [program, "--version"], [program, "version"])):
            said = self._said(command).strip()
            if said:
                return said.splitlines()[0]
        return ""

    def _said(self, command: list[str]) -> str:
        """The output of a command, confined like the language server."""
        if not self._runner.confined:
            return _unconfined_output(command, self._workspace)
        from handtools.host.sandbox.confined_filter import StdinFilterProgram, run_stdin_filter

        readable = folders_needed_by_program(command[0], self._workspace)
        program = StdinFilterProgram(tuple(command), self._workspace, self._workspace, (), readable)
        with start_blocking_portal() as portal:
            made, complaint = portal.call(
                run_stdin_filter, self._runner, program, b"", SERVER_VERSION_SECONDS
            )
        return "" if complaint else made.decode(errors="replace")


def _unconfined_output(command: list[str], workspace: str) -> str:
    program = programs.find_program(
        os.path.basename(command[0]), workspace, folders=[os.path.dirname(command[0])]
    )
    if program is None:
        return ""
    try:
        done = programs.run_program(
            program, command[1:], programs.ProgramLimits(seconds=SERVER_VERSION_SECONDS)
        )
    except (OSError, programs.ProgramTimeout):
        return ""
    return done.output.decode(errors="replace") if done.code == 0 else ""
