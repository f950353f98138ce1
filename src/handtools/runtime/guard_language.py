"""Guarded language: what a tool holds instead of the machine's language servers."""

from dataclasses import dataclass, replace

from anyio import to_thread

from handtools.core.effects import Read
from handtools.core.errors import Denied
from handtools.core.language import Answer, Question, Review, Verdict
from handtools.runtime.approval import Gate
from handtools.runtime.guard_commands import hidden
from handtools.runtime.policy import Policy
from handtools.runtime.workspace import Workspace


@dataclass(slots=True)
class GuardedLanguage:
    """One per call: a question is a look at its file, and an answer leaves out what rules hide."""

    workspace: Workspace
    gate: Gate

    def missing(self, path: str) -> str:
        """Why nobody can answer about a file; empty when somebody can."""
        return self.workspace.language.missing(self.workspace.files.locate(path) if path else path)

    async def ask(self, question: Question) -> Answer:
        """Ask the server of a file."""
        policy = self.gate.policy
        if question.path:
            located = await to_thread.run_sync(self.workspace.files.locate, question.path)
            await self.gate.admit(Read((located,)))
            question = replace(question, path=located)
        answer = await self.workspace.language.ask(question, private=hidden(policy))
        closed = [file.path for file in answer.files if policy.hides(file.path)]
        if closed:
            raise Denied(f"It would change {len(closed)} files that rules hide.", hint="Ask a person.")
        return replace(
            answer,
            places=tuple(place for place in answer.places if not policy.hides(place.path)),
            verdicts=tuple(
                _visible(verdict, policy) for verdict in answer.verdicts if _open(verdict, policy)
            ),
        )


def visible(review: Review, policy: Policy) -> Review:
    """A review without files that rules hide."""
    return Review(
        deltas=tuple(each for each in review.deltas if not policy.hides(each.path)),
        elsewhere=tuple(each for each in review.elsewhere if not policy.hides(each.path)),
        verdicts=tuple(_visible(each, policy) for each in review.verdicts if _open(each, policy)),
    )


def _open(verdict: Verdict, policy: Policy) -> bool:
    return not (verdict.path and policy.hides(verdict.path))


def _visible(verdict: Verdict, policy: Policy) -> Verdict:
    kept = tuple(each for each in verdict.diagnostics if not policy.hides(each.path))
    return replace(verdict, diagnostics=kept)
