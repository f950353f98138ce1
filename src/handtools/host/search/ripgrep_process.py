"""The ripgrep process: find `rg`, build its arguments, run it, and parse its JSON records."""

import base64
import errno
import io
import json
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import anyio
from anyio import to_thread
from pydantic_core import from_json

from handtools.core.errors import HostError, InvalidInput
from handtools.core.search import Hit, SearchGaps, SearchPatterns, SearchScope
from handtools.host.files.git_repository import is_regular_file_without_symlinks
from handtools.host.programs import (
    PIPE,
    Program,
    ProgramLimits,
    ProgramTimeout,
    anonymous_file,
    find_programs,
    is_own_installation,
    run_program,
    start_program,
)
from handtools.text.encoding import DecodedText, decode
from handtools.text.search.glob import suffix_globs

RIPGREP_RECORD_BYTES = 1 << 20
"""The longest JSON record, in bytes, that is read in full; only the beginning of longer ones is used."""
HIT_TEXT_CHARS = 1 << 14
"""The longest text of a hit, in characters; longer text is cut to the surroundings of its first match."""
HitSpans = list[tuple[int, int]]
BEGIN_RECORD, MATCH_RECORD, END_RECORD = (b'{"type":"%s"' % word for word in (b"begin", b"match", b"end"))
"""The first bytes of each record type, to distinguish records without parsing them."""
_PIECE_BYTES = 1 << 16
_PATH_FIELD = re.compile(rb'"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')
_LINE_NUMBER = re.compile(rb'"\},"line_number":(\d+)')
_OFFSET_FIELD = re.compile(rb'"absolute_offset":(\d+)')
_TEXT_FIELD = re.compile(rb'"lines":\{"text":"((?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4}){0,16384})')


