"""Policy: rules over effects. Deny beats ask beats allow, and every decision names its rule."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from handtools.core.command import Command
from handtools.core.effects import Effect, EffectKind, Run, targets
from handtools.core.errors import UsageError
from handtools.core.tool import AnyTool
from handtools.runtime.deciding import STRENGTH, Decision, Verdict
from handtools.runtime.judging import Beginnings, judged
from handtools.text.globbing import AnyGlob
from handtools.text.hosts import BadHost, read_hosts

ToolSet = Literal["all", "coding", "read_only", "none"]

DEFAULTS: dict[EffectKind, Verdict] = {"read": "allow", "change": "allow", "run": "ask", "visit": "ask"}


@dataclass(frozen=True)
class Rule:
    """One sentence: these effects on these paths are denied, asked about or allowed, because."""

    name: str
    verdict: Verdict
    reason: str
    effects: frozenset[EffectKind] = frozenset({"read", "change", "run", "visit"})
    paths: tuple[str, ...] = ()
    """Globs, matched without regard to case; none means every path."""
    commands: tuple[str, ...] = ()
    """Beginnings of commands, with alternatives: `git log|diff`, `npm run *`. Then it is about commands only."""
    but: tuple[str, ...] = ()
    """Globs that the rule leaves alone."""
    tools: tuple[str, ...] = ()
    """Names of tools; none means every tool."""
    match: tuple[str, ...] = ()
    """Paths, or scripts, that the rule must hit: checked when the policy is made."""
    not_match: tuple[str, ...] = ()
    """Paths, or scripts, that the rule must leave alone: checked when the policy is made."""

    def hits(self, kind: EffectKind, target: str, tool: str) -> bool:
        """Whether the rule speaks about this."""
        return not self.commands and self.speaks(kind, tool) and self.covers(target)

    def speaks(self, kind: EffectKind, tool: str) -> bool:
        """Whether the rule is about this kind of effect and this tool at all."""
        return kind in self.effects and (not self.tools or tool in self.tools)

    def covers(self, target: str) -> bool:
        """Whether the rule speaks about this path."""
        return (not self.paths or self._paths.matches(target)) and not self._but.matches(target)

    @cached_property
    def beginnings(self) -> Beginnings:
        """The commands that the rule is about; an allowance is read narrowly, everything else widely."""
        return Beginnings(self.commands, narrow=self.verdict == "allow")

    @cached_property
    def _paths(self) -> AnyGlob:
        return AnyGlob(self.paths, case_sensitive=False)

    @cached_property
    def _but(self) -> AnyGlob:
        return AnyGlob(self.but, case_sensitive=False)

    def check(self) -> None:
        """Try the rule on its own examples."""
        if self.commands and (self.paths or self.but):
            raise UsageError(f"Rule `{self.name}` is about paths and about commands: make it two rules.")
        covers = self.beginnings.cover if self.commands else self.covers
        wrong = [example for example in self.match if not covers(example)]
        wrong += [example for example in self.not_match if covers(example)]
        if wrong:
            raise UsageError(f"Rule `{self.name}` does not do what its examples say: {', '.join(wrong)}.")


PRIVATE = Rule(
    name="private",
    verdict="deny",
    reason="It may hold secrets. A person can open it up with a rule in the policy.",
    paths=(
        ".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "id_rsa*", "id_ed25519*", "id_ecdsa*",
        ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".aws/", ".ssh/", ".gnupg/",
    ),
    but=("*.pub", ".env.example", ".env.sample", ".env.template", ".env.dist"),
    match=(".env", "deep/.env.local", "id_rsa", ".ssh/config", ".ENV"),
    not_match=(".env.example", "id_rsa.pub", "src/environment.py"),
)  # fmt: skip

PROTECTED = Rule(
    name="protected",
    verdict="ask",
    reason="Programs run or trust what is in it.",
    effects=frozenset({"change"}),
    paths=(
        ".git", ".git/", ".envrc", ".mcp.json", ".vscode/", ".idea/", ".zed/", ".claude/", ".cursor/", ".codex/",
        ".husky/", ".pre-commit-config.yaml", ".github/workflows/", ".bashrc", ".profile", ".zshrc",
    ),
    match=(".git/config", "sub/.git/hooks/pre-commit", ".envrc", ".github/workflows/ci.yml"),
    not_match=(".gitignore", "src/git/config", ".github/CODEOWNERS"),
)  # fmt: skip


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
    """Hosts that every command may reach: `name`, `*.name`, `name:port`, an address or a network."""
    unattended: Verdict = "ask"
    """What an `ask` becomes when there is nobody to ask; `ask` leaves the call pending."""
    defaults: dict[EffectKind, Verdict] = field(default_factory=lambda: dict(DEFAULTS))

    def __post_init__(self) -> None:
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
        return max(decisions, key=lambda d: STRENGTH[d.verdict], default=self._default(effect.kind))

    def decisions(self, effect: Effect, tool: str) -> list[Decision]:
        """The verdict on each target."""
        if isinstance(effect, Run):
            parts = judged(effect, self._all_rules, tool, self._default("run"))
            return [*self._reached(effect.command), *parts]
        return [self._judge(effect.kind, target, tool) for target in targets(effect)]

    def _reached(self, command: Command) -> Iterator[Decision]:
        """Hosts that are not listed, judged as visits: being allowed to run is not being allowed to go there."""
        wanted = ("every host",) if command.network == "on" else command.hosts
        reason = "It wants to reach what is not on the list of hosts."
        for host in wanted if command.network != "off" else ():
            if host not in self.hosts:
                yield Decision(self.defaults["visit"], "hosts", reason, host)

    def forbids(self, path: str, tool: str) -> bool:
        """Whether a path may not be changed at all."""
        return self._judge("change", path, tool).verdict == "deny"

    def hides(self, path: str) -> bool:
        """Whether listings and searches must leave the path out."""
        return self._judge("read", path, "").verdict == "deny"

    def _judge(self, kind: EffectKind, target: str, tool: str) -> Decision:
        hits = [rule for rule in self._all_rules if rule.hits(kind, target, tool)]
        if not hits:
            return self._default(kind, target)
        rule = max(hits, key=lambda r: STRENGTH[r.verdict])
        return Decision(rule.verdict, rule.name, rule.reason, target)

    def _default(self, kind: EffectKind, target: str = "") -> Decision:
        return Decision(
            self.defaults[kind], f"default for {kind}", "No other rule speaks about it.", target
        )

    @cached_property
    def _all_rules(self) -> Sequence[Rule]:
        if not self.excluded:
            return self.rules
        reason = "It is excluded from this workspace."
        return (*self.rules, Rule("excluded", "deny", reason, paths=self.excluded))

    def with_rules(self, rules: Iterable[Rule]) -> "Policy":
        """This policy and more rules."""
        return replace(self, rules=(*self.rules, *rules))
