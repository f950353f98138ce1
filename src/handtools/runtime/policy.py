"""Policy: rules over effects. Deny beats ask beats allow, and every decision names its rule."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from handtools.core.changes import ChangeSet
from handtools.core.command import Command
from handtools.core.effects import Effect, EffectKind, Run, targets
from handtools.core.errors import UsageError
from handtools.core.tool import AnyTool
from handtools.core.trees import links_made
from handtools.core.visits import Visit
from handtools.runtime.deciding import STRENGTH, Decision, Verdict
from handtools.runtime.judging import judged
from handtools.runtime.rules import PRIVATE, PROTECTED, Rule, slashless
from handtools.text.hosts import BadHost, Hosts, read_hosts

ToolSet = Literal["all", "coding", "read_only", "none"]

DEFAULTS: dict[EffectKind, Verdict] = {
    "read": "allow", "change": "allow", "run": "ask", "visit": "ask", "deliver": "allow", "delegate": "allow",
}  # fmt: skip
"""The last two are done by what the program around us supplied, to be used."""


@dataclass(frozen=True)
class Policy:
    """What is offered, and what may be done. Values only: several can judge the same tools, one per agent."""

    rules: tuple[Rule, ...] = (PRIVATE, PROTECTED)
    tools: ToolSet = "all"
    allow: tuple[str, ...] | None = None
    """Only these tools, when given."""
    block: tuple[str, ...] = ()
    """Never these tools: applied last."""
    excluded: tuple[str, ...] = ()
    """Globs of paths that no tool sees, beyond the private ones."""
    hosts: tuple[str, ...] = ()
    """Hosts that every command may reach, and that the web tools may visit without a question:
    `name`, `*.name`, `name:port`, an address or a network."""
    unattended: Verdict = "ask"
    """What an `ask` becomes when there is nobody to ask; `ask` leaves the call pending."""
    defaults: dict[EffectKind, Verdict] = field(default_factory=lambda: dict(DEFAULTS))

    def __post_init__(self) -> None:
        object.__setattr__(self, "excluded", slashless(self.excluded))
        for rule in self.rules:
            rule.check()
        try:
            read_hosts(self.hosts)
        except BadHost as error:
            raise UsageError(str(error)) from error

    def offers(self, tool: AnyTool) -> bool:
        """Whether the tool may be listed and called at all."""
        sets = {
            "all": True,
            "coding": "visit" not in tool.effects,
            "read_only": tool.reads_only,
            "none": False,
        }
        named = tool.name in self.allow if self.allow is not None else sets[self.tools]
        return named and tool.name not in self.block

    def decide(self, effect: Effect, tool: str) -> Decision:
        """Judge an effect: the strongest verdict over all its targets."""
        decisions = self.decisions(effect, tool)
        if len(decisions) == 1:
            return decisions[0]
        return max(decisions, key=lambda d: STRENGTH[d.verdict], default=self._default(effect.kind))

    def decisions(self, effect: Effect, tool: str) -> list[Decision]:
        """The verdict on each target."""
        if isinstance(effect, Run):
            parts = judged(effect, self.all_rules, tool, self._default("run"))
            return [*self._reached(effect.command), *parts]
        if isinstance(effect, Visit):
            return [self._visited(effect, tool)]
        links = links_made(effect) if isinstance(effect, ChangeSet) else {}
        return [self._judge(effect.kind, each, tool, link=each in links) for each in targets(effect)]

    def _reached(self, command: Command) -> Iterator[Decision]:
        """Hosts that are not listed, judged as visits: being allowed to run is not being allowed to go there."""
        wanted = ("every host",) if command.network == "on" else command.hosts
        reason = "It wants to reach what is not on the list of hosts."
        for host in wanted if command.network != "off" else ():
            if host not in self.hosts:
                yield Decision(self.defaults["visit"], "hosts", reason, host)

    def _visited(self, visit: Visit, tool: str) -> Decision:
        hits = [rule for rule in self.rules if rule.meets(visit, tool)]
        found = [Decision(rule.verdict, rule.name, rule.reason, visit.place) for rule in hits]
        if self._listed.lists(visit.host, visit.port):
            found.append(Decision("allow", "hosts", "It is on the list of hosts.", visit.place))
        return max(found, key=lambda d: STRENGTH[d.verdict], default=self._default("visit", visit.place))

    def opens(self, host: str, port: int, tool: str) -> bool:
        """Whether a host or an address is listed by itself: then it may be local, and its port unusual."""
        rules = (rule for rule in self.rules if rule.verdict == "allow" and rule.hosts)
        listed = (rule.listed for rule in rules if rule.speaks("visit", tool))
        return any(hosts.lists(host, port) for hosts in (self._listed, *listed))

    def forbids(self, path: str, tool: str, *, link: bool = False) -> bool:
        """Whether a path may not be changed at all, or not be made a link."""
        return self._judge("change", path, tool, link=link).verdict == "deny"

    def hides(self, path: str) -> bool:
        """Whether listings and searches must leave the path out."""
        return self._judge("read", path, "").verdict == "deny"

    def _judge(self, kind: EffectKind, target: str, tool: str, *, link: bool = False) -> Decision:
        said = ((rule.judge(kind, target, tool, link=link), rule) for rule in self.all_rules)
        found = [Decision(verdict, rule.name, rule.reason, target) for verdict, rule in said if verdict]
        return max(found, key=lambda d: STRENGTH[d.verdict]) if found else self._default(kind, target)

    def _default(self, kind: EffectKind, target: str = "") -> Decision:
        return Decision(
            self.defaults.get(kind, DEFAULTS[kind]),
            f"default for {kind}",
            "No other rule speaks about it.",
            target,
        )

    @cached_property
    def _listed(self) -> Hosts:
        return read_hosts(self.hosts)

    @cached_property
    def all_rules(self) -> Sequence[Rule]:
        """The rules, and one for what is excluded."""
        if not self.excluded:
            return self.rules
        reason = "It is excluded from this workspace."
        return (*self.rules, Rule("excluded", "deny", reason, paths=self.excluded))

    @cached_property
    def read_once(self) -> dict[str, Any]:
        """What others have worked out from these values, by the name of a tool: the values never change."""
        return {}

    def with_rules(self, rules: Iterable[Rule]) -> "Policy":
        """This policy and more rules."""
        return replace(self, rules=(*self.rules, *rules))