def iter_records(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield each JSON record of ripgrep's output, unparsed; overlong records are shortened."""
    while line := stream.readline(RIPGREP_RECORD_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif record := _overlong_record(line, stream):
            yield record


def parse_ripgrep_record(record: bytes) -> dict[str, Any]:
    """Parse a JSON record and return its `data`."""
    data: dict[str, Any] = from_json(record)["data"]
    return data


def hits_of_record(path: str, data: dict[str, Any]) -> list[Hit]:
    """Return the hits in a match record: one, or several if lines end with a lone CR."""
    given = data["lines"].get("text")
    if given is not None and given.isascii():
        text = _without_line_end(given)
        most = len(text)
        spans = [(min(m["start"], most), min(m["end"], most)) for m in data["submatches"]]
    else:
        raw, read = _line_text(data["lines"])
        text = _without_line_end(read.body)
        spans = [
            (
                min(_character_offset(raw, read, m["start"]), len(text)),
                min(_character_offset(raw, read, m["end"]), len(text)),
            )
            for m in data["submatches"]
        ]
    line, cut = data["line_number"] or 0, "cut" in data
    if "\r" in text and "\n" not in text:
        return [_clipped_hit(path, *each, cut=cut) for each in _split_at_returns(line, text, spans)]
    return [_clipped_hit(path, line, text, spans, cut=cut)]


def _split_at_returns(line: int, text: str, spans: HitSpans) -> Iterator[tuple[int, str, HitSpans]]:
    start = 0
    for number, piece in enumerate(text.split("\r"), line):
        end = start + len(piece)
        own = [(first - start, min(last, end) - start) for first, last in spans if start <= first <= end]
        if own:
            yield number, piece, own
        start = end + 1


def _clipped_hit(path: str, line: int, text: str, spans: HitSpans, *, cut: bool) -> Hit:
    if len(text) <= HIT_TEXT_CHARS:
        return Hit(path, line, text, tuple(spans), cut)
    start = max(spans[0][0] - HIT_TEXT_CHARS // 2, 0) if spans else 0
    near = [
        (a - start, min(b - start, HIT_TEXT_CHARS)) for a, b in spans if start <= a < start + HIT_TEXT_CHARS
    ]
    return Hit(path, line, text[start : start + HIT_TEXT_CHARS], tuple(near), clipped=True)


def path_of_record(data: dict[str, Any]) -> str:
    """Return the workspace path in a record."""
    path: dict[str, str] = data["path"]
    name = path["text"] if "text" in path else os.fsdecode(base64.b64decode(path["bytes"]))
    return name.removeprefix("./")


def line_bytes_of_record(data: dict[str, Any]) -> bytes:
    """Return the bytes of the matched line in a match record."""
    given: dict[str, str] = data["lines"]
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass")
    return base64.b64decode(given["bytes"])


def _line_text(given: dict[str, str]) -> tuple[bytes, DecodedText]:
    """Return the bytes and the text of a line; the encoding is guessed only if it is not UTF-8."""
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass"), DecodedText(given["text"], "utf-8")
    raw = base64.b64decode(given["bytes"])
    return raw, decode(raw)


def _without_line_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _character_offset(raw: bytes, decoded: DecodedText, offset: int) -> int:
    """Convert a byte offset in a line to a character offset, using the encoding of the whole line.

    Guessing the encoding from a part of the line could give a different result.
    """
    if raw.isascii():
        return offset
    errors = "ignore" if decoded.errors == "strict" else decoded.errors
    return len(raw[len(decoded.bom) : offset].decode(decoded.encoding, errors))


def _overlong_record(head: bytes, stream: IO[bytes]) -> bytes | None:
    """Reduce the match record of a huge line to its path, line number and beginning, and skip the rest."""
    number, offset = _LINE_NUMBER.search(head), _OFFSET_FIELD.search(head)
    tail = head[-64:]
    while piece := stream.readline(_PIECE_BYTES):
        number = number or _LINE_NUMBER.search(tail + piece)
        offset = offset or _OFFSET_FIELD.search(tail + piece)
        tail = piece[-64:]
        if piece.endswith(b"\n"):
            break
    path, text = _PATH_FIELD.search(head), _TEXT_FIELD.search(head)
    if path is None or not head.startswith(MATCH_RECORD):
        return None
    shown = text[1].decode("utf-8", "ignore") if text else "(a very long line)"
    told = {
        "path": json.loads(path[1]),
        "lines": {"text": json.loads(f'"{shown}"')},
        "line_number": int(number[1]) if number else 0,
        "absolute_offset": int(offset[1]) if offset else 0,
        "submatches": [],
        "cut": True,
    }
    return MATCH_RECORD + b',"data":' + json.dumps(told).encode() + b"}"


RIPGREP_NAME = "rg.exe" if os.name == "nt" else "rg"
RIPGREP_FILE_TYPE_NAME = "handtools"
"""The ripgrep file type that we define for the wanted globs, because `-g` would override ignore rules."""
VERSION_CONTROL_FOLDERS = frozenset({".git", ".hg", ".svn", ".jj"})
MIN_MAJOR_VERSION = 14
"""The first ripgrep version that logs every ignore file it opens."""
_OWN_IGNORE_FILES = frozenset({".ignore", ".rgignore"})
_READ_DIFFERENTLY = re.compile(r"[{,][,}]|[*?.](?:[,}]|\Z)")
"""Matches globs that ripgrep interprets differently: an empty alternative, or a suffix that may be empty."""


class RipgrepMissing(HostError):
    """Raised if no usable `rg` program is found."""


def find_ripgrep(root: Path) -> Program:
    """Find the `rg` installed with us or on PATH; one in the workspace only if we run from there too."""
    ours = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    # If handtools itself runs from the workspace, the `rg` installed with it is trusted as much as we are.
    beside = [folder for folder in ours if is_own_installation(folder / RIPGREP_NAME, root)]
    found = [*find_programs(RIPGREP_NAME, root, folders=ours)]
    if not found and beside:
        found = [*islice(find_programs(RIPGREP_NAME, "", folders=beside), 1)]
    if not found:
        raise RipgrepMissing(
            "Searching needs ripgrep, but `rg` was not found. "
            "Install it with `pip install ripgrep==14.1.0`, or add `rg` to the PATH."
        )
    recent = (each for each in found if _major_version(each) >= MIN_MAJOR_VERSION)
    if chosen := next(recent, None):
        return chosen
    raise RipgrepMissing(
        f"`{found[0].file}` is older than ripgrep {MIN_MAJOR_VERSION} and does not report which ignore "
        "files it reads, so one could be a symlink to a private file. Run `pip install ripgrep==14.1.0`."
    )


@cache
def _major_version(program: Program) -> int:
    try:
        said = run_program(program, ["--version"], ProgramLimits(seconds=20)).output.decode(
            errors="replace"
        )
    except ProgramTimeout:
        return 0
    found = re.match(r"ripgrep (\d+)\.", said)
    return int(found[1]) if found else 0


def search_args(patterns: SearchPatterns, scope: SearchScope, root: Path) -> list[str]:
    """Return the `rg` arguments of a search, without the output format options."""
    return [*pattern_args(patterns), *walk_args(scope, root), "--", root_operand(scope)]


def search_args_of_files(patterns: SearchPatterns, names: Iterable[str]) -> list[str]:
    """Return the `rg` arguments for searching files that are already open, by their names."""
    return [*pattern_args(patterns), "--no-config", "--", *names]


def pattern_args(patterns: SearchPatterns) -> list[str]:
    """Return the `rg` options for the patterns and how they match."""
    options = ["--crlf", "--no-mmap", "--no-pre"]
    options.append("--case-sensitive" if patterns.case_sensitive else "--ignore-case")
    if patterns.literal:
        options.append("--fixed-strings")
    if patterns.multiline:
        options.append("--multiline")
    for pattern in patterns.patterns:
        options += ["-e", _pattern_arg(pattern)]
    return options


def walk_args(scope: SearchScope, root: Path) -> list[str]:
    """Return the `rg` options that select the files to search: hidden and ignored files, globs."""
    options = ["--no-config", "--no-follow", "--no-ignore-global"]
    if scope.hidden:
        options.append("--hidden")
    options += _ignore_args(scope, root)
    # rg tries each glob on every path: leave out names that are hidden anyway (saves 10% of rg's time).
    for glob in (*sorted(VERSION_CONTROL_FOLDERS), *scope.exclude):
        if scope.hidden or not glob.startswith("."):
            options += ["--iglob", f"!{glob}"]
    if narrowing := narrowing_globs(scope):
        for glob in narrowing:
            options += ["--type-add", f"{RIPGREP_FILE_TYPE_NAME}:{glob}"]
        options += ["--type", RIPGREP_FILE_TYPE_NAME]
    return options


def root_operand(scope: SearchScope) -> str:
    """Return the folder to search, as the argument after `--`."""
    return "./" if scope.root == "." else f"./{scope.root}"


def narrowing_globs(scope: SearchScope) -> tuple[str, ...]:
    """Return name globs that select a superset of the wanted files; the caller filters again."""
    names = suffix_globs(scope.include)
    if not scope.case_sensitive or any(map(_READ_DIFFERENTLY.search, names)):
        return ()
    # In rg `?` matches one byte; users mean one character.
    return tuple(name.replace("?", "*") for name in names)


def narrowing_decides(scope: SearchScope) -> bool:
    """Whether the narrowing globs alone select exactly the wanted files."""
    plain = all("/" not in glob.removeprefix("**/") and "?" not in glob for glob in scope.include)
    return plain and len(narrowing_globs(scope)) == len(scope.include)


def without_ignore_files_args(ignore_files: Iterable[str]) -> list[str]:
    """Return the `rg` options that disable the given kinds of ignore files."""
    names = {os.path.basename(path) for path in ignore_files}
    flags = ["--no-ignore-dot"] if names & _OWN_IGNORE_FILES else []
    return [*flags, "--no-ignore-vcs"] if names - _OWN_IGNORE_FILES else flags


def _ignore_args(scope: SearchScope, root: Path) -> Iterator[str]:
    if scope.ignored:
        yield "--no-ignore"
        return
    # With `--debug`, rg logs which ignore files it opens. Together with `--type`, it also logs a line for
    # every file, which takes longer than the search. So with `--type`, use it only if an ignore file in the
    # root or the searched folder is a symlink.
    if not narrowing_globs(scope) or _links_an_ignore_file(root, scope.root):
        yield "--debug"
    if not _in_git(root):
        # Without git, ignore files apply too, except in folders above the root, such as a home folder.
        yield from ("--no-require-git", "--no-ignore-parent")
        if scope.root != "." and is_regular_file_without_symlinks(str(root / ".gitignore"), str(root)):
            yield "--ignore-file=.gitignore"


def _links_an_ignore_file(root: Path, folder: str) -> bool:
    names = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude", ".git/info", ".git")
    return any((above / name).is_symlink() for above in {root, root / folder} for name in names)


def _in_git(root: Path) -> bool:
    return any(map(os.path.lexists, _git_folders(root)))


@lru_cache(maxsize=64)
def _git_folders(root: Path) -> tuple[str, ...]:
    """Return the paths where `.git` may be: in the root and in every folder above it."""
    return tuple(os.path.join(folder, ".git") for folder in (root, *root.parents))


def _pattern_arg(pattern: str) -> str:
    try:
        os.fsencode(pattern)
    except UnicodeEncodeError:
        raise InvalidInput("The pattern contains a lone surrogate.", hint="Use valid UTF-8.") from None
    if "\0" in pattern:
        raise InvalidInput("The pattern contains a NUL; text files have none.", hint="Leave it out.")
    return pattern


T = TypeVar("T")
CollectRipgrepOutput = Callable[["RipgrepRun", IO[bytes]], T]

_READ_BYTES = 1 << 16
_ERROR_BYTES = 1 << 20
_RG_PREFIX = "rg: "
_DEBUG = b"rg: DEBUG|"
_OPENED = re.compile(rb"^rg: DEBUG\|ignore::gitignore\|.*?: opened gitignore file: (.*?)\n?$", re.DOTALL)
_QUOTED_RULE = re.compile(rb": line \d+: ")
"""Matches warnings that quote a rule of an ignore file, which may be a symlink to a private file."""
_PATTERN_ERRORS = (
    "regex parse error",
    "compiled regex exceeds",
    "is not allowed in a regex",
    "error parsing",
    "impossible to match",
)


class SearchFailed(HostError):
    """Raised if ripgrep could not be started."""


class RipgrepRun:
    """One ripgrep process, shared by the thread that reads its output and the task with the timeout."""

    def __init__(
        self, program: Program, arguments: Sequence[str], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self.capped = False
        self.timed_out = False
        self.linked: list[str] = []
        """Ignore files that are not regular or were read through a symlink, from the `--debug` log."""
        self._cwd = str(cwd)
        self._said = ""
        self._errors = anonymous_file()
        self._lock = threading.Lock()
        self._state: Literal["started", "read", "ended"] = "started"
        try:
            self._process = start_program(
                program,
                arguments,
                cwd=cwd,
                stdout=PIPE,
                stderr=self._errors,
                pass_fds=pass_fds,
                buffer_bytes=_READ_BYTES,
            )
        except BaseException:
            self._errors.close()
            raise

    def kill_since_enough_found(self) -> None:
        """Kill the process because enough matches were found."""
        self.capped = True
        self._process.kill()

    def end(self) -> bool:
        """Kill the process; returns whether the reading thread is still running."""
        self._process.kill()
        with self._lock:
            reading = self._state == "read"
            self._state = "ended"
        if not reading:
            self._wait_and_read_errors()
        return reading

    def read(self, collect: CollectRipgrepOutput[T]) -> T | None:
        """Pass the output to `collect` and return its result after the process has ended.

        None if `end` was called first.
        """
        with self._lock:
            if self._state == "ended":
                return None
            self._state = "read"
        try:
            assert self._process.stdout is not None
            return collect(self, self._process.stdout)
        except BaseException:
            # If we only closed the pipe, rg would continue to walk until its next write.
            self._process.kill()
            raise
        finally:
            self._wait_and_read_errors()

    def _wait_and_read_errors(self) -> None:
        with self._errors as errors, self._process:
            self._process.wait()
            errors.seek(0)
            said, room = [], _ERROR_BYTES
            for line in errors:
                if line.startswith(_DEBUG):
                    if opened := _OPENED.match(line):
                        self._note_ignore_file(os.fsdecode(opened[1]))
                elif room > 0 and not _QUOTED_RULE.search(line):
                    room -= len(line)
                    said.append(line)
            self._said = b"".join(said).decode("utf-8", "replace")

    def _note_ignore_file(self, path: str) -> None:
        if not is_regular_file_without_symlinks(os.path.join(self._cwd, path), self._cwd):
            self.linked.append(path.removeprefix("./"))

    def gaps(self) -> SearchGaps:
        """Return what the finished search left out; raises if the pattern was invalid."""
        code = self._process.returncode
        if code == 2 and any(words in self._said for words in _PATTERN_ERRORS):
            reason = self._said.removeprefix(_RG_PREFIX).strip()
            hint = "Escape special characters, or set syntax='literal'."
            raise InvalidInput(f"Invalid pattern: {reason.rstrip('.')}.", hint=hint)
        skipped = [
            line.removeprefix(_RG_PREFIX) for line in self._said.splitlines() if line.startswith(_RG_PREFIX)
        ]
        return SearchGaps(
            capped=self.capped,
            timed_out=self.timed_out and not self.capped,
            unreadable=len(skipped),
            example=min(skipped).removeprefix("./") if skipped else "",
        )


async def run_ripgrep(
    program: Program,
    arguments: Sequence[str],
    *,
    cwd: Path,
    seconds: float,
    collect: CollectRipgrepOutput[T],
    pass_fds: Sequence[int] = (),
) -> tuple[T, RipgrepRun]:
    """Run ripgrep until it exits, times out or is cancelled; the process never outlives this call."""
    try:
        # Start it here instead of in the thread, so that rg starts while the thread wakes up.
        run = RipgrepRun(program, arguments, cwd, pass_fds)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise InvalidInput("The pattern is too long.", hint="Search for a part of it.") from None
        raise SearchFailed(f"Can't run ripgrep ({program.file}): {error.strerror}.") from error
    outcome: list[T] = []
    gone = threading.Event()

    def read() -> None:
        try:
            found = run.read(collect)
            if found is not None:
                outcome.append(found)
        finally:
            gone.set()

    try:
        with anyio.move_on_after(seconds):
            await to_thread.run_sync(read, abandon_on_cancel=True)
    finally:
        if not gone.is_set():
            run.timed_out = True
            if run.end():
                # Shielded, but short: the thread ends as soon as the killed process is gone.
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(gone.wait)
    # No outcome means that the timeout came before a thread was available: collect empty output.
    return outcome[0] if outcome else collect(run, io.BytesIO()), run
