"""The gate: judges an effect, asks when a rule says so, and remembers the answer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from handtools.core.approval import Approval, Approver, Reply
from handtools.core.call import Call
from handtools.core.effects import Effect, fingerprint, targets
from handtools.core.errors import Denied, HandtoolsError
from handtools.core.events import Asked, Decided, Event
from handtools.runtime.deciding import Decision
from handtools.runtime.journal import Journal
from handtools.runtime.policy import Policy
from handtools.runtime.preview import NAME_CHARS, preview, title
from handtools.runtime.remembering import remembered
from handtools.text.visible import on_one_line, visible


class Suspended(HandtoolsError):
    """The answer is out: the call ends as pending and is run again when it comes."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(approval.title)
        self.approval = approval


@dataclass(slots=True)
class Gate:
    """One per call: nothing reaches the machine without passing here."""

    call: Call
    policy: Policy
    approver: Approver | None
    journal: Journal
    announce: Callable[[Event], None]
    granted: frozenset[str] = field(default_factory=frozenset)
    """Fingerprints that a person has said yes to for this call."""
    used: set[str] = field(default_factory=set)
    """Those of them that were what the call came to: a yes to anything else is void."""

    def judge(self, effect: Effect) -> Decision:
        """Decide; raise when the answer is no. `ask` comes back as it is: only `admit` can wait for a person."""
        decision = self.policy.decide(effect, self.call.tool)
        if decision.verdict != "allow" or effect.kind != "read":
            self.announce(Decided(self.call.id, decision.verdict, decision.rule, targets(effect)))
        if decision.verdict == "deny":
            raise Denied(f"`{decision.target}` is off limits ({decision.rule}).", hint=decision.reason)
        return decision

    async def admit(self, effect: Effect, *, question: str = "") -> None:
        """Return when the effect may happen; raise `Denied` or `Suspended` when not.

        With a `question` a person is asked even about what the rules allow.
        """
        decision = self.judge(effect)
        if decision.verdict == "allow":
            if not question:
                return
            decision = Decision("ask", "review", question, decision.target)
        approval = self.question(effect, decision)
        if approval.fingerprint in self.granted:
            self.used.add(approval.fingerprint)
            return
        if not question and self.remembers(approval):
            return
        reply = await self._ask(approval)
        self.announce(Asked(approval, reply))
        if reply is None:
            raise Suspended(approval)
        settle(self.journal, self.call, approval, reply)

    def remembers(self, approval: Approval) -> bool:
        """Whether a person has said yes to all of this before, and that it is to last."""
        kept = _lines(approval)
        return bool(kept) and all(self.journal.calls.granted(self.call, each) for each in kept)

    async def _ask(self, approval: Approval) -> Reply | None:
        if self.approver is not None:
            return await self.approver(approval)
        if self.policy.unattended == "ask":
            return None
        message = "Nobody is there to ask; the policy answers for them."
        return Reply(self.policy.unattended == "allow", message=message)

    def question(self, effect: Effect, decision: Decision) -> Approval:
        """What a person would be asked."""
        shown, again = preview(effect), not self.granted <= self.used
        wanted = title(effect, self.call.tool)
        return Approval(
            call_id=self.call.id,
            title=f"Asked again, it has changed: {wanted}" if again else wanted,
            preview=shown.text,
            rule=visible(str(decision)),
            fingerprint=fingerprint(effect),
            remembered="\n".join(remembered(effect, self.policy.decisions(effect, self.call.tool))),
            agent=on_one_line(self.call.agent, NAME_CHARS),
            session=on_one_line(self.call.session, NAME_CHARS),
            again=again,
            preview_lines=shown.lines,
            preview_bytes=shown.bytes,
            metadata=self.call.metadata,
        )


def settle(journal: Journal, call: Call, approval: Approval, reply: Reply) -> None:
    """Act on an answer: remember a yes that is to last, raise on a no."""
    if not reply.allow:
        hint = reply.message or "Do something else, or ask what is wanted."
        raise Denied("This was declined.", hint=hint)
    if reply.remember != "once":
        for kept in _lines(approval):
            journal.calls.grant(call, kept, lasts=reply.remember)


def _lines(approval: Approval) -> list[str]:
    """By line feeds alone: a path may hold other characters that end a line for Python."""
    return [line for line in approval.remembered.split("\n") if line]
