"""An in-memory workspace and toolbox, with in-memory store and locks, to test tools without files on disk."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from handtools.core.commands import HostCommands
from handtools.core.language import Formatters, HostLanguage, NoFormatters
from handtools.core.tool import AnyTool
from handtools.core.web import HostWeb
from handtools.host.commands.local_commands import NoCommands
from handtools.host.language.local_language import NoLanguage
from handtools.host.media.local_media import LocalMedia
from handtools.host.skills import SkillFolders
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.host.web.local_web import NoWeb
from handtools.runtime.call_locks import CallLocks
from handtools.runtime.journal import Journal
from handtools.runtime.workspace import Workspace
from handtools.testing.memory_files_and_search import MEMORY_ROOT, MemoryFiles, MemorySearch
from handtools.toolbox import CODING, Toolbox


class MemoryStore:
    """In-memory byte store over a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes, *, name: str) -> None:
        self.kept[name] = data

    def get(self, name: str) -> bytes:
        return self.kept[name]

    def part(self, name: str, start: int, size: int | None) -> bytes:
        return self.kept[name][start : None if size is None else start + size]

    def size(self, name: str) -> int:
        return len(self.kept[name])

    def drop(self, name: str) -> None:
        self.kept.pop(name, None)

    def names(self) -> list[str]:
        return sorted(self.kept)


class MemoryLocks:
    """In-memory locks for one process."""

    def __init__(self) -> None:
        self._call_locks = CallLocks()

    @asynccontextmanager
    async def hold(self, keys: Sequence[str], *, timeout: float) -> AsyncIterator[None]:  # noqa: ASYNC109
        """Lock all keys for a block; raises `Busy` after `timeout` seconds."""
        from handtools.core.errors import Busy

        turn = self._call_locks.turn(keys, exclusive=True)
        with anyio.move_on_after(max(timeout, 0.001)) as scope:
            await turn.__aenter__()
        if scope.cancelled_caught:
            raise Busy(f"{', '.join(keys)} is being changed by another call.", hint="Try again.")
        try:
            yield
        finally:
            await turn.__aexit__(None, None, None)


def memory_workspace(
    files: Mapping[str, bytes] | None = None,
    *,
    commands: HostCommands | None = None,
    language: HostLanguage | None = None,
    formatters: Formatters | None = None,
    web: HostWeb | None = None,
) -> Workspace:
    """Make a workspace in memory with the given files and ports, for tests."""
    memory_files = MemoryFiles(dict(files or {}))
    return Workspace(
        files=memory_files,
        locks=MemoryLocks(),
        journal=Journal(":memory:", MemoryStore()),
        output_store=MemoryStore(),
        host_search=MemorySearch(MemoryFiles()),
        search=MemorySearch(memory_files),
        syntax=TreeSyntax(),
        media=LocalMedia(),
        skills=SkillFolders(memory_files, MEMORY_ROOT),
        commands=commands or NoCommands(),
        language=language or NoLanguage(),
        formatters=formatters or NoFormatters(),
        web=web or NoWeb(),
    )


def memory_toolbox(
    files: Mapping[str, bytes] | None = None,
    *,
    tools: Sequence[AnyTool | str] = CODING,
    commands: HostCommands | None = None,
    language: HostLanguage | None = None,
    formatters: Formatters | None = None,
    web: HostWeb | None = None,
    **options: Any,
) -> Toolbox:
    """Make a toolbox over in-memory files; `options` are other keyword arguments of `Toolbox`."""
    workspace = memory_workspace(
        files, commands=commands, language=language, formatters=formatters, web=web
    )
    return Toolbox(tools, workspace=workspace, **options)
