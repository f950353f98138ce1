"""The `Policy`: rules that allow effects, deny them or require approval; deny beats ask beats allow.

`rules` defines the rule type, `command_rules` and `change_rules` check scripts and their changes,
`private_paths` and `protected_paths` are the built-in tables, and `project_policy` tightens a policy with the
rules in a project's file.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from handtools.core.changes import ChangeSet, links_created
from handtools.core.effects import (
    EFFECT_KINDS,
    CommandRun,
    Effect,
    EffectKind,
    Publication,
    effect_targets,
)
from handtools.core.errors import UsageError
from handtools.core.web import Visit
from handtools.runtime.policy.rules import (
    BUILT_IN_RULES,
    PRIVATE_RULE,
    REFUSES_UNKNOWN_KEYS,
    VERDICTS,
    Decision,
    Rule,
    Verdict,
    check_words,
    globs_below_folders,
    strictest_decision,
    text_tuple,
)
from handtools.text.search.glob import GlobSet, PathGlobs
from handtools.text.web.host_access import (
    BadHostEntry,
    BadPort,
    HostList,
    PortRanges,
    parse_host_list,
    parse_port_ranges,
)

if TYPE_CHECKING:
    from handtools.core.commands import Command
    from handtools.core.tool import AnyTool

ToolSet = Literal["all", "coding", "read_only", "none"]

DEFAULTS: dict[EffectKind, Verdict] = {
    "read": "allow", "change": "allow", "run": "ask", "visit": "ask", "deliver": "allow", "delegate": "allow",
    "publish": "ask",
}  # fmt: skip
"""Verdict for each kind of effect if neither a rule nor the policy's `defaults` gives one.

