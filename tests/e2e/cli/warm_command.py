"""The `handtools` command with its imports done: a process that has them is forked for each run.

Imports are nearly all of the time of a command, and the hundreds of runs below this folder import the same. What
follows is the command's own: its process, its words, environment, folder and streams.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    # Not by its name in `os`: where that is hidden from the command, it is still how the command is started.
    from posix import fork
except ImportError:
    fork = None
IMPORTED = (
    *("handtools.cli.main", "handtools.cli.open_workspace", "handtools.cli.results"),
    *("handtools.toolbox", "handtools.configuration"),
    *("anyio._backends._asyncio", "rich.console", "typer._adapters"),
)


class WarmCommand:
    """Runs the command as `subprocess.run` would; ends with the process that made it, or by `close`."""

    def __init__(self):
        self._requests, theirs = socket.socketpair()
        with theirs:
            line = [sys.executable, "-m", "tests.e2e.cli.warm_command", str(theirs.fileno())]
            root = Path(__file__).parents[3]
            self._process = subprocess.Popen(
                line,
                cwd=root,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def run(self, words, folder, environment, stdin, timeout):
        """The exit code and what was written to both streams."""
        with (
            tempfile.TemporaryFile() as request,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            request.write(json.dumps([list(map(str, words)), str(folder), environment]).encode())
            request.seek(0)
            given.write(stdin)
            given.seek(0)
            ours, answers = socket.socketpair()
            with ours:
                with answers:
                    files = [request, given, out, err, answers]
                    socket.send_fds(self._requests, [b"."], [file.fileno() for file in files])
                ours.settimeout(timeout)
                code = int(ours.recv(16))
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def close(self):
        """End the process that is forked."""
        self._requests.close()
        self._process.wait(timeout=60)


def _serve(requests):
    """Fork for every request; comes back in each child, which is then the command."""
    while True:
        message, files, *_ = socket.recv_fds(requests, 1, 5)
        if not message:
            sys.exit()
        if fork() == 0:
            requests.close()
            _answer(*files)
            return
        for file in files:
            os.close(file)
        _forget_the_ended()


def _answer(request, given, out, err, answers):
    """Wait for the command and tell its exit code; comes back in the command."""
    command = fork()
    if command:
        code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        os.write(answers, str(code).encode())
        os._exit(0)
    os.close(answers)
    for number, stream in enumerate((given, out, err)):
        os.dup2(stream, number)
        os.close(stream)
    with open(request, "rb") as file:
        words, folder, environment = json.load(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["handtools", *words]


def _forget_the_ended():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from handtools.cli.entry import main

    main()
