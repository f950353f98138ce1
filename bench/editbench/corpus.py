"""Real files of this machine, by language: what the cases are cut from."""

import os
import random
import site
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = {
    ".py": "python",
    ".pyi": "python-stub",
    ".h": "c",
    ".c": "c",
    ".hpp": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".tsx": "typescript",
    ".sh": "shell",
    ".bash": "shell",
    ".md": "markdown",
    ".json": "json",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".toml": "toml",
    ".pl": "perl",
    ".pm": "perl",
    ".css": "css",
    ".html": "html",
    ".xml": "xml",
    ".rst": "rst",
    ".cmake": "cmake",
    ".vim": "vim",
    ".tcl": "tcl",
    ".sql": "sql",
    ".rb": "ruby",
    ".go": "go",
    ".rs": "rust",
    ".lua": "lua",
    ".m4": "m4",
    ".awk": "awk",
}
MIN_LANGUAGES = 8
SMALLEST_BYTES, LARGEST_BYTES = 800, 48_000
MAX_LINE = 400
SKIPPED = {"__pycache__", "locale", "fonts", "icons", "zoneinfo", "unicore", "i18n", "test", "tests"}


@dataclass(frozen=True, slots=True)
class Specimen:
    """One real file: its language and its text, line ends `\\n`, no BOM."""

    lang: str
    text: str


def roots() -> list[Path]:
    """Where a bare machine keeps source text, in a fixed order."""
    paths = sysconfig.get_paths()
    found = [
        paths["stdlib"],
        paths["purelib"],
        *site.getsitepackages(),
        "/usr/include",
        "/usr/lib/node_modules",
        "/usr/local/lib/node_modules",
        "/usr/lib/git-core",
        "/usr/lib/python3",
        "/usr/lib/x86_64-linux-gnu/perl-base",
        "/usr/share/perl",
        "/usr/share/perl5",
        "/usr/share/doc",
        "/usr/share/bash-completion",
        "/usr/share",
    ]
    return [Path(root) for root in dict.fromkeys(found) if Path(root).is_dir()]


def sample(seed: int, *, per_language: int) -> list[Specimen]:
    """Some usable files of every language found here; the same seed finds the same ones."""
    by_language: dict[str, list[str]] = defaultdict(list)
    for path in _walk():
        if language := LANGUAGES.get(os.path.splitext(path)[1]):
            by_language[language].append(path)
    chosen: list[Specimen] = []
    for language in sorted(by_language):
        paths = sorted(set(by_language[language]))
        # A stream of its own: a file more in one language leaves the others' samples alone.
        random.Random(f"{seed} {language}").shuffle(paths)
        readable = (text for text in map(_usable, paths[: per_language * 6]) if text)
        chosen += [Specimen(language, text) for text, _ in zip(readable, range(per_language), strict=False)]
    languages = {specimen.lang for specimen in chosen}
    if len(languages) < MIN_LANGUAGES:
        raise SystemExit(f"editbench needs {MIN_LANGUAGES} languages, found {sorted(languages)}")
    return chosen


def _walk() -> Iterator[str]:
    seen: set[str] = set()
    for root in roots():
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            real = os.path.realpath(folder)
            if real in seen:
                folders[:] = []
                continue
            seen.add(real)
            yield from (os.path.join(folder, name) for name in files)


def _usable(path: str) -> str | None:
    """The text of a file a person would edit by hand, or nothing."""
    try:
        if not SMALLEST_BYTES <= os.path.getsize(path) <= LARGEST_BYTES:
            return None
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "\r" in text or "\0" in text or text.startswith("\ufeff") or not text.endswith("\n"):
        return None
    lines = text.split("\n")
    if len(lines) < 24 or max(map(len, lines)) > MAX_LINE:
        return None
    return text