`deliver` and `delegate` are allowed because the embedding program implements them. Confined commands run without
approval: see `Policy.defaults`.
"""
_MAX_REMEMBERED_PATHS = 10_000


@dataclass(frozen=True)
class Policy:
    """Rules and settings that decide which tools are offered and which effects are allowed. Immutable."""

    __pydantic_config__: ClassVar = REFUSES_UNKNOWN_KEYS

    rules: tuple[Rule, ...] = BUILT_IN_RULES
    tools: ToolSet = "all"
    allow: tuple[str, ...] | None = None
    """Names of the only tools offered; None means no restriction."""
    block: tuple[str, ...] = ()
    """Names of tools that are never offered; overrides `allow`."""
    excluded: tuple[str, ...] = ()
    """Globs of paths hidden from all tools, in addition to private paths."""
    hosts: tuple[str, ...] = ()
    """Hosts that commands and web tools may reach without approval.

    Written as `name`, `*.name`, `name:port`, an IP address or a network.
    """
    ports: tuple[str, ...] = ()
    """Ports of background jobs that may be published to the user without approval: `3000`, `8000-8999`."""
    unattended: Verdict = "ask"
    """Verdict used instead of "ask" if there is no approver; "ask" leaves the call pending."""
    defaults: dict[EffectKind, Verdict] = field(default_factory=dict)
    """Verdicts if no rule matches; kinds that are not listed here use `DEFAULTS`.

    A verdict for `run` given here also applies to confined commands. Otherwise these run without approval,
    unless reading is denied by default, because they could read files that tools may not.
    """

    def __post_init__(self) -> None:
        for name in ("allow", "block", "excluded", "hosts", "ports"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, text_tuple(f"The policy's `{name}`", value))
        object.__setattr__(self, "rules", tuple(self.rules))
        check_words("The policy", "set of tools", [self.tools], get_args(ToolSet))
        check_words("The policy's `unattended`", "verdict", [self.unattended], VERDICTS)
        check_words("The policy's `defaults`", "kind of effect", self.defaults, EFFECT_KINDS)
        check_words("The policy's `defaults`", "verdict", self.defaults.values(), VERDICTS)
        for rule in self.all_rules:
            rule.check()
        try:
            parse_host_list(self.hosts)
            parse_port_ranges(self.ports)
        except (BadHostEntry, BadPort) as error:
            raise UsageError(str(error)) from error

    def offers(self, tool: "AnyTool") -> bool:
        """Whether a tool may be listed and called."""
        sets = {
            "all": True,
            "coding": "visit" not in tool.effects,
            "read_only": tool.reads_only,
            "none": False,
        }
        named = tool.name in self.allow if self.allow is not None else sets[self.tools]
        return named and tool.name not in self.block

    def decide(self, effect: Effect, tool: str) -> Decision:
        """Return the strictest decision on the targets of an effect."""
        return strictest_decision(self.decisions(effect, tool) or [self._default(effect.kind)])

    def decisions(self, effect: Effect, tool: str) -> list[Decision]:
        """Return one decision for each target of an effect."""
        if isinstance(effect, CommandRun):
            from handtools.runtime.policy.command_rules import command_decisions

            # The sandbox can hide globs, but not "everything that no rule allows", so confinement is not enough.
            usual, stated = self._default("run"), "run" in self.defaults or self._hides_by_default
            parts = command_decisions(effect, self.all_rules, tool, usual, stated=stated)
            return [*self._decisions_on_hosts(effect.command), *parts]
        if isinstance(effect, Visit):
            return [self._decision_on_visit(effect, tool)]
        if isinstance(effect, Publication):
            return [self._decision_on_publication(effect, tool)]
        if not isinstance(effect, ChangeSet):
            return [self._judge(effect.kind, each, tool) for each in effect_targets(effect)]
        links = links_created(effect)
        return [
            self._judge(effect.kind, each, tool, link=each in links, exempt=effect.exempt)
            for each in effect_targets(effect)
        ]

    def _decisions_on_hosts(self, command: "Command") -> Iterator[Decision]:
        """Yield decisions on hosts that a command requests but the policy does not list; they count as visits."""
        wanted = ("every host",) if command.network == "on" else command.hosts
        reason = "The host is not in the policy's `hosts`."
        for host in wanted if command.network != "off" else ():
            if host not in self.hosts:
                yield Decision(self.default_verdict("visit"), "hosts", reason, host)

    def _decision_on_visit(self, visit: Visit, tool: str) -> Decision:
        hits = [rule for rule in self.rules if rule.applies_to_visit(visit, tool)]
        found = [Decision(rule.verdict, rule.name, rule.reason, visit.place) for rule in hits]
        listed = self._listed_hosts.lists(visit.host, visit.port)
        if listed:
            found.append(Decision("allow", "hosts", "The host is in the policy's `hosts`.", visit.place))
        decided = listed or not all(rule.only_tightens for rule in hits)
        return self._strictest_with_default(found, "visit", visit.place, decided=decided)

    def _decision_on_publication(self, publication: Publication, tool: str) -> Decision:
        (target,) = effect_targets(publication)
        hits = [rule for rule in self.rules if rule.judge("publish", target, tool)]
        found = [Decision(rule.verdict, rule.name, rule.reason, target) for rule in hits]
        listed = self._listed_ports.contain(publication.where.port)
        if listed:
            found.append(Decision("allow", "ports", "The port is in the policy's `ports`.", target))
        decided = listed or not all(rule.only_tightens for rule in hits)
        return self._strictest_with_default(found, "publish", target, decided=decided)

    def opens(self, host: str, port: int, tool: str) -> bool:
        """Whether a host and port are listed; if so, even local addresses and unusual ports are allowed."""
        rules = (rule for rule in self.rules if rule.verdict == "allow" and rule.hosts)
        listed = (rule.host_list for rule in rules if rule.speaks("visit", tool))
        return any(hosts.lists(host, port) for hosts in (self._listed_hosts, *listed))

    def forbidding(self, path: str, tool: str, *, link: bool = False) -> list[Rule]:
        """List the rules that deny changing a path, or making it a symlink."""
        if not link and self._path_rules and not self._path_rules.matches(path):
            return []
        return [rule for rule in self.all_rules if rule.judge("change", path, tool, link=link) == "deny"]

    def hides(self, path: str) -> bool:
        """Whether rules deny reading a path, so that listings and searches leave it out."""
        return self._judge("read", path, "").verdict == "deny"

    def hides_by_name(self, path: str) -> bool:
        """Whether only the built-in rule hides a path; that rule is based on names alone."""
        known = self._hidden_by_name.get(path)
        if known is None:
            hiding = [rule for rule in self.all_rules if rule.hides and rule.covers(path)]
            known = bool(hiding) and all(rule == PRIVATE_RULE for rule in hiding)
            if len(self._hidden_by_name) >= _MAX_REMEMBERED_PATHS:
                self._hidden_by_name.clear()
            self._hidden_by_name[path] = known
        return known

    def _judge(
        self,
        kind: EffectKind,
        target: str,
        tool: str,
        *,
        link: bool = False,
        exempt: Collection[tuple[str, str]] = (),
    ) -> Decision:
        if (
            not link
            and self._path_rules
            and not self._path_rules.matches(target)
            and kind in {"read", "change"}
        ):
            return self._default(kind, target)
        hits = [
            (rule, Decision(verdict, rule.name, rule.reason, target))
            for rule in self.all_rules
            if (verdict := rule.judge(kind, target, tool, link=link))
            and not ((target, rule.name) in exempt and rule in BUILT_IN_RULES)
        ]
        # A rule about paths below a symlink does not decide about the symlink itself.
        decided = any(not rule.only_tightens and (not link or rule.covers(target)) for rule, _ in hits)
        return self._strictest_with_default(
            [decision for _, decision in hits], kind, target, decided=decided
        )

    def _strictest_with_default(
        self, decisions: list[Decision], kind: EffectKind, target: str, *, decided: bool
    ) -> Decision:
        """Return the strictest of the given decisions; unless `decided`, the default decision counts, too."""
        return strictest_decision(decisions if decided else [*decisions, self._default(kind, target)])

    def default_verdict(self, kind: EffectKind) -> Verdict:
        """Return the verdict on a kind of effect if no rule matches."""
        return self.defaults.get(kind, DEFAULTS[kind])

    @property
    def _hides_by_default(self) -> bool:
        """Whether tools may read only what a rule allows."""
        return self.default_verdict("read") == "deny"

    def _default(self, kind: EffectKind, target: str = "") -> Decision:
        return Decision(
            self.default_verdict(kind),
            f"default for {kind}",
            "No other rule matches.",
            target,
        )

    @cached_property
    def _listed_hosts(self) -> HostList:
        return parse_host_list(self.hosts)

    @cached_property
    def _listed_ports(self) -> PortRanges:
        return parse_port_ranges(self.ports)

    @cached_property
    def all_rules(self) -> Sequence[Rule]:
        """All rules, including one for the excluded paths."""
        if not self.excluded:
            return self.rules
        reason = "The path is excluded from this workspace."
        return (*self.rules, Rule("excluded", "deny", reason, paths=self.excluded))

    @cached_property
    def _path_rules(self) -> GlobSet | None:
        """All globs of path rules, to prefilter many paths; None if a rule applies to every path."""
        rules = [rule for rule in self.all_rules if rule.is_about_paths]
        if not all(rule.paths for rule in rules):
            return None
        return GlobSet([glob for rule in rules for glob in rule.path_globs.globs], case_sensitive=False)

    @cached_property
    def hidden_globs(self) -> tuple[PathGlobs, ...]:
        """The globs of each rule that denies reading; no tool may read these paths."""
        return tuple(rule.path_globs for rule in self.all_rules if rule.hides)

    @cached_property
    def read_only_globs(self) -> tuple[PathGlobs, ...]:
        """The globs of each rule that denies changes to paths or requires approval for them.

        Rules that require approval for every path are left out, because a command that writes to the
        workspace directly was itself approved.
        """
        strict = (rule for rule in self.rules if rule.verdict != "allow" and "change" in rule.effects)
        return tuple(
            rule.path_globs
            for rule in strict
            if rule.paths or (rule.verdict == "deny" and rule.is_about_paths)
        )

    @cached_property
    def _hidden_by_name(self) -> dict[str, bool]:
        """Results of `hides_by_name`: every command asks about the same few paths."""
        return {}

    @cached_property
    def read_once(self) -> dict[str, Any]:
        """Cache of values derived from this policy, by tool name."""
        return {}

    def with_rules(self, rules: Iterable[Rule]) -> "Policy":
        """Return a copy of the policy with more rules."""
        return replace(self, rules=(*self.rules, *rules))

    def in_each_folder(self) -> "Policy":
        """Return the policy with its anchored globs also applied in each top-level folder.

        This is for a workspace with several folders: a glob with a slash is anchored at the top level, which
        contains only these folders. Allow rules are not extended; they apply only to the paths they name.
        """
        more = [
            replace(
                rule, paths=paths, but=(*rule.but, *globs_below_folders(rule.but)), match=(), not_match=()
            )
            for rule in self.rules
            if rule.verdict != "allow" and (paths := globs_below_folders(rule.paths))
        ]
        new = [rule for rule in more if rule not in self.rules]
        excluded = dict.fromkeys((*self.excluded, *globs_below_folders(self.excluded)))
        return replace(self, rules=(*self.rules, *new), excluded=tuple(excluded))
