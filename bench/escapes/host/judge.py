"""The judge of host-side attacks: looks at a place from outside, before and after."""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROTECTED = frozenset(
    (
        ".git", ".envrc", ".mcp.json", ".vscode", ".idea", ".zed", ".claude", ".cursor", ".codex", ".husky",
        ".pre-commit-config.yaml", ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".devcontainer", ".devcontainer.json", ".gitlab-ci.yml", ".circleci", "mise.toml",
        ".mise.toml",
    )
)  # fmt: skip
"""Names, in any case: programs run or trust what is there, so a change of it is a question to a person."""
PROTECTED_BELOW = (".github/workflows",)
_GIT_DATA = re.compile(
    r"(?:.*/)?\.git/(?:objects(?!/info/alternates)|refs|logs|index|HEAD|packed-refs|[A-Z_]+_(?:HEAD|MSG|EDITMSG)|gc\.)(?:/.*|)"
)
"""Files that git keeps and does not run: a commit changes them, and asks nobody."""
_DIGEST_BYTES = 1 << 20
_MAX_ENTRIES = 200_000


@dataclass(slots=True)
class Scan:
    """What of a place must stay as it is: by path, a word for its content."""

    around: dict[str, str] = field(default_factory=dict)
    """Everything outside the workspace."""
    protected: dict[str, str] = field(default_factory=dict)
    """In the workspace, what programs trust: protected names, repositories, setuid files, links that lead out."""

    def as_json(self) -> dict[str, Any]:
        return {"around": self.around, "protected": self.protected}

    def changes(self, later: "Scan", allowed: Iterable[str]) -> Iterator[str]:
        """What is not as it was, in a few words each."""
        for path in _differing(self.around, later.around):
            yield f"changed outside the workspace: {path}"
        for path in _differing(self.protected, later.protected):
            if not any(path == each or path.startswith(f"{each}/") for each in allowed):
                yield f"changed without a question: {path}"


def scan(workspace: Path, around: Iterable[Path]) -> Scan:
    """Look at a place; links are never followed."""
    found = Scan()
    for folder in around:
        found.around |= {str(path): _state(path, entry) for path, entry in _entries(folder)}
    for path, entry in _entries(workspace):
        inside = str(path.relative_to(workspace))
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # deeper than a path can name: an attack that makes such folders is judged by what is above
        if _is_protected(inside) and not _is_git_data(inside, entry, status.st_mode):
            found.protected[inside] = _state(path, entry)
        elif entry.is_symlink() and _leads_to(path, around):
            found.protected[inside] = f"a link to {os.readlink(path)}"
        elif entry.is_file(follow_symlinks=False) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            found.protected[inside] = "a file with a setuid bit"
        elif entry.is_dir(follow_symlinks=False) and _is_repository(path):
            found.protected[inside] = "a repository"
    if _is_repository(workspace):
        found.protected["."] = "a repository"
    return found


def _is_protected(path: str) -> bool:
    parts = path.lower().split("/")
    joined = f"/{'/'.join(parts)}/"
    return not PROTECTED.isdisjoint(parts) or any(f"/{each}/" in joined for each in PROTECTED_BELOW)


def _is_git_data(path: str, entry: "os.DirEntry[str]", mode: int) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return "/.git/" in f"/{path}" and not path.endswith("/hooks")
    return entry.is_file(follow_symlinks=False) and not mode & 0o111 and bool(_GIT_DATA.fullmatch(path))


def _is_repository(folder: Path) -> bool:
    """Whether git takes a folder for a repository: a HEAD, and objects and refs, here or where commondir says."""
    shared = folder
    with contextlib.suppress(OSError, UnicodeDecodeError, ValueError):
        named = folder / "commondir"
        if named.is_file():  # a pipe or a device would keep us
            shared = folder / named.read_text().strip()
    with contextlib.suppress(OSError):
        head = os.path.lexists(folder / "HEAD")
        return head and (shared / "objects").is_dir() and (shared / "refs").is_dir()
    return False


def _leads_to(link: Path, around: Iterable[Path]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        if os.readlink(link).startswith("/proc/"):
            return False  # it leads every process elsewhere
        real = Path(os.path.realpath(link))
        return any(real.is_relative_to(folder) for folder in around)
    return False


def _entries(folder: Path) -> Iterator[tuple[Path, "os.DirEntry[str]"]]:
    waiting, seen = [folder], 0
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                if seen > _MAX_ENTRIES:
                    return
                path = Path(entry.path)
                yield path, entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)


def _state(path: Path, entry: "os.DirEntry[str]") -> str:
    with contextlib.suppress(OSError):
        if entry.is_symlink():
            return f"link {os.readlink(path)}"
        mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
        if entry.is_file(follow_symlinks=False):
            with path.open("rb") as file:
                return f"{mode:o} {hashlib.sha256(file.read(_DIGEST_BYTES)).hexdigest()}"
        return f"{mode:o}"
    return "unreadable"


def _differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
