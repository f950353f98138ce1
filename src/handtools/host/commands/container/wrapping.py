"""Wrapping: a few lines of bash around a command in a container: its limits, and the end of what it leaves."""

import shlex
from collections.abc import Mapping, Sequence

from handtools.host.commands.container.shape import SLIPS, Shape

_OWN = 2
"""Processes that are no command's: the container's first, and this one."""
# Signals that are meant for all must not end this one before its time; the command itself gets them as they were.
# The last word says that everything else was ended: the kernel kills all at once, whoever forks meanwhile.
_RUN = f"""trap : HUP INT QUIT TERM
"$@" 2>&1
code=$?
set -- /proc/[0-9]*
if [ $# -gt {_OWN} ]; then sleep 0.02; set -- /proc/[0-9]*; kill -9 -1; fi
echo "left $(($# - {_OWN}))" >&2
exit $code"""


def standing(shape: Shape, word: str) -> str:
    """Says a word and ends when something is open that should not be.

    The kernel drops a mount when the file below it is replaced outside, as editors do on saving.
    """
    private = [f"[ -r {shlex.quote(path)} ]" for path in (*shape.private_files, *shape.private_folders)]
    sockets = [f"[ -S {shlex.quote(path)} ]" for path in shape.private_files]
    written = [f"[ -w {shlex.quote(path)} ]" for path in shape.read_only]
    tests = " || ".join([*private, *sockets, *written])
    return f"if {tests}; then printf %s {word} >&2; exit 1; fi" if tests else ""


def wrapped(
    argv: Sequence[str],
    slips: Mapping[int, str],
    *,
    checks: str,
    limits: Mapping[str, int],
    terminal: Sequence[int] | None,
) -> list[str]:
    """The command with its wrapper; `slips` are descriptors by the name of their file."""
    lines = [checks, f"ulimit -c {limits.get('RLIMIT_CORE', 0)}"]
    if "RLIMIT_FSIZE" in limits:
        lines.append(f"ulimit -f {limits['RLIMIT_FSIZE'] >> 10}")
    if terminal:
        lines += [f"stty rows {terminal[0]} cols {terminal[1]}", "exec 2>/dev/null"]
    lines += [f"exec {number}<>{SLIPS}/{name}" for number, name in slips.items()]
    return ["bash", "--noprofile", "--norc", "-p", "-c", "\n".join([*lines, _RUN]), "handtools", *argv]
