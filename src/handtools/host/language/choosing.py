"""Choosing: language servers for a workspace, or none where a person has switched them off."""

import os
from functools import partial
from pathlib import Path

from handtools.core.language import HostLanguage
from handtools.core.ports import HostCommands
from handtools.host.commands.launching import Keeping, Runner
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.language.no_language import NoLanguage

SWITCH = "HANDTOOLS_LANGUAGE"
"""In the environment: `off` for no language servers."""


def choose_language(root: str | Path | None, state: Path, commands: HostCommands) -> HostLanguage:
    """Servers of this machine for a folder of it, confined as commands are."""
    if root is None:
        return NoLanguage()
    if os.environ.get(SWITCH, "").lower() in {"off", "0", "no"}:
        return NoLanguage(f"Language servers are switched off ({SWITCH}).")
    from handtools.host.language.local_language import LocalLanguage

    return LocalLanguage(root, cache=state / "language", runner=partial(own_runner, commands, root))


def own_runner(commands: HostCommands, root: str | Path) -> Runner:
    """What confines servers and formatters: this machine's programs, for which an image's runner is not."""
    from handtools.host.commands.runners.choosing import choose

    if isinstance(commands, LocalCommands) and not isinstance(commands.runner, Keeping):
        return commands.runner
    return choose(root=root).runner
