"""Code formatters: a table of known ones, which one a project configures, and running it on a change."""

import hashlib
import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.core.language import FormattingOutcome
from handtools.core.syntax import Syntax
from handtools.host import programs
from handtools.host.files.syscalls import SETTINGS_BYTES, read_small_text
from handtools.host.sandbox.program_dependencies import folders_needed_by_program
from handtools.text.diffs.alignment import LineEdit, align_lines
from handtools.text.encoding import DecodedText, Unencodable, decode, is_binary
from handtools.text.lines import split_lines
from handtools.text.search.glob import PathGlobs

if TYPE_CHECKING:
    from handtools.host.sandbox.launch import Runner

_FORMATTED_WORD = re.compile(r"\w+")
_CHANGED_WORDS = 4
_CHANGED_WORDS_SHARE = 0.02


def limit_formatting_to_edit(before: str, after: str, formatted: str) -> str:
    """Return the edited text with the formatter's changes only on lines that the edit touched."""
    was, now, tidy = split_lines(before), split_lines(after), split_lines(formatted)
    touched = [(edit.start_b, edit.end_b) for edit in align_lines(was, now)]
    lines: list[str] = []
    at = 0
    for edit in align_lines(now, tidy):
        lines += now[at : edit.start_a]
        near = any(_is_near_edit(now, edit, start, end) for start, end in touched)
        lines += tidy[edit.start_b : edit.end_b] if near else now[edit.start_a : edit.end_a]
        at = edit.end_a
    return "".join([*lines, *now[at:]])


def _is_near_edit(lines: list[str], edit: LineEdit, start: int, end: int) -> bool:
    """Whether a formatter's change touches the edited lines, or the blank lines next to them."""
    if edit.start_a <= end and start <= edit.end_a:
        return True
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    return start <= edit.start_a and edit.end_a <= end


def has_same_words(before: str, after: str) -> bool:
    """Whether two texts have nearly the same words; true for a formatter's output, not for a rewrite."""
    one, two = (Counter(word.lower() for word in _FORMATTED_WORD.findall(text)) for text in (before, after))
    different = (one - two).total() + (two - one).total()
    # In a very short file most words must stay: emptying a file is not formatting.
    return different <= min(_CHANGED_WORDS, one.total() // 2) + _CHANGED_WORDS_SHARE * one.total()


@dataclass(frozen=True, slots=True)
class FormatterSetting:
    """A settings file whose presence selects a formatter; with `says`, only if its text matches that regex."""

    name: str
    says: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatter:
    """A formatter program that reads stdin and prints the formatted text; it never writes files."""

    name: str
    suffixes: tuple[str, ...]
    argv: tuple[str, ...]
    """The arguments after the program; `{path}` is replaced by the file's path."""
    settings: tuple[FormatterSetting, ...]
    own: tuple[str, ...] = ()
    """Folders in a project where its own copy of the formatter may be installed."""
    runs_code: bool = False
    """Whether the formatter executes project code: plug-ins, or settings written as a program."""
    install: str = ""


_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".css", ".json", ".jsonc")
_MARKUP = (".scss", ".less", ".html", ".vue", ".md", ".mdx", ".yaml", ".yml", ".graphql")
_PRETTIER_SETTINGS = (
    ".prettierrc", ".prettierrc.json", ".prettierrc.json5", ".prettierrc.yaml", ".prettierrc.yml",
    ".prettierrc.toml", ".prettierrc.js", ".prettierrc.mjs", ".prettierrc.cjs", ".prettierrc.ts",
    "prettier.config.js", "prettier.config.mjs", "prettier.config.cjs", "prettier.config.ts",
)  # fmt: skip
_NODE_PROGRAM_FOLDERS = ("node_modules/.bin",)

