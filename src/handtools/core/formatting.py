"""Formatting: what a project's own formatter makes of a file that was just changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Formatted:
    """What came of formatting one file."""

    formatter: str
    data: bytes | None = None
    """The file as it should be; None leaves it as it is."""
    why: str = ""
    """Why it was left, where the model should know."""


class Formatters(Protocol):
    """Formatters as a machine offers them: bytes in, bytes out; they never write."""

    def formats(self, path: str) -> bool:
        """Whether the project has a formatter for a file: from tables and the presence of its settings."""
        ...

    async def format(
        self, path: str, before: bytes | None, after: bytes, *, private: Sequence[str]
    ) -> Formatted | None:
        """Format what a change made of a file, as far as the change goes; None when there is nothing to tell.

        `private` are globs of what a formatter must not see.
        """
        ...


class NoFormatters:
    """Leaves everything as it is."""

    def formats(self, path: str) -> bool:  # noqa: ARG002
        """Never."""
        return False

    async def format(
        self,
        path: str,  # noqa: ARG002
        before: bytes | None,  # noqa: ARG002
        after: bytes,  # noqa: ARG002
        *,
        private: Sequence[str],  # noqa: ARG002
    ) -> Formatted | None:
        """Nothing to tell."""
        return None
