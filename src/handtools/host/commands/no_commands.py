"""No commands: for workspaces that are no folder of a machine. Tools that need commands are not offered there."""

# ruff: noqa: ARG002 — whatever is asked, the answer is the same

from collections.abc import Sequence
from typing import NoReturn

from handtools.core.call import Call
from handtools.core.command import Command, Exit, Inherited, Job, Page, Ran, Settle, Show
from handtools.core.errors import UsageError


class NoCommands:
    """Says why, and does nothing."""

    boundary = "No commands run here."
    confined = True

    def __init__(self, missing: str = "This workspace has no machine to run commands on.") -> None:
        self.missing = missing

    async def run(
        self, command: Command, *, call: Call, show: Show, private: Sequence[str], read_only: Sequence[str]
    ) -> Ran:
        """Never."""
        self._refuse()

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private: Sequence[str],
        read_only: Sequence[str],
        show: Show,
        settle: Settle,
    ) -> Job:
        """Never."""
        self._refuse()

    async def jobs(self, session: str) -> list[Job]:
        """None."""
        return []

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """Never."""
        self._refuse()

    async def page(self, job_id: str, session: str, start: int, size: int) -> Page:
        """Never."""
        self._refuse()

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Never."""
        self._refuse()

    async def kill(self, job_id: str, session: str) -> Job:
        """Never."""
        self._refuse()

    def inherited(self, session: str) -> Inherited:
        """Nothing."""
        return Inherited()

    def settled(self, job_id: str, session: str, end: Exit) -> None:
        """Never."""
        self._refuse()

    def close(self) -> None:
        """Nothing runs."""

    def _refuse(self) -> NoReturn:
        raise UsageError(self.missing)