FORMATTERS: tuple[Formatter, ...] = (
    Formatter(
        name="black",
        suffixes=(".py", ".pyi"),
        argv=("--quiet", "--stdin-filename", "{path}", "-"),
        settings=(FormatterSetting("pyproject.toml", r"^\[tool\.black\]"),),
        own=(".venv/bin",),
        install="pip install black",
    ),
    Formatter(
        name="ruff",
        suffixes=(".py", ".pyi"),
        argv=("format", "--no-cache", "--force-exclude", "--stdin-filename", "{path}", "-"),
        settings=(
            FormatterSetting("ruff.toml"),
            FormatterSetting(".ruff.toml"),
            FormatterSetting("pyproject.toml", r"^\[tool\.ruff[.\]]"),
        ),
        own=(".venv/bin",),
        install="pip install ruff",
    ),
    Formatter(
        name="biome",
        suffixes=_SCRIPTS,
        argv=("format", "--stdin-file-path={path}"),
        settings=(FormatterSetting("biome.json"), FormatterSetting("biome.jsonc")),
        own=_NODE_PROGRAM_FOLDERS,
        install="npm install --save-dev @biomejs/biome",
    ),
    Formatter(
        name="prettier",
        suffixes=(*_SCRIPTS, *_MARKUP),
        argv=("--stdin-filepath", "{path}"),
        settings=(
            *map(FormatterSetting, _PRETTIER_SETTINGS),
            FormatterSetting("package.json", r'^\s*"prettier"\s*:\s*["{]'),
        ),
        own=_NODE_PROGRAM_FOLDERS,
        runs_code=True,
        install="npm install --save-dev prettier",
    ),
    Formatter(
        name="gofmt",
        suffixes=(".go",),
        argv=(),
        settings=(FormatterSetting("go.mod"),),
        install="it comes with Go",
    ),
    Formatter(
        name="rustfmt",
        suffixes=(".rs",),
        # rustfmt defaults to the oldest edition, where `async` is an identifier.
        argv=("--emit", "stdout", "--quiet", "--edition", "2021"),
        settings=(FormatterSetting("rustfmt.toml"), FormatterSetting(".rustfmt.toml")),
        install="rustup component add rustfmt",
    ),
    Formatter(
        name="clang-format",
        suffixes=(".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m", ".mm"),
        argv=("--style=file", "--assume-filename={path}"),
        settings=(FormatterSetting(".clang-format"), FormatterSetting("_clang-format")),
        install="pip install clang-format",
    ),
    Formatter(
        name="shfmt",
        suffixes=(".sh", ".bash"),
        argv=("--filename", "{path}"),
        settings=(FormatterSetting(".editorconfig", r"^\[.*(\*\.(sh|bash)\b|\b(sh|bash)[,}]|\[shell\])"),),
        install="pip install shfmt-py",
    ),
)
"""All known formatters; if a folder configures two, the first one is used."""


def formatters_by_suffix(path: str) -> list[Formatter]:
    """The formatters that support a file, by its suffix."""
    suffix = os.path.splitext(path)[1].lower()
    return _BY_SUFFIX.get(suffix, [])


def project_formatter(
    root: str, path: str, only: Collection[str] | None = None
) -> tuple[Formatter, str] | None:
    """The formatter configured by the nearest settings file above a file, and the settings file's folder.

    `only` lists the names of formatters that may be used; None allows all.
    """
    known = [each for each in formatters_by_suffix(path) if only is None or each.name in only]
    if not known:
        return None
    for folder in _walk_up_to_root(root, os.path.dirname(path)):
        names = _setting_file_names(folder)
        for formatter in known:
            if any(
                setting.name in names and _is_setting_present(folder, setting)
                for setting in formatter.settings
            ):
                return formatter, folder
    return None


def formatter_program(formatter: Formatter, root: str, folder: str, *, ours_only: bool) -> str | None:
    """The path of a formatter's program: the project's copy or the one on PATH.

    With `ours_only`, only a program outside the workspace. None if there is none.
    """
    if not ours_only:
        for place in _walk_up_to_root(root, os.path.relpath(folder, root)):
            for own in formatter.own:
                copy = os.path.join(place, own, formatter.name)
                if os.access(copy, os.X_OK):
                    return copy
        return shutil.which(formatter.name)
    found = programs.find_program(formatter.name, root)
    return found.name if found else None


