"""The ripgrep process: finding `rg`, its arguments, one run of it, and parsing the JSON records it prints."""

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
"""The longest JSON record, in bytes, that is read whole; of longer ones the beginning is used."""
HIT_TEXT_CHARS = 1 << 14
"""The longest text of a hit, in characters; a longer one is cut to the surroundings of its first match."""
HitSpans = list[tuple[int, int]]
BEGIN_RECORD, MATCH_RECORD, END_RECORD = (b'{"type":"%s"' % word for word in (b"begin", b"match", b"end"))
"""The first bytes of each type of record, by which they are told apart without parsing."""
_PIECE_BYTES = 1 << 16
_PATH_FIELD = re.compile(rb'"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')
_LINE_NUMBER = re.compile(rb'"\},"line_number":(\d+)')
_OFFSET_FIELD = re.compile(rb'"absolute_offset":(\d+)')
_TEXT_FIELD = re.compile(rb'"lines":\{"text":"((?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4}){0,16384})')


def iter_records(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield each JSON record of ripgrep's output, unparsed; an overlong one is shortened."""
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
    """The hits in a match record: one, or several where lone CRs end lines."""
    given = data["lines"].get("text")
    if given is not None and given.isascii():
        text = _without_line_end(given)
        most = len(text)
        spans = [(min(m["start"], most), min(m["end"], most)) for m in data["submatches"]]
    else:
        raw, read = _line_text(data["lines"])
        text = _without_line_end(read.body)
        spans = [
            (min(_column(raw, read, m["start"]), len(text)), min(_column(raw, read, m["end"]), len(text)))
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
    """The workspace path in a record."""
    path: dict[str, str] = data["path"]
    name = path["text"] if "text" in path else os.fsdecode(base64.b64decode(path["bytes"]))
    return name.removeprefix("./")


def line_bytes_of_record(data: dict[str, Any]) -> bytes:
    """The matched line's bytes in a match record."""
    given: dict[str, str] = data["lines"]
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass")
    return base64.b64decode(given["bytes"])


def _line_text(given: dict[str, str]) -> tuple[bytes, DecodedText]:
    """The bytes and the text of a line; the encoding is guessed only if it is not UTF-8."""
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass"), DecodedText(given["text"], "utf-8")
    raw = base64.b64decode(given["bytes"])
    return raw, decode(raw)


def _without_line_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _column(raw: bytes, read: DecodedText, offset: int) -> int:
    """Convert a byte offset in a line to a character offset, by the encoding of the whole line.

    A part of a line by itself may look like another encoding.
    """
    if raw.isascii():
        return offset
    errors = "ignore" if read.errors == "strict" else read.errors
    return len(raw[len(read.bom) : offset].decode(read.encoding, errors))


def _overlong_record(head: bytes, stream: IO[bytes]) -> bytes | None:
    """Shorten a match record of a gigantic line to path, line number and beginning, and skip the rest."""
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
"""The name of the ripgrep file type for the wanted globs; `-g` would override the ignore rules."""
VERSION_CONTROL_FOLDERS = frozenset({".git", ".hg", ".svn", ".jj"})
LEAST_MAJOR_VERSION = 14
"""The first that logs every ignore file it opens."""
_OWN_IGNORE_FILES = frozenset({".ignore", ".rgignore"})
_READ_DIFFERENTLY = re.compile(r"[{,][,}]|[*?.](?:[,}]|\Z)")
"""Globs that ripgrep interprets differently: an empty alternative, or a suffix that may be empty."""


class RipgrepMissing(HostError):
    """Raised when no `rg` program is found."""


def find_ripgrep(root: Path) -> Program:
    """Find `rg`: the one installed with us, else on PATH; one in the workspace only if we run from there too."""
    ours = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    # What lies beside us is kept as we are, where we ourselves run from the workspace.
    beside = [folder for folder in ours if is_own_installation(folder / RIPGREP_NAME, root)]
    found = [*find_programs(RIPGREP_NAME, root, folders=ours)]
    if not found and beside:
        found = [*islice(find_programs(RIPGREP_NAME, "", folders=beside), 1)]
    if not found:
        raise RipgrepMissing(
            "Searching needs ripgrep and there is no `rg` here. "
            "Install it with `pip install ripgrep==14.1.0`, or put `rg` on the PATH."
        )
    recent = (each for each in found if _major_version(each) >= LEAST_MAJOR_VERSION)
    if chosen := next(recent, None):
        return chosen
    raise RipgrepMissing(
        f"`{found[0].file}` is older than ripgrep {LEAST_MAJOR_VERSION}: it does not tell which ignore files it "
        "reads, and a link to a private file may be one. Install `pip install ripgrep==14.1.0`."
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
    """The `rg` arguments of a search, without those for the output format."""
    return [*pattern_args(patterns), *walk_args(scope, root), "--", root_operand(scope)]


def search_args_of_files(patterns: SearchPatterns, names: Iterable[str]) -> list[str]:
    """The `rg` arguments for searching files that are already open, given by name."""
    return [*pattern_args(patterns), "--no-config", "--", *names]


def pattern_args(patterns: SearchPatterns) -> list[str]:
    """The `rg` options for the patterns and how they match."""
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
    """The `rg` options for which files are searched: hidden, ignored, globs, depth."""
    options = ["--no-config", "--no-follow", "--no-ignore-global"]
    if scope.hidden:
        options.append("--hidden")
    options += _ignore_args(scope, root)
    # Each glob is tried on every path: a tenth of rg's time for names that it passes by as hidden anyway.
    for glob in (*sorted(VERSION_CONTROL_FOLDERS), *scope.exclude):
        if scope.hidden or not glob.startswith("."):
            options += ["--iglob", f"!{glob}"]
    if narrowing := narrowing_globs(scope):
        for glob in narrowing:
            options += ["--type-add", f"{RIPGREP_FILE_TYPE_NAME}:{glob}"]
        options += ["--type", RIPGREP_FILE_TYPE_NAME]
    return options


def root_operand(scope: SearchScope) -> str:
    """The folder to search, as the argument after `--`."""
    return "./" if scope.root == "." else f"./{scope.root}"


def narrowing_globs(scope: SearchScope) -> tuple[str, ...]:
    """File name globs that narrow the search to a superset of the wanted files; the caller filters again."""
    names = suffix_globs(scope.include)
    if not scope.case_sensitive or any(map(_READ_DIFFERENTLY.search, names)):
        return ()
    # To rg a question mark is one byte, to people one character.
    return tuple(name.replace("?", "*") for name in names)


def narrowing_decides(scope: SearchScope) -> bool:
    """Whether the narrowing globs alone select exactly the wanted files."""
    plain = all("/" not in glob.removeprefix("**/") and "?" not in glob for glob in scope.include)
    return plain and len(narrowing_globs(scope)) == len(scope.include)


def without_ignore_files_args(ignore_files: Iterable[str]) -> list[str]:
    """The `rg` options that switch off the kinds of ignore file that are given."""
    names = {os.path.basename(path) for path in ignore_files}
    flags = ["--no-ignore-dot"] if names & _OWN_IGNORE_FILES else []
    return [*flags, "--no-ignore-vcs"] if names - _OWN_IGNORE_FILES else flags


def _ignore_args(scope: SearchScope, root: Path) -> Iterator[str]:
    if scope.ignored:
        yield "--no-ignore"
        return
    # It then says which ignore files it has opened. With a type it says a line for every file as well, which
    # takes longer than the search: then only where an ignore file of the workspace or the folder is a link.
    if not narrowing_globs(scope) or _links_an_ignore_file(root, scope.root):
        yield "--debug"
    if not _in_git(root):
        # Ignore files count without git too; but not those above, in somebody's home for example.
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
    """The paths where a `.git` folder may be: in the root and in every folder above it."""
    return tuple(os.path.join(folder, ".git") for folder in (root, *root.parents))


def _pattern_arg(pattern: str) -> str:
    try:
        os.fsencode(pattern)
    except UnicodeEncodeError:
        raise InvalidInput("The pattern holds half a character.", hint="Write it in UTF-8.") from None
    if "\0" in pattern:
        raise InvalidInput("The pattern holds a NUL, which text files do not.", hint="Leave it out.")
    return pattern


T = TypeVar("T")
CollectRipgrepOutput = Callable[["RipgrepRun", IO[bytes]], T]

_READ_BYTES = 1 << 16
_ERROR_BYTES = 1 << 20
_RG_PREFIX = "rg: "
_DEBUG = "rg: DEBUG|"
_OPENED = re.compile(r"^rg: DEBUG\|ignore::gitignore\|.*?: opened gitignore file: (.*)$", re.DOTALL)
_QUOTED_RULE = re.compile(r": line \d+: ")
"""Matches ripgrep's complaints that quote a rule of an ignore file, which may be a link to a private file."""
_PATTERN_ERRORS = (
    "regex parse error",
    "compiled regex exceeds",
    "is not allowed in a regex",
    "error parsing",
    "impossible to match",
)


class SearchFailed(HostError):
    """Raised when the system could not run ripgrep."""


class RipgrepRun:
    """One ripgrep process, shared by the thread that reads its output and the task that watches the time."""

    def __init__(
        self, program: Program, arguments: Sequence[str], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self.capped = False
        self.timed_out = False
        self.linked: list[str] = []
        """Ignore files that ripgrep read through a link or that are no regular files, as `--debug` tells."""
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
        """Kill the process because enough was found."""
        self.capped = True
        self._process.kill()

    def end(self) -> bool:
        """Kill the process; returns whether the reading thread has still to finish."""
        self._process.kill()
        with self._lock:
            reading = self._state == "read"
            self._state = "ended"
        if not reading:
            self._reap()
        return reading

    def read(self, collect: CollectRipgrepOutput[T]) -> T | None:
        """Pass the output to `collect` and return its result once the process has ended."""
        with self._lock:
            if self._state == "ended":
                return None
            self._state = "read"
        try:
            assert self._process.stdout is not None
            return collect(self, self._process.stdout)
        except BaseException:
            # Closing the pipe alone would let rg walk on until it has something to say.
            self._process.kill()
            raise
        finally:
            self._reap()

    def _reap(self) -> None:
        with self._errors as errors, self._process:
            self._process.wait()
            errors.seek(0)
            said, room = [], _ERROR_BYTES
            for data in errors:
                line = data.decode("utf-8", "surrogateescape")
                if opened := _OPENED.match(line.rstrip("\n")):
                    if not is_regular_file_without_symlinks(os.path.join(self._cwd, opened[1]), self._cwd):
                        self.linked.append(opened[1].removeprefix("./"))
                elif not line.startswith(_DEBUG) and not _QUOTED_RULE.search(line) and room > 0:
                    room -= len(line)
                    said.append(data)
            self._said = b"".join(said).decode("utf-8", "replace")

    def gaps(self) -> SearchGaps:
        """What the search left out, after its end; raises when the pattern was invalid."""
        code = self._process.returncode
        if code == 2 and any(words in self._said for words in _PATTERN_ERRORS):
            reason = self._said.removeprefix(_RG_PREFIX).strip()
            hint = "Escape what is meant as it is, or set syntax='literal'."
            raise InvalidInput(f"The pattern can't be used: {reason.rstrip('.')}.", hint=hint)
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
    """Run ripgrep until its end, the deadline or cancellation; the process is always gone afterwards."""
    try:
        # Here and not in the thread: while the one wakes up, the other is on its way.
        started = RipgrepRun(program, arguments, cwd, pass_fds)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise InvalidInput("The pattern is too long.", hint="Look for a part of it.") from None
        raise SearchFailed(f"ripgrep could not be run ({program.file}): {error.strerror}.") from error
    outcome: list[T] = []
    gone = threading.Event()

    def read() -> None:
        try:
            found = started.read(collect)
            if found is not None:
                outcome.append(found)
        finally:
            gone.set()

    try:
        with anyio.move_on_after(seconds):
            await to_thread.run_sync(read, abandon_on_cancel=True)
    finally:
        if not gone.is_set():
            started.timed_out = True
            if started.end():
                # The thread is left alone only for as long as a killed process takes to go.
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(gone.wait)
    # Without one, the time was over before a thread could begin: nothing was found in it.
    return outcome[0] if outcome else collect(started, io.BytesIO()), started
