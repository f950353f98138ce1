"""Local language: the HostLanguage port over servers of this machine."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.from_thread import start_blocking_portal

from handtools.core.changes import ChangeSet
from handtools.core.language import Answer, Late, Question, Review, Speaker
from handtools.host import programs
from handtools.host.commands.launching import Runner
from handtools.host.language.finding import Finder, listed
from handtools.host.language.readable_folders import program_folders
from handtools.host.language.servers import SERVERS, Server, Table

if TYPE_CHECKING:
    from handtools.host.language.desk import Desk

VERSION_SECONDS = 10.0


class LocalLanguage:
    """Servers in a folder of this machine. Nothing is started, or even loaded, before it is needed."""

    def __init__(
        self,
        root: str | Path,
        *,
        cache: Path,
        runner: Callable[[], Runner],
        servers: Sequence[Server] = SERVERS,
        search_path: str | None = None,
    ) -> None:
        self._workspace = os.path.realpath(root)
        self._cache = cache
        self._choose = runner
        self._table = Table(tuple(servers))
        self._finder = Finder(
            self._workspace,
            self._table,
            confined=lambda: self._runner.confined,
            search_path=search_path,
        )

    @cached_property
    def _runner(self) -> Runner:
        return self._choose()

    @cached_property
    def _desk(self) -> "Desk":
        from handtools.host.language.desk import Desk

        return Desk(self._workspace, self._finder, self._cache, lambda: self._runner)

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
        late: Late,
    ) -> Review:
        """Tell servers what is on disk now, and give back what they prove in time."""
        if not any(self._finder.spoken(change.path) for change in changes):
            return Review()
        return await self._desk.review(changes, tuple(private), timeout, late)

    async def ask(self, question: Question, *, private: Sequence[str]) -> Answer:
        """Ask the server of a file."""
        return await self._desk.ask(question, tuple(private))

    def speakers(self) -> list[Speaker]:
        """Every server that we know how to use, found or not."""
        found = []
        for server, program in listed(self._table, self._finder):
            names = tuple(dict.fromkeys(server.languages.values()))
            version = self._version(server, program) if program else ""
            found.append(Speaker(server.name, names, program, version, server.install))
        return found

    def close(self) -> None:
        """Let go of servers that nobody else uses."""
        if "_desk" in self.__dict__:
            self._desk.close()

    def _version(self, server: Server, program: str) -> str:
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
            return _printed(command, self._workspace)
        from handtools.host.language.filtering import Filter, filtered

        readable = program_folders(command[0], self._workspace)
        asked = Filter(tuple(command), self._workspace, self._workspace, (), readable)
        with start_blocking_portal() as portal:
            made, complaint = portal.call(filtered, self._runner, asked, b"", VERSION_SECONDS)
        return "" if complaint else made.decode(errors="replace")


def _printed(command: list[str], workspace: str) -> str:
    program = programs.find(os.path.basename(command[0]), workspace, folders=[os.path.dirname(command[0])])
    if program is None:
        return ""
    try:
        done = programs.run(program, command[1:], programs.Bounds(seconds=VERSION_SECONDS))
    except (OSError, programs.TookTooLong):
        return ""
    return done.output.decode(errors="replace") if done.code == 0 else ""