def _walk_up_to_root(root: str, folder: str) -> Iterator[str]:
    """Yield a folder and its parents up to the workspace's root."""
    here = os.path.normpath(os.path.join(root, folder))
    while here == root or here.startswith(f"{root.rstrip('/')}/"):
        yield here
        if here == root:
            return
        here = os.path.dirname(here)


def _setting_file_names(folder: str) -> frozenset[str]:
    try:
        return _cached_setting_file_names(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=1024)
def _cached_setting_file_names(folder: str, changed: int) -> frozenset[str]:  # noqa: ARG001
    """The settings files in a folder, cached by the folder's modification time `changed`."""
    return frozenset(os.listdir(folder)) & _SETTING_FILE_NAMES


def _is_setting_present(folder: str, setting: FormatterSetting) -> bool:
    if not setting.says:
        return True
    path = os.path.join(folder, setting.name)
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return False  # opening a pipe would block
        return _has_matching_text(path, setting.says, facts.st_mtime_ns, facts.st_size)
    except OSError:
        return False


@lru_cache(maxsize=1024)
def _has_matching_text(path: str, says: str, changed: int, size: int) -> bool:  # noqa: ARG001
    return re.search(says, read_small_text(path, SETTINGS_BYTES, links=True), re.MULTILINE) is not None


_BY_SUFFIX = {
    suffix: [formatter for formatter in FORMATTERS if suffix in formatter.suffixes]
    for suffix in {suffix for formatter in FORMATTERS for suffix in formatter.suffixes}
}
_SETTING_FILE_NAMES = frozenset(setting.name for formatter in FORMATTERS for setting in formatter.settings)


FORMATTER_SECONDS = 5.0
MAX_FORMATTED_BYTES = 2_000_000
REMEMBERED_CLEAN_FILES = 4_096


class FormattingFailed(Exception):
    """Raised when a formatter's result can't be used; the message is the reason."""


@dataclass(frozen=True, slots=True)
class _FormatterRun:
    """The parameters of one formatter run."""

    formatter: Formatter
    program: str
    path: str
    folder: str
    private_globs: tuple[PathGlobs, ...]
    deadline: float


