"""Recognize in a command's output which sandbox restrictions it ran into, and explain them to the model."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MAX_WALLS = 2
"""How many restrictions are named in one result: the first one that stopped a command explains the others."""
SUCCESS_LINES_CHECKED_FOR_WALLS = 30
"""How many lines at the end of the output are checked if the command exited with 0.

That still finds a failure hidden by a pipe (`pip install … | tail`), but not a message quoted in a long
report.
"""
WALL_MESSAGE_LINE_CHARS = 500

WallCondition = Literal["always", "no network", "listed hosts", "confined", "no terminal"]
"""The condition under which a message indicates a sandbox restriction."""


@dataclass(frozen=True, slots=True)
class CommandConfinement:
    """How the command that produced an output was confined."""

    confined: bool
    network: Literal["off", "listed", "on"]
    terminal: bool
    is_private: Callable[[str], bool] = lambda _: False
    """Whether a path named in a message exists and is hidden from commands."""

    def meets_condition(self, condition: WallCondition) -> bool:
        """Whether a restriction's condition is met here."""
        return {
            "always": True,
            "no network": self.confined and self.network == "off",
            "listed hosts": self.confined and self.network == "listed",
            "confined": self.confined,
            "no terminal": not self.terminal,
        }[condition]


@dataclass(frozen=True, slots=True)
class CommandWall:
    """One sandbox restriction: messages of programs that run into it, and the sentence for the model."""

    name: str
    met_by: str
    """Programs whose messages the patterns recognize, for the reference page."""
    sentence: str
    """The sentence for the model; `{what}` is replaced with the host, path or program in the message."""
    patterns: tuple[str, ...]
    """Regexes for a line of output; the optional group `what` is the host, path or program it names."""
    condition: WallCondition = "confined"
    unnamed: str = ""
    """The replacement for `{what}` if the message names nothing."""
    private: bool = False
    """Whether the restriction applies only if `what` is a private path."""

    def note(self, line: str, confinement: CommandConfinement) -> str:
        """Return the sentence if a line of output indicates this restriction; otherwise empty."""
        for pattern in self.patterns:
            found = re.match(pattern, line)
            if found is None:
                continue
            what = (found.groupdict().get("what") or "").strip("'\"`‘’").rstrip(":,")
            if self.private and not (what and confinement.is_private(what)):
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
        "Docker is not available: its daemon would bypass the sandbox. Run the service itself with "
        "background=true, or ask the user.",
        (
            r".*Cannot connect to the Docker daemon",
            r".*permission denied while trying to connect to the (?:Docker|docker)",
            rf"{_SHELL}(?:docker|docker-compose|podman): (?:command )?not found",
        ),
    ),
    CommandWall(
        "no sudo",
        "sudo, su",
        "sudo is not available. Install into the workspace or `$HOME`, or ask the user.",
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
        "System packages can't be installed from a command. Install into the workspace or `$HOME`, with a "
        "virtual environment, npm or another installer, or ask the user.",
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
        'Commands have no network unless they list hosts. Send `hosts=["{what}"]` with every host needed.',
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
        "Listed hosts can only be reached by HTTP(S) or SOCKS through `$https_proxy`, and this program did not "
        "use it for {what}.",
        _UNRESOLVED,
        condition="listed hosts",
        unnamed="its host",
    ),
    CommandWall(
        "unknown certificate authority",
        "curl, git, pip, uv, npm, node, python, cargo, go",
        "The server's certificate is not trusted here. If a company's proxy signs it, ask the user to set "
        "`SSL_CERT_FILE` (and `NODE_EXTRA_CA_CERTS` for Node.js) and to restart handtools.",
        (
            r".*CERTIFICATE_VERIFY_FAILED",
            r".*certificate verif(?:y|ication) failed",
            r".*unable to get (?:local )?issuer certificate",
            r".*(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_[A-Z_]*CERT\w*)",
            r".*[Ss]elf[- ]signed certificate",
            r".*certificate signed by unknown authority",
            r".*invalid peer certificate: UnknownIssuer",
        ),
    ),
    CommandWall(
        "no host key or account",
        "git, ssh",
        "The user's keys and passwords are not available here and can't be typed in. Ask the user to do "
        "this step.",
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
        "`{what}` is private: commands can't see its content. Ask the user for what you need from it.",
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
        "Git writes to this worktree's repository, `{what}`, which is not in the workspace. Ask the user "
        "to open both folders as one workspace (`handtools mcp WORKTREE REPOSITORY`).",
        (r".*(?:Unable|unable) to create '(?P<what>[^']+)/\.git/[^']*\.lock': Read-only file system",),
    ),
    CommandWall(
        "read-only",
        "touch, mkdir, bash, python, node, pip",
        "`{what}` is read-only: a command may write to the workspace, `$HOME` and `/tmp`.",
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
        "Without root, the kernel copies a file from before this command instead of hard-linking it. "
        'Name the repository as a URL (`"file://$(realpath PATH)"`), so that git copies.',
        (r"fatal: hardlink different from source",),
    ),
    CommandWall(
        "no space",
        "dd, tar, pip, npm, git",
        "The file system it wrote to is full: `$HOME` and `/tmp` are small. Delete files you don't need, "
        "or write to the workspace.",
        (
            r".*No space left on device",
            r".*ENOSPC: no space left on device",
            r".*Disk quota exceeded",
        ),
    ),
    CommandWall(
        "too many processes",
        "bash, python, node, go",
        "It started more processes or threads than a command may have. Use fewer workers (`-j 2`).",
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
        "It ran out of the memory a command may use. Process less at once, or use fewer workers (`-j 2`).",
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
        "It opened more files at once than a process may. Work on fewer at a time.",
        (r".*[Tt]oo many open files", r".*EMFILE"),
    ),
    CommandWall(
        "no services",
        "systemctl, service",
        "There is no service manager. Start the server itself with background=true.",
        (
            r"System has not been booted with systemd",
            r"Failed to connect to bus",
            rf"{_SHELL}(?:systemctl|service): (?:command )?not found",
        ),
    ),
    CommandWall(
        "no terminal",
        "python, tmux, vim, docker, git, getpass",
        "It needs a terminal. Pass its input by flags or a file, or start it with background=true and "
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
        "`{what}` is not on this command's PATH. Try another name (`command -v`) or the project's own copy "
        "(`.venv/bin`, `node_modules/.bin`), install it into the workspace, or ask the user.",
        (
            rf"{_SHELL}(?P<what>[\w.+-]+): (?:command )?not found$",
            r"(?:/usr/bin/)?env: ['‘](?P<what>[^'’]+)['’]: No such file or directory",
            r"make(?:\[\d+\])?: (?P<what>[\w.+-]+): No such file or directory",
        ),
        condition="always",
    ),
)
"""Restrictions recognized by program output, most specific first.

Restrictions that the proxy, the overlay or the supervisor enforces are not here: they report them themselves.
"""


def wall_notes(output: str, *, failed: bool, confinement: CommandConfinement) -> tuple[str, ...]:
    """Return a sentence for each restriction that the output shows, most specific first, at most two."""
    lines = output.rstrip().splitlines()
    if not failed:
        lines = lines[-SUCCESS_LINES_CHECKED_FOR_WALLS:]
    found = dict.fromkeys(_walls_of([line for line in lines if not _is_quoted(line)], confinement))
    return tuple(found)[:MAX_WALLS]


def _is_quoted(line: str) -> bool:
    """Whether a line was quoted from a file, as `grep -n` does, and so is not a message of this command."""
    return _QUOTED_LINE.match(line) is not None


def _walls_of(lines: Sequence[str], confinement: CommandConfinement) -> Iterator[str]:
    for wall in WALLS:
        if not confinement.meets_condition(wall.condition):
            continue
        # Search from the end: the command gave up because of the last host or path that it names.
        notes = (wall.note(line[:WALL_MESSAGE_LINE_CHARS].strip(), confinement) for line in reversed(lines))
        if note := next(filter(None, notes), ""):
            yield note
