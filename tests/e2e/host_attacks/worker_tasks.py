"""Tasks for workers that try what a reader of files has no business with. Loaded in the worker."""

import socket
from pathlib import Path

from handtools.core.errors import WrongKind
from handtools.host.confined_workers import TaskResult


def fill(arguments, data):
    """Take memory."""
    return TaskResult({"bytes": len(bytearray(arguments["bytes"]))})


def spin(arguments, data):
    """Never end."""
    while True:
        pass


def look(arguments, data):
    """Read a file that is no program."""
    return TaskResult({"text": Path(arguments["path"]).read_text()})


def leave(arguments, data):
    """Make a file."""
    Path(arguments["path"]).write_bytes(data)
    return TaskResult({})


def connect(arguments, data):
    """Reach somebody."""
    with socket.create_connection(("127.0.0.1", arguments["port"]), timeout=5):
        return TaskResult({})


def babble(arguments, data):
    """Give back more than anybody wants."""
    return TaskResult({}, (bytes(arguments["bytes"]),))


def refuse(arguments, data):
    """Say that a file is not for it."""
    raise WrongKind("It is none.", hint="Take another.")


def echo(arguments, data):
    """What a task should do."""
    return TaskResult({"said": arguments["say"]}, (data, data[::-1]))