class LocalFormatters:
    """Formats changed files with the formatters configured by the project, if they are installed."""

    def __init__(
        self,
        root: str | Path,
        syntax: Syntax,
        *,
        runner: Callable[[], "Runner"] | None = None,
        seconds: float = FORMATTER_SECONDS,
        only: Collection[str] | None = None,
    ) -> None:
        self._root = os.path.realpath(root)
        self._syntax = syntax
        self._given = runner
        self._seconds = seconds
        self._only = only
        self._clean: dict[str, bytes] = {}
        """Digests, by path, of files that were already formatted when last checked."""

    @cached_property
    def _runner(self) -> "Runner":
        from handtools.host.sandbox.runners.runner_selection import choose_runner

        return self._given() if self._given else choose_runner(root=self._root).runner

    def formats(self, path: str) -> bool:
        """Whether the project configures a formatter for a file and the formatter is installed."""
        found = project_formatter(self._root, path, self._only)
        return found is not None and self._usable_program(*found) is not None

    async def format(
        self, path: str, before: bytes | None, after: bytes, *, private_globs: Sequence[PathGlobs]
    ) -> FormattingOutcome | None:
        """Format the lines that a change touched; None if nothing changes or there is no formatter.

        If the formatter fails, the result contains the reason.
        """
        found = project_formatter(self._root, path, self._only)
        program = self._usable_program(*found) if found else None
        if found is None or program is None or is_binary(after) or len(after) > MAX_FORMATTED_BYTES:
            return None
        formatter, folder = found
        formatter_run = _FormatterRun(
            formatter, program, path, folder, tuple(private_globs), time.monotonic() + self._seconds
        )
        try:
            done = await self._formatted_bytes(formatter_run, before, after)
        except FormattingFailed as why:
            return FormattingOutcome(formatter.name, why=f"{formatter.name} {why}.")
        return None if done == after else FormattingOutcome(formatter.name, done)

    async def _formatted_bytes(
        self, formatter_run: _FormatterRun, before: bytes | None, after: bytes
    ) -> bytes:
        """Format a new file, or one that was formatted before, in full; otherwise only the touched lines."""
        formatted = await self._run_formatter(formatter_run, after)
        if formatted == after:
            self._remember_formatted_file(formatter_run.path, after)
            return after
        await self._check_same_words(formatter_run.path, after, formatted)
        if before is None or await self._was_formatted_before(formatter_run, before):
            self._remember_formatted_file(formatter_run.path, formatted)
            return formatted
        source = decode(after)
        near = limit_formatting_to_edit(decode(before).body, source.body, decode(formatted).body)
        part = _encode_like_file(source, near)
        # Some of the formatter's edits without the others may be wrong: check that formatting `part` again
        # gives the same result.
        if part != after and await self._run_formatter(formatter_run, part) != formatted:
            raise FormattingFailed("would change more than this edit")
        return part

    def _remember_formatted_file(self, path: str, data: bytes) -> None:
        if len(self._clean) >= REMEMBERED_CLEAN_FILES:
            self._clean.clear()
        self._clean[path] = _content_digest(data)

    async def _was_formatted_before(self, formatter_run: _FormatterRun, before: bytes) -> bool:
        if self._clean.get(formatter_run.path) == _content_digest(before):
            return True
        try:
            return await self._run_formatter(formatter_run, before) == before
        except FormattingFailed:
            return False  # the formatter can't parse the old text, so format only the touched lines

    async def _check_same_words(self, path: str, after: bytes, formatted: bytes) -> None:
        if is_binary(formatted) or not has_same_words(decode(after).body, decode(formatted).body):
            raise FormattingFailed("changed more than formatting; output discarded")
        was = await self._syntax.outline(path, after)
        now = await self._syntax.outline(path, formatted)
        if was and now and not was.broken_lines and now.broken_lines:
            raise FormattingFailed(f"broke the syntax at line {now.broken_lines[0]}; output discarded")

    async def _run_formatter(self, formatter_run: _FormatterRun, data: bytes) -> bytes:
        # Imported lazily: most workspaces never format a file.
        from handtools.host.sandbox.confined_filter import StdinFilterProgram, run_stdin_filter

        seconds = formatter_run.deadline - time.monotonic()
        if seconds <= 0:
            raise FormattingFailed(f"took longer than {self._seconds:g} s")
        path = os.path.join(self._root, formatter_run.path)
        argv = (
            formatter_run.program,
            *(part.replace("{path}", path) for part in formatter_run.formatter.argv),
        )
        program = StdinFilterProgram(
            argv,
            self._root,
            formatter_run.folder,
            formatter_run.private_globs,
            folders_needed_by_program(formatter_run.program, self._root),
        )
        made, complaint = await run_stdin_filter(self._runner, program, data, seconds)
        if complaint:
            raise FormattingFailed(complaint)
        return made

    def _usable_program(self, formatter: Formatter, folder: str) -> str | None:
        """The formatter's program; None if it is missing, or executes project code without a sandbox."""
        confined = self._runner.confined
        if formatter.runs_code and not confined:
            return None
        return formatter_program(formatter, self._root, folder, ours_only=not confined)


def _content_digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _encode_like_file(source_text: DecodedText, text: str) -> bytes:
    try:
        return source_text.encode(text)
    except Unencodable as problem:
        raise FormattingFailed(f"can't be used here: {problem}") from problem
