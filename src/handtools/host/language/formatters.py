"""Formatters: which program formats a file, and where the project says so."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from handtools.host import programs
from handtools.host.small_files import small_text

_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Setting:
    """A file that says that a project uses a formatter; with `says`, only if its text does."""

    name: str
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatter:
    """A program that reads a file from its input and prints it formatted. None of them ever writes."""

    name: str
    suffixes: tuple[str, ...]
    argv: tuple[str, ...]
    """After the program itself; `{path}` is the file's."""
    settings: tuple[Setting, ...]
    own: tuple[str, ...] = ()
    """Folders of a project where its own copy may be."""
    runs_code: bool = False
    """Whether it executes code of the project: plug-ins, or settings that are a program."""
    install: str = ""


_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".css", ".json", ".jsonc")
_PAGES = (".scss", ".less", ".html", ".vue", ".md", ".mdx", ".yaml", ".yml", ".graphql")
_PRETTIER = (
    ".prettierrc", ".prettierrc.json", ".prettierrc.json5", ".prettierrc.yaml", ".prettierrc.yml",
    ".prettierrc.toml", ".prettierrc.js", ".prettierrc.mjs", ".prettierrc.cjs", ".prettierrc.ts",
    "prettier.config.js", "prettier.config.mjs", "prettier.config.cjs", "prettier.config.ts",
)  # fmt: skip
_BINARIES = ("node_modules/.bin",)

FORMATTERS: tuple[Formatter, ...] = (
    Formatter(
        name="black",
        suffixes=(".py", ".pyi"),
        argv=("--quiet", "--stdin-filename", "{path}", "-"),
        settings=(Setting("pyproject.toml", r"^\[tool\.black\]"),),
        own=(".venv/bin",),
        install="pip install black",
    ),
    Formatter(
        name="ruff",
        suffixes=(".py", ".pyi"),
        argv=("format", "--no-cache", "--force-exclude", "--stdin-filename", "{path}", "-"),
        settings=(
            Setting("ruff.toml"),
            Setting(".ruff.toml"),
            Setting("pyproject.toml", r"^\[tool\.ruff[.\]]"),
        ),
        own=(".venv/bin",),
        install="pip install ruff",
    ),
    Formatter(
        name="biome",
        suffixes=_SCRIPTS,
        argv=("format", "--stdin-file-path={path}"),
        settings=(Setting("biome.json"), Setting("biome.jsonc")),
        own=_BINARIES,
        install="npm install --save-dev @biomejs/biome",
    ),
    Formatter(
        name="prettier",
        suffixes=(*_SCRIPTS, *_PAGES),
        argv=("--stdin-filepath", "{path}"),
        settings=(*map(Setting, _PRETTIER), Setting("package.json", r'^\s*"prettier"\s*:\s*["{]')),
        own=_BINARIES,
        runs_code=True,
        install="npm install --save-dev prettier",
    ),
    Formatter(
        name="gofmt",
        suffixes=(".go",),
        argv=(),
        settings=(Setting("go.mod"),),
        install="it comes with Go",
    ),
    Formatter(
        name="rustfmt",
        suffixes=(".rs",),
        # Its own default is the oldest edition, in which `async` is a name.
        argv=("--emit", "stdout", "--quiet", "--edition", "2021"),
        settings=(Setting("rustfmt.toml"), Setting(".rustfmt.toml")),
        install="rustup component add rustfmt",
    ),
    Formatter(
        name="clang-format",
        suffixes=(".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m", ".mm"),
        argv=("--style=file", "--assume-filename={path}"),
        settings=(Setting(".clang-format"), Setting("_clang-format")),
        install="pip install clang-format",
    ),
    Formatter(
        name="shfmt",
        suffixes=(".sh", ".bash"),
        argv=("--filename", "{path}"),
        settings=(Setting(".editorconfig", r"^\[.*(\*\.(sh|bash)\b|\b(sh|bash)[,}]|\[shell\])"),),
        install="pip install shfmt-py",
    ),
)
"""Of two that a folder asks for, the first."""


def by_suffix(path: str) -> list[Formatter]:
    """The formatters that know such files."""
    suffix = os.path.splitext(path)[1].lower()
    return _BY_SUFFIX.get(suffix, [])


def asked_for(root: str, path: str) -> tuple[Formatter, str] | None:
    """The formatter that the nearest settings above a file ask for, and their folder."""
    known = by_suffix(path)
    if not known:
        return None
    for folder in _upwards(root, os.path.dirname(path)):
        names = _names(folder)
        for formatter in known:
            if any(setting.name in names and _says(folder, setting) for setting in formatter.settings):
                return formatter, folder
    return None


def program_of(formatter: Formatter, root: str, folder: str, *, ours_only: bool) -> str | None:
    """The project's own copy where it may be used, else the one on the path."""
    if not ours_only:
        for place in _upwards(root, os.path.relpath(folder, root)):
            for own in formatter.own:
                copy = os.path.join(place, own, formatter.name)
                if os.access(copy, os.X_OK):
                    return copy
        return shutil.which(formatter.name)
    found = programs.find(formatter.name, root)
    return found.name if found else None


def _upwards(root: str, folder: str) -> Iterator[str]:
    """The folder and those above it, up to the workspace's root."""
    here = os.path.normpath(os.path.join(root, folder))
    while here == root or here.startswith(f"{root.rstrip('/')}/"):
        yield here
        if here == root:
            return
        here = os.path.dirname(here)


def _names(folder: str) -> frozenset[str]:
    try:
        return _listed(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=1024)
def _listed(folder: str, changed: int) -> frozenset[str]:  # noqa: ARG001
    """What a folder held at a time: listed again only when names came or went."""
    return frozenset(os.listdir(folder)) & _NAMES


def _says(folder: str, setting: Setting) -> bool:
    if not setting.says:
        return True
    path = os.path.join(folder, setting.name)
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return False  # a pipe would keep whoever opens it
        return _matches(path, setting.says, facts.st_mtime_ns, facts.st_size)
    except OSError:
        return False


@lru_cache(maxsize=1024)
def _matches(path: str, says: str, changed: int, size: int) -> bool:  # noqa: ARG001
    return re.search(says, small_text(path, _SETTINGS_BYTES, links=True), re.MULTILINE) is not None


_BY_SUFFIX = {
    suffix: [formatter for formatter in FORMATTERS if suffix in formatter.suffixes]
    for suffix in {suffix for formatter in FORMATTERS for suffix in formatter.suffixes}
}
_NAMES = frozenset(setting.name for formatter in FORMATTERS for setting in formatter.settings)
