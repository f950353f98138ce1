"""Find the language server for a file: its installed program and project root. Starts nothing."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from handtools.host import programs
from handtools.host.files.whole_reads_and_writes import SETTINGS_BYTES, read_small_text
from handtools.host.language.servers import LanguageServer, ServerRole, ServerTable
from handtools.text.toml_text import parse_toml

SERVER_RECHECK_SECONDS = 30.0
"""Seconds for which a lookup result is cached."""
UNCONFINED_SERVERS_NOTE = (
    "Language servers need a sandbox, and none works on this machine. "
    "The user can fix that: `handtools doctor` shows how."
)
_PROJECT_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
_ROLES: tuple[ServerRole, ...] = ("checker", "linter")
_REMEMBERED_PATHS = 4096


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A language server for a file: its table row, its program and the project root."""

    server: LanguageServer
    program: str
    root: str


class ServerFinder:
    """Finds installed language servers for the files of one workspace, and caches the results."""

    def __init__(
        self,
        workspace: str,
        table: ServerTable,
        *,
        confined: Callable[[], bool],
        search_path: str | None = None,
    ) -> None:
        """`confined` returns whether servers run in a sandbox; only then may project programs be used."""
        self.workspace = workspace
        self._table = table
        self._confined = confined
        self._search_path = search_path
        self._programs: dict[tuple[str, str], tuple[str, float]] = {}
        self._wanted: dict[tuple[str, str], tuple[bool, float]] = {}
        self._spoken: dict[str, tuple[list[FoundServer], float]] = {}

    def speaks(self, path: str) -> bool:
        """Whether a language server for a file is installed."""
        return any(self.program(server, self.workspace) for server in self._table.servers_for_path(path))

    def servers_of_file(self, path: str) -> list[FoundServer]:
        """The language servers of a file: a type checker, and a linter if the project configures one."""
        known, at = self._spoken.get(path, ([], 0.0))
        if known and time.monotonic() - at < SERVER_RECHECK_SECONDS:
            return known
        found: list[FoundServer] = []
        for role in _ROLES:
            here = [each for each in self._here(path) if each.server.role == role]
            wanted = [each for each in here if self._chosen(each)]
            found += wanted[:1] or (here[:1] if role == "checker" else [])
        if len(self._spoken) > _REMEMBERED_PATHS:
            self._spoken.clear()
        self._spoken[path] = (found, time.monotonic())
        return found

    def missing_server_sentence(self, path: str) -> str:
        """Why a file has no language server and how to install one; empty if it has one."""
        servers = self._table.servers_for_path(path)
        if not servers:
            name = path.rpartition("/")[2]
            return f"No language server is known for `{name}`."
        if self.servers_of_file(path):
            return ""
        found = [server for server in servers if self.program(server, self.workspace)]
        if not found and not self._confined():
            return UNCONFINED_SERVERS_NOTE
        if not found:
            return (
                f"No language server for `{path}` is installed. "
                f"Install one: `{servers[0].install}`, then call again."
            )
        markers = ", ".join(marker for marker in found[0].markers if marker != ".git")
        return f"{found[0].name} is installed, but `{path}` is not in a project (needs one of: {markers})."

    def program(self, server: LanguageServer, root: str) -> str:
        """The path of a server's program, preferring the project's copy; empty if none may be run."""
        found, at = self._programs.get((server.name, root), ("", 0.0))
        if not found and (not at or time.monotonic() - at > SERVER_RECHECK_SECONDS):
            # Check for a sandbox only if a program was found, because probing takes time.
            found = self._found(server, root)
            if found and not self._confined():
                found = self._outside(server)
            self._programs[server.name, root] = (found, time.monotonic())
        return found

    def _here(self, path: str) -> Iterator[FoundServer]:
        for server in self._table.servers_for_path(path):
            root = self._root(server, path)
            if root is not None and (program := self.program(server, root)):
                yield FoundServer(server, program, root)

    def _found(self, server: LanguageServer, root: str) -> str:
        places = dict.fromkeys((root, self.workspace))
        local = os.pathsep.join(
            os.path.join(place, each) for place in places for each in _PROJECT_PROGRAM_FOLDERS
        )
        return self._usable(server, local) or self._usable(server, self._search_path) or ""

    def _outside(self, server: LanguageServer) -> str:
        """A server's program outside the workspace, for use without a sandbox.

        Empty if the server executes project code.
        """
        if server.runs_code:
            return ""
        places = self._search_path or os.pathsep.join(programs.search_path(self.workspace))
        found = self._usable(server, places)
        return found if found and programs.is_outside_workspace(found, self.workspace) else ""

    def _usable(self, server: LanguageServer, places: str | None) -> str | None:
        found = shutil.which(server.command[0], path=places)
        if found and server.least_version and _major_version(found) < server.least_version:
            return None
        return found

    def _root(self, server: LanguageServer, path: str) -> str | None:
        """The project root of a file: the nearest folder in the workspace with a marker file, or None."""
        folder = Path(self.workspace, path).parent
        above = [each for each in (folder, *folder.parents) if each.is_relative_to(self.workspace)]
        strict = [marker for marker in server.markers if marker != ".git"]
        for each in above:
            if any((each / marker).exists() for marker in strict):
                return str(each)
        plain = ".git" in server.markers and Path(self.workspace, ".git").exists()
        return self.workspace if plain else None

    def _chosen(self, found_server: FoundServer) -> bool:
        key = (found_server.server.name, found_server.root)
        chosen, at = self._wanted.get(key, (False, 0.0))
        if not at or time.monotonic() - at > SERVER_RECHECK_SECONDS:
            chosen = any(_has_setting(found_server.root, each) for each in found_server.server.chosen_by)
            self._wanted[key] = (chosen, time.monotonic())
        return chosen


def _major_version(program: str) -> int:
    """The major version of an npm program, read from the `package.json` of its package."""
    real = Path(os.path.realpath(program))
    for folder in real.parents:
        try:
            version = json.loads(read_small_text(folder / "package.json", SETTINGS_BYTES, links=True))[
                "version"
            ]
            return int(str(version).partition(".")[0])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return 0


def _has_setting(root: str, setting: str) -> bool:
    name, _, table = setting.partition("#")
    path = Path(root, name)
    if not table:
        return path.is_file()
    try:
        found: object = parse_toml(read_small_text(path, SETTINGS_BYTES, links=True))
    except (ValueError, RecursionError):
        return False
    for key in table.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found is not None


def servers_with_programs(table: ServerTable, finder: ServerFinder) -> Sequence[tuple[LanguageServer, str]]:
    """All known servers with the path of their program, empty if it is not installed."""
    return [(server, finder.program(server, finder.workspace)) for server in table.servers]
