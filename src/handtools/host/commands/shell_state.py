"""Shell state kept between the bash commands of a session: working directory, exports, functions, aliases.

No shell is kept alive. Each command writes its state to a private file descriptor when it exits, and the
next one restores it. There is no end marker in the output, so no output can fake one.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from handtools.core.commands import InheritedShellState

SHELL_STATE_BYTES = 256 << 10
"""The maximum size of a shell state in bytes. A larger one is dropped and the previous state is kept."""
_SHELL_VARIABLES = frozenset(
    {"_", "PWD", "OLDPWD", "SHLVL", "BASHOPTS", "SHELLOPTS", "BASH_EXECUTION_STRING"}
)
_DECLARE_LINE = re.compile(
    r"""^declare\ -[a-zA-Z]*x[a-zA-Z]*\ ([A-Za-z_]\w*)
        (?:=("(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|[^\s"']*))?$""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellStateReport(InheritedShellState):
    """The shell state that one command reported when it exited; `exports` contains only what it changed."""

    jobs: int = 0
    """How many shell jobs were still running when the command exited."""


class ShellSessions:
    """Stores the shell state of each session in a file in the state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, session: str) -> InheritedShellState:
        """Load the shell state of a session; returns an empty one if there is none."""
        try:
            text = self._path(session).read_text("utf-8", "surrogateescape")
            return InheritedShellState(**json.loads(text))
        except (OSError, ValueError, TypeError):
            return InheritedShellState()

    def keep(self, session: str, report: ShellStateReport, cwd: str | None) -> None:
        """Merge a command's shell state into the session's, keeping changes from concurrent commands."""
        with _LOCK:
            before = self.find(session)
            new_state = InheritedShellState(
                cwd=before.cwd if cwd is None else cwd,
                exports={**before.exports, **report.exports},
                functions=report.functions,
                aliases=report.aliases,
            )
            if new_state != before:
                self._write(self._path(session), json.dumps(asdict(new_state)))

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:24]}.json"

    def _write(self, path: Path, text: str) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}")
            beside.write_text(text, "utf-8")
            beside.chmod(0o600)
            beside.replace(path)


class ShellStateFile:
    """A temporary file for one command: bash reads its script from it and writes its shell state to it."""

    def __init__(self, shell_state: InheritedShellState, script: str) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 — closed by `close`
        dump = f"declare -px >&{self.fd}"
        notes = (
            f'{{ printf "\\0"; pwd -P; printf "\\0"; declare -px; printf "\\0"; declare -f; printf "\\0"; '
            f'alias -p; printf "\\0"; jobs -pr; printf "\\0"; }} >&{self.fd} 2>/dev/null'
        )
        prelude = f"{_prelude(shell_state)}\n{dump}\ntrap {shlex.quote(notes)} EXIT"
        self._file.write(f"{prelude}\0{script}\0".encode("utf-8", "surrogateescape"))
        self._start = self._file.tell()
        self._file.seek(0)

    @property
    def fd(self) -> int:
        """The file descriptor number in the command."""
        return self._file.fileno()

    @property
    def bootstrap_code(self) -> str:
        """A short bash program that runs the script in the file.

        Error messages keep the script's line numbers.
        """
        take = f"IFS= read -r -d '' -u {self.fd}"
        # Read both parts (prelude and script) before running the first, which writes to the end of the file.
        return f'{take}; set -- "$REPLY"; {take}; set -- "$1" "$REPLY"; eval "$1"; eval "unset REPLY; set --; $2"'

    def read_report(self) -> ShellStateReport | None:
        """Read the shell state that the command reported; None if its EXIT trap did not complete."""
        self._file.seek(self._start)
        text = self._file.read(SHELL_STATE_BYTES + 1).decode("utf-8", "surrogateescape")
        parts = text.split("\0")
        if len(parts) != 7 or len(text) > SHELL_STATE_BYTES:
            return None
        before, cwd, after, functions, aliases, jobs, _ = parts
        return ShellStateReport(
            cwd=cwd.removesuffix("\n"),
            exports=_changed_exports(before, after),
            functions=functions,
            aliases=aliases,
            jobs=len(jobs.split()),
        )

    def close(self) -> None:
        self._file.close()


def _prelude(shell_state: InheritedShellState) -> str:
    """Return bash code that restores the shell state."""
    rows = [
        f"unset {name}" if value is None else f"export {name}={value}"
        for name, value in shell_state.exports.items()
    ]
    return "\n".join([*rows, shell_state.functions, "shopt -s expand_aliases", shell_state.aliases])


def _changed_exports(before: str, after: str) -> dict[str, str | None]:
    was, now = _declared_exports(before), _declared_exports(after)
    changed: dict[str, str | None] = {name: value for name, value in now.items() if was.get(name) != value}
    return changed | dict.fromkeys(was.keys() - now.keys())


def _declared_exports(text: str) -> dict[str, str]:
    found: dict[str, Any] = {match[1]: match[2] or "" for match in _DECLARE_LINE.finditer(text)}
    return {name: value for name, value in found.items() if name not in _SHELL_VARIABLES}
