"""Detect the language of a file by its name or its first line, and load the language's syntax rules.

To add a language: write a grammar in one of the `*_grammars` modules, add it to both tables here, and add a
file with labelled lines to `tests/labelled/breadcrumbs`.
"""

import re
from functools import cache
from importlib import import_module

from handtools.host.syntax.grammar import Grammar

# Only names in this table are passed to ast-grep, which panics on an unknown language.
_EXTENSIONS = {
    "python": "py pyi pyw",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "javascript": "js mjs cjs jsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ cu cuh ino",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru rbi",
    "php": "php php8 phtml",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc sbt",
    "lua": "lua",
    "bash": "sh bash zsh bats ebuild",
    "html": "html htm xhtml vue svelte",
    "css": "css",
    "json": "json jsonc json5 geojson webmanifest ipynb",
    "yaml": "yaml yml",
    "markdown": "md markdown",
}
_BY_EXTENSION = {extension: name for name, every in _EXTENSIONS.items() for extension in every.split()}
_BY_NAME = {
    "rakefile": "ruby",
    "gemfile": "ruby",
    "podfile": "ruby",
    "vagrantfile": "ruby",
    "jenkinsfile": "java",
    "sconstruct": "python",
    "sconscript": "python",
    ".bashrc": "bash",
    ".profile": "bash",
    ".zshrc": "bash",
    "pkgbuild": "bash",
    ".clang-format": "yaml",
    ".babelrc": "json",
    ".eslintrc": "json",
}
_BY_PROGRAM = {
    "python": "python",
    "pypy": "python",
    "node": "javascript",
    "deno": "typescript",
    "bun": "typescript",
    "ts-node": "typescript",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
    "luajit": "lua",
    "sh": "bash",
    "bash": "bash",
    "dash": "bash",
    "zsh": "bash",
    "ksh": "bash",
    "kotlin": "kotlin",
    "scala": "scala",
    "swift": "swift",
}
_SHEBANG = re.compile(rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+|\w+=\S*[ \t]+)*)?(?:\S*/)?([\w.+-]+)")
_VERSION = re.compile(r"[\d.]+\Z")
_CPP_HINT = re.compile(rb"^[ \t]*(?:class|namespace|template|using|public:|private:)\b", re.MULTILINE)
_CPP_HINT_BYTES = 64 << 10

PARSED_LANGUAGES = frozenset(_EXTENSIONS)


def language_of(path: str, data: bytes) -> str | None:
    """Return the programming language of a file, by its name or its `#!` line; None if unknown."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    found = _BY_NAME.get(name) or (_BY_EXTENSION.get(extension) if dot and stem else None)
    if found == "c" and extension == "h" and _CPP_HINT.search(data[:_CPP_HINT_BYTES]):
        return "cpp"
    return found or _language_of_shebang(data)


def _language_of_shebang(data: bytes) -> str | None:
    if not data.startswith(b"#!"):
        return None
    match = _SHEBANG.match(data[:200])
    return _BY_PROGRAM.get(_VERSION.sub("", match[1].decode("ascii", "replace"))) if match else None


_FAMILIES = {
    "compiled_language_grammars": ("c", "cpp", "csharp", "go", "java", "kotlin", "rust", "scala", "swift"),
    "scripting_language_grammars": (
        "bash", "javascript", "typescript", "tsx", "lua", "php", "python", "ruby",
    ),
    "markup_and_data_grammars": ("css", "html", "json", "markdown", "yaml"),
}  # fmt: skip
_MODULE_OF_LANGUAGE: dict[str, str] = {
    language: f"{__package__}.{module}" for module, languages in _FAMILIES.items() for language in languages
}
GRAMMAR_MODULES = tuple(dict.fromkeys(_MODULE_OF_LANGUAGE.values()))
"""All modules with syntax rules."""


@cache
def grammar_of_language(language: str) -> Grammar:
    """Return the syntax rules of a language, imported on first use."""
    module = import_module(_MODULE_OF_LANGUAGE[language])
    grammar: Grammar = getattr(module, language.upper())
    return grammar
