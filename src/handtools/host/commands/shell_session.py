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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHELL_STATE_BYTES = 256 << 10
"""The largest shell state in bytes. A larger one is dropped and the previous state is kept."""
_SHELL_VARIABLES = frozenset(
    {"_", "PWD", "OLDPWD", "SHLVL", "BASHOPTS", "SHELLOPTS", "BASH_EXECUTION_STRING"}
)
_DECLARE_LINE = re.compile(
    r"""^declare\ -[a-zA-Z]*x[a-zA-Z]*\ ([A-Za-z_]\w*)
        (?:=("(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|[^\s"']*))?$""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_LOCK = threading.Lock()


@dataclass(slots=True)
class ShellState:
    """Working directory, exports, functions and aliases that the commands of a session left."""

    cwd: str = "."
    exports: dict[str, str | None] = field(default_factory=dict)
    """Exported variables and their values, quoted by bash; None if the variable was unset."""
    functions: str = ""
    aliases: str = ""

    def facts(self) -> dict[str, Any]:
        """The shell state as JSON values for the state file."""
        return {
            "cwd": self.cwd,
            "exports": dict(self.exports),
            "functions": self.functions,
            "aliases": self.aliases,
        }

    def prelude(self) -> str:
        """Bash code that restores the shell state."""
        rows = [
            f"unset {name}" if value is None else f"export {name}={value}"
            for name, value in self.exports.items()
        ]
        return "\n".join([*rows, self.functions, "shopt -s expand_aliases", self.aliases])


class ShellSessions:
    """Stores the shell state of each session in a file in the state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, session: str) -> ShellState:
        """Load the shell state of a session; an empty one if there is none."""
        try:
            return ShellState(**json.loads(self._path(session).read_text("utf-8", "surrogateescape")))
        except (OSError, ValueError, TypeError):
            return ShellState()

    def keep(self, session: str, report: "ShellStateReport", cwd: str | None) -> None:
        """Merge a command's shell state into the session's, keeping changes from concurrent commands."""
        with _LOCK:
            left = self.find(session)
            before = left.facts()
            left.exports |= report.exports
            left.functions, left.aliases = report.functions, report.aliases
            left.cwd = left.cwd if cwd is None else cwd
            if left.facts() != before:
                self._write(self._path(session), json.dumps(left.facts()))

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:24]}.json"

    def _write(self, path: Path, text: str) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}")
            beside.write_text(text, "utf-8")
            beside.chmod(0o600)
            beside.replace(path)


@dataclass(slots=True)
class ShellStateReport:
    """The shell state that one command reported when it exited."""

    cwd: str
    exports: dict[str, str | None]
    functions: str
    aliases: str
    jobs: int = 0
    """The number of shell jobs the command left running."""


class ShellStateFile:
    """A temporary file for one command: bash reads its script from it and writes its shell state to it."""

    def __init__(self, shell_state: ShellState, script: str) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 — closed by `close`
        dump = f"declare -px >&{self.fd}"
        notes = (
            f'{{ printf "\\0"; pwd -P; printf "\\0"; declare -px; printf "\\0"; declare -f; printf "\\0"; '
            f'alias -p; printf "\\0"; jobs -pr; printf "\\0"; }} >&{self.fd} 2>/dev/null'
        )
        prelude = f"{shell_state.prelude()}\n{dump}\ntrap {shlex.quote(notes)} EXIT"
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
        # Read both parts before running the first, because its output is written behind them in the file.
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
            cwd.removesuffix("\n"), _changed_exports(before, after), functions, aliases, len(jobs.split())
        )

    def close(self) -> None:
        self._file.close()


def _changed_exports(before: str, after: str) -> dict[str, str | None]:
    was, now = _declared_exports(before), _declared_exports(after)
    changed: dict[str, str | None] = {name: value for name, value in now.items() if was.get(name) != value}
    return changed | dict.fromkeys(was.keys() - now.keys())


def _declared_exports(text: str) -> dict[str, str]:
    found: dict[str, Any] = {match[1]: match[2] or "" for match in _DECLARE_LINE.finditer(text)}
    return {name: value for name, value in found.items() if name not in _SHELL_VARIABLES}
