"""Probing: which rule would decide a call, found by running it up to its first effect and no further."""

from dataclasses import dataclass

from handtools.core.call import Call
from handtools.core.effects import Effect
from handtools.core.errors import Denied, HandtoolsError
from handtools.runtime.approval import Gate
from handtools.runtime.deciding import Decision
from handtools.runtime.executor import Executor
from handtools.runtime.guard import GuardedFiles


class Probed(HandtoolsError):
    """Carries the decision out of the tool."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(str(decision))
        self.decision = decision


@dataclass(slots=True)
class ProbingGate(Gate):
    """Lets allowed reads through, and stops at the first thing that would change or ask."""

    def judge(self, effect: Effect) -> Decision:
        """Decide as the real gate does; stop unless it is an allowed read."""
        decision = self.policy.decide(effect, self.call.tool)
        if decision.verdict == "ask" and self.remembers(self.question(effect, decision)):
            reason = f"A person said yes to it, and to remember that. Before: {decision.reason}"
            decision = Decision("allow", "remembered", reason, decision.target)
        if effect.kind != "read" or decision.verdict != "allow":
            raise Probed(decision)
        return decision


async def probe(executor: Executor, call: Call) -> Decision:
    """The decision on a hypothetical call. Nothing is changed, asked or recorded, and nothing is raised."""
    call = executor.workspace.journal.owned(call)
    gate = ProbingGate(call, executor.policy, None, executor.workspace.journal, lambda _: None)
    files = GuardedFiles(call, executor.workspace, gate, lambda _: None)
    try:
        return await executor.rehearse(call, files)
    except Probed as found:
        return found.decision
    except Denied as no:
        return Decision("deny", no.code, str(no))
    except HandtoolsError as failure:
        return Decision("deny", "not a valid call", str(failure))
