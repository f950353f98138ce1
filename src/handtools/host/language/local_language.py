"""The HostLanguage port: language servers on this machine, or `NoLanguage` with the reason there are none."""

# ruff: noqa: ARG002 — `NoLanguage` ignores its arguments

import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.core.changes import ChangeSet
from handtools.core.commands import HostCommands
from handtools.core.errors import Unavailable
from handtools.core.language import (
    NO_SERVER_HINT,
    DiagnosticReview,
    HostLanguage,
    KnownServer,
    LanguageAnswer,
    LanguageQuestion,
    LateReviewListener,
)
from handtools.host import programs
from handtools.host.language.servers import LANGUAGE_SERVERS, LanguageServer, ServerFinder
from handtools.host.sandbox.program_dependencies import folders_needed_by_program
from handtools.host.workspace_folders import workspace_folders
from handtools.text.search.glob import PathGlobs

if TYPE_CHECKING:
    from handtools.host.language.workspace_session import WorkspaceLanguageServers
    from handtools.host.sandbox.launch import Runner

SERVER_VERSION_SECONDS = 10.0
LANGUAGE_SWITCH_VARIABLE = "HANDTOOLS_LANGUAGE"
"""Environment variable that turns language servers off with the value `off`."""


def choose_language(
    root: str | Path | None,
    state: Path,
    runner: "Callable[[], Runner]",
    *,
    only: Collection[str] | None = None,
) -> HostLanguage:
    """The language port for a workspace: servers on this machine, started by the runner, or `NoLanguage`.

    `only` lists the names of the servers that may run; None allows all.
    """
    if root is None:
        return NoLanguage()
    if os.environ.get(LANGUAGE_SWITCH_VARIABLE, "").lower() in {"off", "0", "no"}:
        return NoLanguage(f"Language servers are turned off ({LANGUAGE_SWITCH_VARIABLE}).")
    if "" not in workspace_folders(root):
        return NoLanguage("Language servers need a workspace with a single folder; this one has several.")
    chosen = [server for server in LANGUAGE_SERVERS if only is None or server.name in only]
    if not chosen:
        return NoLanguage("Language servers are turned off (`servers` in the configuration).")
    return LocalLanguage(root, cache=state / "language", runner=runner, servers=chosen)


def confined_program_runner(commands: HostCommands, root: str | Path) -> "Runner":
    """The runner for language servers and formatters: the same as for commands.

    If commands run in a container, a runner without one.
    """
    from handtools.host.commands.local_commands import LocalCommands
    from handtools.host.sandbox.launch import PersistentRunner
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    if isinstance(commands, LocalCommands) and not isinstance(commands.runner, PersistentRunner):
        return commands.runner
    return choose_runner(root=root).runner


class LocalLanguage:
    """Answers code questions and checks changes with local language servers, started on demand."""

    def __init__(
        self,
        root: str | Path,
        *,
        cache: Path,
        runner: "Callable[[], Runner]",
        servers: Sequence[LanguageServer] = LANGUAGE_SERVERS,
        search_path: str | None = None,
    ) -> None:
        self._workspace = os.path.realpath(root)
        self._cache = cache
        self._choose_runner = runner
        self._finder = ServerFinder(
            self._workspace,
            servers,
            confined=lambda: self._runner.confined,
            search_path=search_path,
        )

    @cached_property
    def _runner(self) -> "Runner":
        return self._choose_runner()

    @cached_property
    def _servers(self) -> "WorkspaceLanguageServers":
        from handtools.host.language.workspace_session import WorkspaceLanguageServers

        return WorkspaceLanguageServers(self._workspace, self._finder, self._cache, lambda: self._runner)

    def speaks(self, path: str) -> bool:
        return self._finder.speaks(path)

    def missing_server_sentence(self, path: str) -> str:
        return self._finder.missing_server_sentence(path)

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        if self._finder.servers_of_file(path):
            self._servers.warm(path, tuple(private_globs))

    async def review(
        self,
        changes: ChangeSet,
        *,
        ignored: Collection[str],
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        if not any(self._finder.servers_of_file(change.path) for change in changes):
            return DiagnosticReview()
        return await self._servers.review(changes, ignored, tuple(private_globs), timeout, late)

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        return await self._servers.ask(question, tuple(private_globs))

    def known_servers(self) -> list[KnownServer]:
        found = []
        for server in self._finder.servers:
            program = self._finder.program(server, self._workspace)
            names = tuple(dict.fromkeys(server.languages.values()))
            version = self._server_version(server, program) if program else ""
            found.append(KnownServer(server.name, names, program, version, server.install))
        return found

    def close(self) -> None:
        if "_servers" in self.__dict__:
            self._servers.close()

    def _server_version(self, server: LanguageServer, program: str) -> str:
        """The first line of a server's version output; empty if it can't be run."""
        beside = os.path.dirname(program)
        other = [os.path.join(beside, server.version[0]), *server.version[1:]] if server.version else []
        for command in filter(None, (other, [program, "--version"], [program, "version"])):
            said = self._confined_command_output(command).strip()
            if said:
                return said.splitlines()[0]
        return ""

    def _confined_command_output(self, command: list[str]) -> str:
        """The output of a command, confined like the language server."""
        if not self._runner.confined:
            return _unconfined_command_output(command, self._workspace)
        from anyio.from_thread import start_blocking_portal

        from handtools.host.sandbox.confined_filter import StdinFilterProgram, run_stdin_filter

        readable = folders_needed_by_program(command[0], self._workspace)
        program = StdinFilterProgram(tuple(command), self._workspace, self._workspace, (), readable)
        with start_blocking_portal() as portal:
            made, complaint = portal.call(
                run_stdin_filter, self._runner, program, b"", SERVER_VERSION_SECONDS
            )
        return "" if complaint else made.decode(errors="replace")


def _unconfined_command_output(command: list[str], workspace: str) -> str:
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


class NoLanguage:
    """The language port without servers: supports no file and refuses every question with the reason."""

    def __init__(self, reason: str = "There are no language servers in this workspace.") -> None:
        self._reason = reason

    def speaks(self, path: str) -> bool:
        return False

    def missing_server_sentence(self, path: str) -> str:
        return self._reason

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        """Do nothing: there is no server to start."""

    async def review(
        self,
        changes: ChangeSet,
        *,
        ignored: Collection[str],
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        return DiagnosticReview()

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        raise Unavailable(self._reason, hint=NO_SERVER_HINT)

    def known_servers(self) -> list[KnownServer]:
        return []

    def close(self) -> None:
        """Do nothing: there is no server to stop."""
