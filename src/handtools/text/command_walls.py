"""Walls of the sandbox that a command met, told by what real programs print: a sentence for each.

ADR 165.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_WALLS = 2
"""How many walls one answer names: the first that stopped a command explains the others."""
SUCCESS_LINES_CHECKED_FOR_WALLS = 30
"""Of a script that ended well only the last lines count: `pip install … | tail` does, and a report must not."""
WALL_MESSAGE_LINE_CHARS = 500

WallCondition = Literal["always", "no network", "listed hosts", "confined", "no terminal"]
"""What must be so for a message to mean a wall of ours."""


@dataclass(frozen=True, slots=True)
class CommandConfinement:
    """What is known of the place where a command ran."""

    confined: bool
    network: Literal["off", "listed", "on"]
    terminal: bool
    is_private: Callable[[str], bool] = lambda _: False
    """Whether a path that a message names is there and hidden from commands."""

    def meets_condition(self, condition: WallCondition) -> bool:
        """Whether a condition of a wall holds here."""
        return {
            "always": True,
            "no network": self.confined and self.network == "off",
            "listed hosts": self.confined and self.network == "listed",
            "confined": self.confined,
            "no terminal": not self.terminal,
        }[condition]


@dataclass(frozen=True, slots=True)
class CommandWall:
    """One wall: what programs print who meet it, and the sentence for the model."""

    name: str
    met_by: str
    """Programs whose message is known, for people."""
    sentence: str
    """`{what}` is what the message names: a host, a path, a program."""
    patterns: tuple[str, ...]
    """The group `what`, if there is one, is what the message names."""
    condition: WallCondition = "confined"
    unnamed: str = ""
    """What stands for `{what}` in a message that names nothing."""
    private: bool = False
    """Whether `what` must be a private path."""

    def note(self, line: str, around: CommandConfinement) -> str:
        """Return the sentence if a line of output tells of this wall, or empty."""
        for pattern in self.patterns:
            found = re.match(pattern, line)
            if found is None:
                continue
            what = (found.groupdict().get("what") or "").strip("'\"`‘’").rstrip(":,")
            if self.private and not (what and around.is_private(what)):
                continue
            return self.sentence.replace("{what}", what or self.unnamed)
        return ""


_QUOTED_LINE = re.compile(r"(?!line )[^\s:]+:\d+[:-]|\d+[:\t]|\s*\d+\t")
_HOST = r"(?P<what>[\w.-]+\.[A-Za-z][\w-]*)"
_PATH = r"['‘]?(?P<what>[^'‘’:]+)['’]?"
_SHELL = r"(?:\S*(?:ba|da|z)?sh: )?(?:line \d+: |\d+: )?"

_UNRESOLVED = (
    rf".*Could not resolve host(?:name)?:? \(?(?:Could not resolve host: )?{_HOST}",
    rf"wget: unable to resolve host address .?{_HOST}",
    rf"ssh: Could not resolve hostname {_HOST}",
    rf".*getaddrinfo (?:EAI_AGAIN|ENOTFOUND) {_HOST}",
    rf".*could not translate host name .{_HOST}. to address",
    rf".*dial tcp: lookup {_HOST}",
    rf".*host='{_HOST}'.*(?:Temporary failure in name resolution|Name or service not known|NewConnectionError)",
    rf".*Temporary failure resolving '{_HOST}'",
    rf".*failed to lookup address information.*{_HOST}?",
    (
        r"(?:\S*[Ee]rror: |<urlopen error |socket\.gaierror: ).*(?:Temporary failure in name resolution|"
        r"Name or service not known|No address associated with hostname|Network is unreachable)"
    ),
    r".*: Network is unreachable$",
    r".*dns error",
)

WALLS: tuple[CommandWall, ...] = (
    CommandWall(
        "no Docker",
        "docker",
        "There is no Docker for commands: a daemon would lead out of the sandbox. Run the service itself with "
        "background=true, or ask the person.",
        (
            r".*Cannot connect to the Docker daemon",
            r".*permission denied while trying to connect to the (?:Docker|docker)",
            rf"{_SHELL}(?:docker|docker-compose|podman): (?:command )?not found",
        ),
    ),
    CommandWall(
        "no sudo",
        "sudo, su",
        "Nothing becomes root here: install into the workspace or `$HOME`, or ask the person.",
        (
            rf"{_SHELL}(?:sudo|doas): (?:command )?not found",
            r"sudo: (?:The .no new privileges. flag|effective uid is not 0|unable to)",
            r"sudo: a (?:terminal|password) is required",
            r"sudo: \S+ must be owned by uid 0",
            r"su: (?:must be run from a terminal|Authentication failure|cannot set)",
        ),
    ),
    CommandWall(
        "no system packages",
        "apt-get, apt, dpkg, dnf, apk",
        "System packages can't be installed from a command: use a virtual environment, npm or another installer "
        "into the workspace or `$HOME`, or ask the person.",
        (
            r"E: (?:Could not open lock file|List directory \S+ is missing)",
            r"E: Unable to (?:lock|write|read|acquire the dpkg|locate package)",
            r"dpkg: error: (?:requested operation requires superuser|unable to access)",
            r"ERROR: Unable to lock database",
            r"Error: This command has to be run (?:with superuser privileges|under the root user)",
        ),
    ),
    CommandWall(
        "no network",
        "curl, wget, git, ssh, pip, uv, npm, node, python, cargo, go, psql",
        'A command has no network unless it lists its hosts: send `hosts=["{what}"]` with all that it must reach.',
        (
            *_UNRESOLVED,
            r"WARNING: Retrying \(.*(?:NewConnectionError|ConnectTimeoutError|ProxyError)",
            r"ERROR: Could not find a version that satisfies the requirement .*\(from versions: none\)",
        ),
        condition="no network",
        unnamed="HOST",
    ),
    CommandWall(
        "not through the proxy",
        "ssh, git over ssh, psql",
        "The listed hosts are reached by HTTP(S) or SOCKS through `$https_proxy` only, and this program did not "
        "use it for {what}.",
        _UNRESOLVED,
        condition="listed hosts",
        unnamed="its host",
    ),
    CommandWall(
        "no host key or account",
        "git, ssh",
        "The person's keys and passwords are not here, and nobody can type one: have the person do this step.",
        (
            r"fatal: could not read (?:Username|Password) for",
            r"Host key verification failed",
            r"\S+@\S+: Permission denied \((?:publickey|password)",
            r"fatal: Authentication failed for",
        ),
    ),
    CommandWall(
        "private file",
        "cat, cp, bash, python, node",
        "`{what}` is private: commands can't see what is in it. Ask the person for what you need of it.",
        (
            (
                rf"{_SHELL}(?:\S+: )?(?:cannot (?:open|access|stat|read) )?{_PATH}:? (?:for reading: )?"
                r"(?:Permission denied|No such file or directory)"
            ),
            rf"(?:PermissionError|FileNotFoundError): \[Errno \d+\] [\w ]+: {_PATH}",
            rf".*(?:EACCES|ENOENT): (?:permission denied|no such file or directory), \w+ {_PATH}",
        ),
        private=True,
    ),
    CommandWall(
        "repository elsewhere",
        "git in a linked worktree",
        "Git writes into the repository of this worktree, `{what}`, which is not in the workspace: have the "
        "person open both folders as one workspace (`handtools mcp WORKTREE REPOSITORY`).",
        (r".*(?:Unable|unable) to create '(?P<what>[^']+)/\.git/[^']*\.lock': Read-only file system",),
    ),
    CommandWall(
        "read-only",
        "touch, mkdir, bash, python, node, pip",
        "`{what}` is outside of what a command may write: the workspace, `$HOME` and `/tmp`.",
        (
            rf"{_SHELL}(?:\S+: )?(?:cannot [\w ]+? )?{_PATH}: Read-only file system",
            rf"OSError: \[Errno 30\] Read-only file system: {_PATH}",
            rf".*EROFS: read-only file system, \w+ {_PATH}",
            rf".*\[Errno 30\] Read-only file system: {_PATH}",
        ),
        unnamed="It",
    ),
    CommandWall(
        "no hard links to older files",
        "git clone, git submodule add",
        "For an ordinary user the kernel makes a copy where a command links to a file that was there before it. "
        'Name the repository as a URL (`"file://$(realpath PATH)"`): git then copies.',
        (r"fatal: hardlink different from source",),
    ),
    CommandWall(
        "no space",
        "dd, tar, pip, npm, git",
        "The place it wrote to is full: `$HOME` and `/tmp` are small. Remove what is not needed, or write into "
        "the workspace.",
        (
            r".*No space left on device",
            r".*ENOSPC: no space left on device",
            r".*Disk quota exceeded",
        ),
    ),
    CommandWall(
        "too many processes",
        "bash, python, node, go",
        "It started more processes or threads than a command may have: give it fewer workers (`-j 2`).",
        (
            r".*fork: (?:retry: )?(?:Resource temporarily unavailable|Cannot allocate memory)",
            r".*(?:BlockingIOError|OSError): \[Errno 11\] Resource temporarily unavailable",
            r".*RuntimeError: can't start new thread",
            r".*pthread_create failed",
            r".*spawn \S+ EAGAIN",
        ),
    ),
    CommandWall(
        "out of memory",
        "python, node, cc1plus, go, rustc",
        "It ran out of the memory that a command may use: give it less at once, or fewer workers (`-j 2`).",
        (
            r"(?:numpy\.\S+)?MemoryError\b",
            r".*JavaScript heap out of memory",
            r".*Cannot allocate memory",
            r".*std::bad_alloc",
            r".*virtual memory exhausted",
            r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)",
            r"c\+\+: fatal error: Killed signal terminated program",
        ),
    ),
    CommandWall(
        "too many open files",
        "python, node, git",
        "It opened more files at once than a process may: work on fewer at a time.",
        (r".*[Tt]oo many open files", r".*EMFILE"),
    ),
    CommandWall(
        "no services",
        "systemctl, service",
        "There is no service manager: start the server itself with background=true.",
        (
            r"System has not been booted with systemd",
            r"Failed to connect to bus",
            rf"{_SHELL}(?:systemctl|service): (?:command )?not found",
        ),
    ),
    CommandWall(
        "no terminal",
        "python, tmux, vim, docker, git, getpass",
        "It wants a terminal: pass what it asks for by flags or a file, or start it with background=true and "
        "pty=true and answer with `jobs`.",
        (
            r"EOFError(?:: EOF when reading a line)?$",
            r"open terminal failed: not a terminal",
            r".*(?:stdin|input device|standard input|input|output) is not (?:a|from a|to a) (?:tty|TTY|terminal)",
            r"Error opening terminal",
            r"TERM environment variable (?:not set|needs set)",
            r"termios\.error: \(25,",
            r".*Inappropriate ioctl for device",
            r".*(?:must be run|requires?|needs?) (?:from |in |an? )*(?:interactive )?(?:tty|TTY|terminal)\b",
        ),
        condition="no terminal",
    ),
    CommandWall(
        "not on PATH",
        "bash, env, npm, make",
        "`{what}` is not on this command's PATH. Look for another name (`command -v`), a project's own "
        "(`.venv/bin`, `node_modules/.bin`), install it into the workspace, or ask the person.",
        (
            rf"{_SHELL}(?P<what>[\w.+-]+): (?:command )?not found$",
            r"(?:/usr/bin/)?env: ['‘](?P<what>[^'’]+)['’]: No such file or directory",
            r"make(?:\[\d+\])?: (?P<what>[\w.+-]+): No such file or directory",
        ),
        condition="always",
    ),
)
"""Every wall that is told by its message, the most telling first; what we know ourselves is noted elsewhere."""


def wall_notes(output: str, *, failed: bool, around: CommandConfinement) -> tuple[str, ...]:
    """Return a sentence for each wall that a command's output tells of, the most telling first, at most two."""
    lines = output.rstrip().splitlines()
    if not failed:
        lines = lines[-SUCCESS_LINES_CHECKED_FOR_WALLS:]
    found = dict.fromkeys(_walls_of([line for line in lines if not _is_quoted(line)], around))
    return tuple(found)[:MOST_WALLS]


def _is_quoted(line: str) -> bool:
    """Whether a line comes from a file, as `grep -n` shows it: then no program of this command met anything."""
    return _QUOTED_LINE.match(line) is not None


def _walls_of(lines: Sequence[str], around: CommandConfinement) -> Iterator[str]:
    for wall in WALLS:
        if not around.meets_condition(wall.condition):
            continue
        # The last that is named is the one on which it gave up.
        notes = (wall.note(line[:WALL_MESSAGE_LINE_CHARS].strip(), around) for line in reversed(lines))
        if note := next(filter(None, notes), ""):
            yield note
