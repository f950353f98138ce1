"""Ripgrep's command line: where the program is, and how to ask it so that nothing is an option by accident."""

import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from handtools.core.errors import HostError, InvalidInput
from handtools.core.searching import Patterns, Scope
from handtools.host.installation import is_ours
from handtools.host.programs import Program, find
from handtools.host.repositories import is_plain
from handtools.text.selecting import suffixed

NAME = "rg.exe" if os.name == "nt" else "rg"
TYPE = "handtools"
"""What the wanted globs are called as a file type: types narrow a search, `-g` would undo the ignore rules."""
VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
_OWN_IGNORE_FILES = frozenset({".ignore", ".rgignore"})
_OTHERWISE = re.compile(r"[{,][,}]|[*?.](?:[,}]|\Z)")
"""What rg reads in its own way: an empty alternative, and a suffix that may be empty."""


class RipgrepMissing(HostError):
    """There is no `rg` to be found."""


def program(root: Path) -> Program:
    """The `rg` that was installed with us, else one on the PATH; one in the workspace only if we are, too."""
    ours = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    # What lies beside us is kept as we are, where we ourselves run from the workspace.
    beside = [folder for folder in ours if is_ours(folder / NAME, root)]
    found = find(NAME, root, folders=ours) or (find(NAME, "", folders=beside) if beside else None)
    if found is None:
        raise RipgrepMissing(
            "Searching needs ripgrep and there is no `rg` here. "
            "Install it with `pip install ripgrep==14.1.0`, or put `rg` on the PATH."
        )
    return found


def search(patterns: Patterns, scope: Scope, root: Path) -> list[str]:
    """The options and operands of a search, without the form of its output."""
    return [*matching(patterns), *walk(scope, root), "--", operand(scope)]


def search_opened(patterns: Patterns, names: Iterable[str]) -> list[str]:
    """The same for files that are open already; as rg is told their names, it takes all of them."""
    return [*matching(patterns), "--no-config", "--", *names]


def matching(patterns: Patterns) -> list[str]:
    """The options that say what is looked for."""
    options = ["--crlf", "--no-mmap", "--no-pre"]
    options.append("--case-sensitive" if patterns.case_sensitive else "--ignore-case")
    if patterns.literal:
        options.append("--fixed-strings")
    if patterns.multiline:
        options.append("--multiline")
    for pattern in patterns.patterns:
        options += ["-e", _argument(pattern)]
    return options


def walk(scope: Scope, root: Path) -> list[str]:
    """The options that say which files are looked at."""
    options = ["--no-config", "--no-follow", "--no-ignore-global"]
    if scope.hidden:
        options.append("--hidden")
    options += _ignoring(scope, root)
    # Each glob is tried on every path: a tenth of rg's time for names that it passes by as hidden anyway.
    for glob in (*VERSION_CONTROL, *scope.exclude):
        if scope.hidden or not glob.startswith("."):
            options += ["--iglob", f"!{glob}"]
    if narrowing := narrowed(scope):
        for glob in narrowing:
            options += ["--type-add", f"{TYPE}:{glob}"]
        options += ["--type", TYPE]
    return options


def operand(scope: Scope) -> str:
    """The root as rg is given it, after `--`."""
    return "./" if scope.root == "." else f"./{scope.root}"


def narrowed(scope: Scope) -> tuple[str, ...]:
    """Globs of names outside of which no wanted file lies; a type takes hidden files in, so filter again."""
    names = suffixed(scope.include)
    if not scope.case_sensitive or any(map(_OTHERWISE.search, names)):
        return ()
    # To rg a question mark is one byte, to people one character.
    return tuple(name.replace("?", "*") for name in names)


def decides(scope: Scope) -> bool:
    """Whether narrowing by name is all there is to the wanted globs."""
    plain = all("/" not in glob.removeprefix("**/") and "?" not in glob for glob in scope.include)
    return plain and len(narrowed(scope)) == len(scope.include)


def without(ignore_files: Iterable[str]) -> list[str]:
    """The options by which no ignore file of the same kind as one of some counts."""
    names = {os.path.basename(path) for path in ignore_files}
    flags = ["--no-ignore-dot"] if names & _OWN_IGNORE_FILES else []
    return [*flags, "--no-ignore-vcs"] if names - _OWN_IGNORE_FILES else flags


def _ignoring(scope: Scope, root: Path) -> Iterator[str]:
    if scope.ignored:
        yield "--no-ignore"
        return
    # It then says which ignore files it has opened.
    yield "--debug"
    if not _in_git(root):
        # Ignore files count without git too; but not those above, in somebody's home for example.
        yield from ("--no-require-git", "--no-ignore-parent")
        if scope.root != "." and is_plain(str(root / ".gitignore"), str(root)):
            yield "--ignore-file=.gitignore"


def _in_git(root: Path) -> bool:
    return any(map(os.path.lexists, _repositories(root)))


@lru_cache(maxsize=64)
def _repositories(root: Path) -> tuple[str, ...]:
    """Where git's own folder is if the root is in a repository."""
    return tuple(os.path.join(folder, ".git") for folder in (root, *root.parents))


def _argument(pattern: str) -> str:
    try:
        os.fsencode(pattern)
    except UnicodeEncodeError:
        raise InvalidInput("The pattern holds half a character.", hint="Write it in UTF-8.") from None
    if "\0" in pattern:
        raise InvalidInput("The pattern holds a NUL, which text files do not.", hint="Leave it out.")
    return pattern
