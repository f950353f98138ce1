"""No language: for workspaces that are no folder of a machine, and for who wants none."""

# ruff: noqa: ARG002 — whatever is asked, the answer is the same

from collections.abc import Sequence

from handtools.core.changes import ChangeSet
from handtools.core.errors import Unavailable
from handtools.core.language import OTHERWISE, Answer, Late, Question, Review, Speaker


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
        late: Late,
    ) -> Review:
        """Nothing to say."""
        return Review()

    async def ask(self, question: Question, *, private: Sequence[str]) -> Answer:
        """Refused."""
        raise Unavailable(self._reason, hint=OTHERWISE)

    def speakers(self) -> list[Speaker]:
        """None."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
