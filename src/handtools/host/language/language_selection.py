"""Language servers for a workspace, or a port that says why there are none."""

# ruff: noqa: ARG002 — whatever is asked, the answer is the same

import os
from collections.abc import Sequence
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


class NoLanguage:
    """Says why, and does nothing."""

    def __init__(self, reason: str = "There are no language servers in this workspace.") -> None:
        self._reason = reason

    def speaks(self, path: str) -> bool:
        """Never."""
        return False

    def missing(self, path: str) -> str:
        """Always the same."""
        return self._reason

    def warm(self, path: str, *, private: Sequence[str]) -> None:
        """Nothing to warm."""

    async def review(
        self,
        changes: ChangeSet,
        *,
        private: Sequence[str],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """Nothing to say."""
        return DiagnosticReview()

    async def ask(self, question: LanguageQuestion, *, private: Sequence[str]) -> LanguageAnswer:
        """Refused."""
        raise Unavailable(self._reason, hint=NO_SERVER_HINT)

    def speakers(self) -> list[KnownServer]:
        """None."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""


SWITCH_VARIABLE = "HANDTOOLS_LANGUAGE"
"""In the environment: `off` for no language servers."""


def choose_language(root: str | Path | None, state: Path, commands: HostCommands) -> HostLanguage:
    """Servers of this machine for a folder of it, confined as commands are."""
    if root is None:
        return NoLanguage()
    if os.environ.get(SWITCH_VARIABLE, "").lower() in {"off", "0", "no"}:
        return NoLanguage(f"Language servers are switched off ({SWITCH_VARIABLE}).")
    from handtools.host.language.local_language import LocalLanguage

    return LocalLanguage(
        root, cache=state / "language", runner=partial(host_program_runner, commands, root)
    )


def host_program_runner(commands: HostCommands, root: str | Path) -> Runner:
    """What confines servers and formatters: this machine's programs, for which an image's runner is not."""
    from handtools.host.sandbox.runners.runner_selection import choose_runner

    if isinstance(commands, LocalCommands) and not isinstance(commands.runner, PersistentRunner):
        return commands.runner
    return choose_runner(root=root).runner
