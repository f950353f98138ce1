"""Wrapper programs that run the command in their arguments (`timeout`, `env`), and that inner command."""

import re
from collections.abc import Mapping

from handtools.text.shell.word_unquoting import CommandWords, OpaqueScript

# By wrapper: the options that take a value, and how many other words come before the inner program.
_SEEN_THROUGH: Mapping[str, tuple[frozenset[str], int]] = {
    "timeout": (frozenset({"-k", "-s", "--kill-after", "--signal"}), 1),
    "nohup": (frozenset(), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "--class", "--classdata"}), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "setsid": (frozenset(), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "env": (frozenset(), 0),
    "chrt": (frozenset(), 1),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
}
_ASKING = {"command": frozenset({"-v", "-V"}), "busybox": frozenset({"--list", "--help"})}
"""Options with which wrapper programs run nothing."""
_AS_ANOTHER = frozenset({"sudo", "doas", "su", "pkexec", "runuser", "setpriv", "run0"})
_OTHERS = frozenset({
    "xargs", "parallel", "watch", "flock", "chroot", "unshare", "nsenter", "strace", "ltrace", "gdb", "script",
    "ssh", "entr", "exec", "eval", "source", ".", "trap", "bash", "sh", "dash", "zsh", "ksh", "fish", "time",
    "bwrap", "firejail", "systemd-run", "at", "batch", "expect", "tmux",
    "screen", "rlwrap", "proot", "ld.so", "prlimit",
    "taskset", "numactl", "alias", "hash", "enable", "coproc", "fc", "mapfile", "readarray", "complete", "bind",
})  # fmt: skip
_SAME_TASK = {"send-pack": "push", "http-push": "push", "fetch-pack": "fetch"}
_RUN_FOR_OTHERS = frozenset({"find", "fd", "fdfind", "uv", "uvx", "npx", "bunx", "pnpx", "ld.so"})
SHELL_PROGRAMS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def program_basename(name: str) -> str:
    """Return the name of a program without its folder."""
    return name.rpartition("/")[2]


def as_rule_command(words: CommandWords) -> CommandWords:
    """Normalize a command for rule matching: drop the program's folder, and use one name per git subcommand.

    `git-push` and `git send-pack` become `git push`.
    """
    name, rest = program_basename(words[0]), words[1:]
    if name.startswith("git-"):
        name, rest = "git", (name.removeprefix("git-"), *rest)
    if name == "git":
        rest = tuple(_SAME_TASK.get(word, word) for word in rest)
    return (name, *rest)


def unwrap_command(words: CommandWords) -> CommandWords | None:
    """Return the command inside a wrapper such as `timeout`; None if it is not a wrapper.

    Raises `OpaqueScript` if the inner command can't be determined.
    """
    name = program_basename(words[0])
    if name in _AS_ANOTHER:
        raise OpaqueScript(f"`{name}` runs it as another user")
    if name in _OTHERS:
        raise OpaqueScript(f"`{name}` runs its arguments")
    if name not in _SEEN_THROUGH:
        return None
    valued, skipped = _SEEN_THROUGH[name]
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _ASKING.get(name, frozenset()) or (name == "nohup" and option.startswith("--")):
            return None
        if option == "--":
            break
        if name == "env":
            raise OpaqueScript("`env` changes the environment")
        if option in valued and rest:
            rest.pop(0)
    if name == "env" and rest and _ASSIGNMENT.match(rest[0]):
        raise OpaqueScript("`env` changes the environment")
    return tuple(rest[skipped:]) or None


def inner_commands(words: CommandWords) -> tuple[CommandWords, ...]:
    """Return all commands inside nested wrappers, outermost first; raises `OpaqueScript`."""
    found: list[CommandWords] = []
    inside = unwrap_command(words)
    while inside:
        found.append(inside)
        inside = unwrap_command(inside)
    return tuple(found)


def possible_inner_commands(words: CommandWords) -> list[CommandWords]:
    """Return every tail of a wrapper's words that might be the inner command, for finding dangers."""
    name = program_basename(words[0])
    loader = name.startswith("ld-linux") or name in _RUN_FOR_OTHERS
    if name not in _AS_ANOTHER | _OTHERS and name not in _SEEN_THROUGH and not loader:
        return []
    return [words[place:] for place, word in enumerate(words) if place and _could_begin_command(word)][:16]


def _could_begin_command(word: str) -> bool:
    return bool(word) and not word.startswith("-") and not _ASSIGNMENT.match(word)
