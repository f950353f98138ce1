"""Language servers that start nothing: each text has its errors. For testing what comes after a change."""

# ruff: noqa: ARG001, ARG002 — a fake takes what the port gives

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from handtools.core.changes import ChangeSet
from handtools.core.errors import Unavailable
from handtools.core.language import (
    OTHERWISE,
    Answer,
    Asking,
    Diagnostic,
    Late,
    Question,
    Review,
    Speaker,
    Verdict,
)
from handtools.core.reviewing import delta

Check = Callable[[str, str], Sequence[tuple[int, str]]]
"""The lines and messages of the errors in a text, by its path and its body."""
INSTALL = "pip install example-server"


def marked(path: str, body: str) -> list[tuple[int, str]]:
    """An error for each line that says ERROR and what it is."""
    rows = enumerate(body.splitlines(), 1)
    return [(line, row.partition("ERROR ")[2]) for line, row in rows if "ERROR " in row]


@dataclass(slots=True)
class MemoryLanguage:
    """The HostLanguage port over a function from text to errors."""

    check: Check = marked
    suffix: str = ".py"
    unknown: str = ""
    """Why nothing can be proved; empty when everything is."""
    answers: dict[Asking, Answer] = field(default_factory=dict)
    warmed: list[str] = field(default_factory=list)
    private: list[tuple[str, ...]] = field(default_factory=list)
    """The globs that came with each question."""

    def speaks(self, path: str) -> bool:
        """By the suffix."""
        return path.endswith(self.suffix)

    def missing(self, path: str) -> str:
        """Which command would help."""
        return "" if self.speaks(path) else f"No server for `{path}`; install one: `{INSTALL}`."

    def warm(self, path: str, *, private: Sequence[str]) -> None:
        """Noted."""
        self.warmed.append(path)

    async def review(
        self,
        changes: ChangeSet,
        *,
        private: Sequence[str],
        timeout: float,  # noqa: ASYNC109
        late: Late,
    ) -> Review:
        """The errors before and after, told apart."""
        self.private.append(tuple(private))
        spoken = [change for change in changes if self.speaks(change.path) and change.after is not None]
        if self.unknown:
            return Review(
                verdicts=tuple(Verdict(each.path, "memory", "unknown", why=self.unknown) for each in spoken)
            )
        deltas, verdicts = [], []
        for change in spoken:
            before = change.before.data.decode() if change.before else ""
            after = change.after.data.decode() if change.after else ""
            now = self._errors(change.path, after)
            deltas.append(delta(change.path, before, after, self._errors(change.path, before), now))
            verdicts.append(Verdict(change.path, "memory", "fresh", now))
        return Review(deltas=tuple(deltas), verdicts=tuple(verdicts))

    async def ask(self, question: Question, *, private: Sequence[str]) -> Answer:
        """The answer to a kind of question."""
        self.private.append(tuple(private))
        if question.kind not in self.answers:
            raise Unavailable(f"`{question.kind}` has no answer here.", hint=OTHERWISE)
        return self.answers[question.kind]

    def speakers(self) -> list[Speaker]:
        """Itself."""
        return [Speaker("memory", ("python",), "memory", "1", INSTALL)]

    def close(self) -> None:
        """Nothing to let go of."""

    def _errors(self, path: str, body: str) -> tuple[Diagnostic, ...]:
        return tuple(Diagnostic(path, line, 0, message) for line, message in self.check(path, body))
