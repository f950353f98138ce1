"""Launching: how a server is started: confined like a command, in a workspace that it can only read."""

import os
from collections.abc import Sequence
from pathlib import Path

from handtools.core.command import Allowance
from handtools.host.commands.environment import environment
from handtools.host.commands.launching import Launch, Runner
from handtools.host.commands.runners.standing import owner_of
from handtools.host.language.child import Child
from handtools.host.language.client import Client
from handtools.host.language.finding import Spoken
from handtools.host.language.readable_folders import (
    holds_home,
    interpreter_folders,
    packages,
    program_folders,
)

LASTING_SECONDS = 10 * 365 * 86400.0
"""A server has no time limit: it is ended when idle."""
_LAYERS = ("VIRTUAL_ENV", "CONDA_PREFIX", "GOROOT", "GOPATH", "JAVA_HOME")
"""Where a project's packages may lie outside of it."""
_SYSTEM = ("/usr", "/etc", "/opt", "/bin", "/lib")


def launch(spoken: Spoken, workspace: str, cache: Path, private: Sequence[str]) -> Launch:
    """The launch of a server. It writes its cache and nothing else, and has no network."""
    folder = cache / spoken.server.name
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if (owner := owner_of(workspace)) is not None:
        os.chown(folder, *owner)
    own = {name: value.replace("{cache}", str(folder)) for name, value in spoken.server.environment.items()}
    layers = [os.environ[name] for name in _LAYERS if os.environ.get(name)]
    home = Path(os.environ.get("HOME", "/"))
    outside = [
        *program_folders(spoken.program, workspace),
        *(place for place in os.environ.get("PATH", "").split(os.pathsep) if place),
        *layers,
        *(str(home / each) for each in spoken.server.readable),
        *(
            folder
            for name in (".venv", "venv")
            for folder in interpreter_folders(os.path.join(spoken.root, name, "bin", "python"))
        ),
    ]
    path = os.pathsep.join([os.path.dirname(spoken.program), os.environ.get("PATH", os.defpath)])
    more = {name: os.environ[name] for name in _LAYERS if os.environ.get(name)}
    return Launch(
        argv=(spoken.program, *spoken.server.command[1:]),
        env=environment(
            {**more, "PATH": path, "XDG_CACHE_HOME": str(folder), **own}, frozenset(), terminal=False
        ),
        cwd=spoken.root,
        root=workspace,
        private=tuple(private),
        frozen=True,
        readable=tuple(
            each
            for each in dict.fromkeys(outside)
            if os.path.isdir(each)
            and not each.startswith(_SYSTEM)
            and not holds_home(each)
            and not Path(workspace).is_relative_to(os.path.realpath(each))
        ),
        writable=(str(folder),),
        allowance=Allowance(seconds=LASTING_SECONDS, processes=4096),
    )


async def started(spoken: Spoken, ready: Launch, runner: Runner) -> Client:
    """A server that has been greeted; nothing is left of one that does not answer."""
    child = await Child.start(ready, runner)
    client = Client(spoken.server, spoken.root, child)
    try:
        await client.start(packages(spoken.program), spoken.server.settings)
    except BaseException:
        await client.stop("it did not start")
        raise
    return client
