"""Guarded language servers: queries are checked like reads, and hidden files are removed from the results."""

from dataclasses import dataclass, replace

from anyio import to_thread

from handtools.core.effects import ReadEffect
from handtools.core.errors import Denied
from handtools.core.language import DiagnosticReport, DiagnosticReview, LanguageAnswer, LanguageQuestion
from handtools.runtime.approval.gate import ApprovalGate
from handtools.runtime.policy import Policy
from handtools.runtime.workspace import Workspace


@dataclass(slots=True)
class GuardedLanguage:
    """The language server port for one call: checks queries like reads and removes hidden files from results."""

    workspace: Workspace
    gate: ApprovalGate

    def missing_server_sentence(self, path: str) -> str:
        return self.workspace.language.missing_server_sentence(
            self.workspace.files.locate(path) if path else path
        )

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        policy = self.gate.policy
        if question.path:
            located = await to_thread.run_sync(self.workspace.files.locate, question.path)
            await self.gate.admit(ReadEffect((located,)))
            question = replace(question, path=located)
        answer = await self.workspace.language.ask(question, private_globs=policy.hidden_globs)
        closed = [file.path for file in answer.files if policy.hides(file.path)]
        if closed:
            raise Denied(f"This would change {len(closed)} hidden files.", hint="Ask the user.")
        return replace(
            answer,
            places=tuple(place for place in answer.places if not policy.hides(place.path)),
            verdicts=tuple(
                _visible_report(verdict, policy)
                for verdict in answer.verdicts
                if _is_shown(verdict, policy)
            ),
        )


def visible_review(review: DiagnosticReview, policy: Policy) -> DiagnosticReview:
    """Return a diagnostic review without files that policy rules hide."""
    return DiagnosticReview(
        deltas=tuple(each for each in review.deltas if not policy.hides(each.path)),
        elsewhere=tuple(each for each in review.elsewhere if not policy.hides(each.path)),
        verdicts=tuple(
            _visible_report(each, policy) for each in review.verdicts if _is_shown(each, policy)
        ),
    )


def _is_shown(report: DiagnosticReport, policy: Policy) -> bool:
    return not (report.path and policy.hides(report.path))


def _visible_report(report: DiagnosticReport, policy: Policy) -> DiagnosticReport:
    kept = tuple(each for each in report.diagnostics if not policy.hides(each.path))
    return replace(report, diagnostics=kept)
