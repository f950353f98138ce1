"""Choose the language servers for a workspace, or `NoLanguage`, which gives the reason there are none."""

# ruff: noqa: ARG002 — `NoLanguage` ignores its arguments

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from handtools.core.changes import ChangeSet
from handtools.core.commands import HostCommands
from handtools.core.errors import Unavailable
from handtools.core.language import (
    NO_SERVER_HINT,
    DiagnosticReview,
    HostLanguage,
    KnownServer,
    LanguageAnswer,
    LanguageQuestion,
    LateReviewListener,
)
from handtools.host.commands.local_commands import LocalCommands
from handtools.host.sandbox.launch import PersistentRunner, Runner
from handtools.host.workspace_folders import workspace_folders
from handtools.text.search.glob import PathGlobs


class NoLanguage:
    """The language port without servers: supports no file and refuses every question with the reason."""

    def __init__(self, reason: str = "There are no language servers in this workspace.") -> None:
        self._reason = reason

    def speaks(self, path: str) -> bool:
        return False

    def missing_server_sentence(self, path: str) -> str:
        return self._reason

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        """Do nothing: there is no server to start."""

    async def review(
        self,
        changes: ChangeSet,
        *,
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        return DiagnosticReview()

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        raise Unavailable(self._reason, hint=NO_SERVER_HINT)

    def known_servers(self) -> list[KnownServer]:
        return []

    def close(self) -> None:
        """Do nothing: there is no server to stop."""


LANGUAGE_SWITCH_VARIABLE = "HANDTOOLS_LANGUAGE"
"""Environment variable that turns language servers off with the value `off`."""


def choose_language(
    root: str | Path | None, state: Path, commands: HostCommands, *, only: Collection[str] | None = None
) -> HostLanguage:
    """The language servers on this machine for a workspace folder, confined like commands; or `NoLanguage`.

    `only` lists the names of the servers that may run; None allows all.
    """
    if root is None:
        return NoLanguage()
    if os.environ.get(LANGUAGE_SWITCH_VARIABLE, "").lower() in {"off", "0", "no"}:
        return NoLanguage(f"Language servers are turned off ({LANGUAGE_SWITCH_VARIABLE}).")
    if "" not in workspace_folders(root):
        return NoLanguage("Language servers need a workspace with a single folder; this one has several.")
    from handtools.host.language.local_language import LocalLanguage
    from handtools.host.language.servers import LANGUAGE_SERVERS

    chosen = [server for server in LANGUAGE_SERVERS if only is None or server.name in only]
    if not chosen:
        return NoLanguage("Language servers are turned off (`servers` in the configuration).")
    return LocalLanguage(
        root,
        cache=state / "language",
        runner=partial(confined_program_runner, commands, root),
        servers=chosen,
    )


def confined_program_runner(commands: HostCommands, root: str | Path) -> Runner:
    """The runner for language servers and formatters: the commands' runner, unless that is a container."""
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    if isinstance(commands, LocalCommands) and not isinstance(commands.runner, PersistentRunner):
        return commands.runner
    return choose_runner(root=root).runner
