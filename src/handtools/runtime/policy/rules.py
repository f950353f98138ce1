"""Policy rules about paths, commands and hosts, their decisions, and the two built-in rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from handtools.core.effects import EFFECT_KINDS, EffectKind
from handtools.core.errors import UsageError
from handtools.core.web import Visit
from handtools.runtime.policy import private_paths, protected_paths
from handtools.text.paths import similar_names
from handtools.text.search.glob import (
    BadGlob,
    GlobsWithoutDescendants,
    PathGlobs,
    brace_alternatives,
    glob_in_folder,
)
from handtools.text.web.host_access import BadHostEntry, HostList, parse_host_list, split_host_port

if TYPE_CHECKING:
    from handtools.text.shell import CommandWords

Verdict = Literal["deny", "ask", "allow"]

REFUSES_UNKNOWN_KEYS = {"extra": "forbid"}
"""Pydantic configuration: reject unknown keys, because a misspelt key would disable a restriction."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
VERDICT_STRENGTH: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


def check_words(where: str, what: str, words: Iterable[object], known: Iterable[str]) -> None:
    """Raise `UsageError` for the first unknown word, suggesting a similar known one."""
    names = sorted(known)
    for word in words:
        if word in names:
            continue
        near = [name for name in names if name == str(word).casefold()] or similar_names(str(word), names)
        meant = f" Did you mean `{near[0]}`?" if near else ""
        raise UsageError(f"{where}: {word!r} is not a {what}.{meant} Known: {', '.join(names)}.")


def text_tuple(where: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return strings as a tuple; raises `UsageError` for a single string, which would be split into letters."""
    texts = () if isinstance(value, str) else tuple(value)
    if isinstance(value, str) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where} must be a list of strings, not {value!r}.")
    return texts


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, the rule that gave it, its reason and the target."""

    verdict: Verdict
    rule: str
    reason: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} by rule `{self.rule}`: {self.reason}"


def strictest_decision(decisions: Iterable[Decision]) -> Decision:
    """Return the first of the strictest decisions."""
    return max(decisions, key=lambda decision: VERDICT_STRENGTH[decision.verdict])


@dataclass(frozen=True)
class CommandPrefixes:
    """Command prefixes of a rule: words, with `|` between alternatives and `*` for any word."""

    written: tuple[str, ...]
    narrow: bool
    """Match strictly, for allow rules: no options before the prefix, no hazardous words after it."""

    def match(self, words: "CommandWords") -> bool:
        """Whether a command starts with one of the prefixes."""
        return any(self._has_prefix(words, each) for each in self._parsed_prefixes)

    def hazard_beyond_prefix(self, words: "CommandWords") -> str:
        """Return the first hazard in a command outside the matched prefix; empty if there is none."""
        from handtools.text.shell.hazards import find_hazards

        lengths = [len(each) for each in self._parsed_prefixes if self._has_prefix(words, each)]
        spoken_for = words[: max(lengths, default=0)]
        left = [hazard for hazard in find_hazards(words) if hazard.word not in spoken_for]
        return str(left[0]) if left else ""

    def cover(self, text: str) -> bool:
        """Whether a script matches: any of its commands or, for allow rules, all of them."""
        from handtools.text.shell import read_script

        script = read_script(text)
        if not self.narrow:
            return any(self.match(words) for words in script.found)
        return bool(script.parts) and all(
            self.match(words) and not self.hazard_beyond_prefix(words) for words in script.parts
        )

    def _has_prefix(self, words: "CommandWords", beginning: Sequence[frozenset[str]]) -> bool:
        if not self.narrow:
            from handtools.text.shell.wrapper_programs import as_rule_command

            return _begins_after_options(as_rule_command(words), beginning)
        return len(words) >= len(beginning) and all(map(_word_matches, words, beginning))

    @cached_property
    def _parsed_prefixes(self) -> tuple[tuple[frozenset[str], ...], ...]:
        read = tuple(tuple(frozenset(word.split("|")) for word in each.split()) for each in self.written)
        if not all(read):
            raise UsageError("A rule has an empty command.")
        return read


def _word_matches(word: str, some: frozenset[str]) -> bool:
    return "*" in some or word in some


def _begins_after_options(words: "CommandWords", beginning: Sequence[frozenset[str]]) -> bool:
    """Whether a command starts with a prefix, skipping options and their values before subcommands."""
    if not beginning:
        return True
    if not words:
        return False
    if _word_matches(words[0], beginning[0]) and _begins_after_options(words[1:], beginning[1:]):
        return True
    if not words[0].startswith(("-", "+")):
        return False
    return any(_begins_after_options(words[taken:], beginning) for taken in (1, 2))


@dataclass(frozen=True)
class Rule:
    """A policy rule: a verdict with a reason for effects on certain paths, commands or hosts."""

    __pydantic_config__: ClassVar = REFUSES_UNKNOWN_KEYS

    name: str
    verdict: Verdict
    reason: str
    effects: frozenset[EffectKind] = EFFECT_KINDS
    paths: tuple[str, ...] = ()
    """Case-insensitive globs; empty means every path. Each also covers all paths below a match.

    Rules that deny reading also cover backup copies: `x~`, `#x#`, `.x.swp`, `x.bak`, `x.old`.
    """
    commands: tuple[str, ...] = ()
    """Command prefixes, such as `git log|diff` or `npm run *`; limits the rule to commands."""
    hosts: tuple[str, ...] = ()
    """Hosts, written as in `Policy.hosts`; limits the rule to visits."""
    but: tuple[str, ...] = ()
    """Globs of paths that are exempt from the rule: see `PathGlobs.exceptions`."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the rule applies to; empty means all."""
    match: tuple[str, ...] = ()
    """Examples that the rule must match; checked when the policy is created."""
    not_match: tuple[str, ...] = ()
    """Examples that the rule must not match; checked when the policy is created."""
    only_tightens: bool = False
    """Whether the default for the kind of effect applies as well, so that the rule can't weaken it.

    True for the built-in rules and for rules that others add to the user's policy.
    """

    def __post_init__(self) -> None:
        where = f"Rule `{self.name}`"
        check_words(where, "verdict", [self.verdict], VERDICTS)
        check_words(where, "kind of effect", self.effects, EFFECT_KINDS)
        if not self.effects:
            raise UsageError(f"{where} has no kind of effect. Known: {', '.join(sorted(EFFECT_KINDS))}.")
        for name in ("paths", "but", "commands", "hosts", "tools", "match", "not_match"):
            object.__setattr__(self, name, text_tuple(f"{where}: `{name}`", getattr(self, name)))
        object.__setattr__(self, "effects", frozenset(self.effects))
        try:
            # Without a trailing slash, globs match files and symlinks, too.
            paths = tuple(each.rstrip("/") or each for each in plain_globs(self.paths))
            object.__setattr__(self, "paths", paths)
            object.__setattr__(self, "but", plain_globs(self.but))
        except BadGlob as problem:
            raise UsageError(f"{where}: invalid glob: {problem}.") from problem

    def judge(self, kind: EffectKind, target: str, tool: str, *, link: bool = False) -> Verdict | None:
        """Return the rule's verdict on a target; None if it does not match.

        A new symlink (`link`) also matches deny and ask rules about paths below it.
        """
        if self.commands or not self.speaks(kind, tool):
            return None
        if self.covers(target):
            return self.verdict
        if not link or self.verdict == "allow" or not self._parent_folder_globs.matches(target):
            return None
        # Approval is enough for hidden paths, because reads through the symlink are judged by the target's path.
        return "ask" if self.hides else self.verdict

    @property
    def hides(self) -> bool:
        """Whether the rule denies reading paths."""
        return self.verdict == "deny" and "read" in self.effects and self.is_about_paths

    @property
    def is_about_paths(self) -> bool:
        """Whether the rule is about paths (all, or certain ones), not about commands or hosts."""
        return not self.commands and not self.hosts

    def speaks(self, kind: EffectKind, tool: str) -> bool:
        """Whether the rule applies to this kind of effect and this tool."""
        if (self.hosts and kind != "visit") or (self.paths and kind in {"delegate", "publish"}):
            return False
        return kind in self.effects and (not self.tools or tool in self.tools)

    def applies_to_visit(self, visit: Visit, tool: str) -> bool:
        """Whether the rule applies to a visit of a host."""
        if self.commands or self.paths or not self.speaks("visit", tool):
            return False
        return not self.hosts or self.host_list.lists(visit.host, visit.port)

    def covers(self, target: str) -> bool:
        return self.path_globs.covers(target)

    @cached_property
    def command_prefixes(self) -> CommandPrefixes:
        """The rule's parsed command prefixes; strict for allow rules."""
        return CommandPrefixes(self.commands, narrow=self.verdict == "allow")

    @cached_property
    def host_list(self) -> HostList:
        """The rule's parsed host list."""
        return parse_host_list(self.hosts)

    @cached_property
    def path_globs(self) -> PathGlobs:
        """The rule's paths, including backup copies if it denies reading."""
        globs = private_paths.with_backup_copy_globs(self.paths) if self.hides else self.paths
        return PathGlobs(globs, self.but)

    @cached_property
    def _parent_folder_globs(self) -> GlobsWithoutDescendants:
        """Globs of the parent folders of the rule's paths; a symlink instead of one could supply these paths."""
        split = [path.split("/") for path in self.paths]
        heads = [
            parts[:depth] for parts in split for depth in range(1, len(parts)) if parts[depth - 1] != "**"
        ]
        return GlobsWithoutDescendants(["/" + "/".join(head) for head in heads], case_sensitive=False)

    def check(self) -> None:
        """Check the rule for errors and against its own examples; raises `UsageError`."""
        if sum(map(bool, (self.commands, self.hosts, self.paths or self.but))) > 1:
            raise UsageError(
                f"Rule `{self.name}` mixes paths, commands or hosts: split it into separate rules."
            )
        try:
            covers = (
                self._is_listed_host
                if self.hosts
                else self.command_prefixes.cover
                if self.commands
                else self.covers
            )
            wrong = [example for example in self.match if not covers(example)]
            wrong += [example for example in self.not_match if covers(example)]
            covers("x")  # raises now if the list is invalid
            self.path_globs.check()
        except BadHostEntry as error:
            raise UsageError(f"Rule `{self.name}`: {error}") from error
        except BadGlob as problem:
            raise UsageError(f"Rule `{self.name}`: invalid glob: {problem}.") from problem
        if wrong:
            raise UsageError(f"Rule `{self.name}` contradicts its examples: {', '.join(wrong)}.")

    def _is_listed_host(self, written: str) -> bool:
        return self.host_list.lists(*split_host_port(written))


def globs_below_folders(globs: Iterable[str]) -> tuple[str, ...]:
    """Return the anchored globs, changed to match in every top-level folder."""
    anchored = (glob for glob in globs if "/" in glob.rstrip("/") and not glob.startswith(("**/", "*/")))
    return tuple(glob_in_folder(glob, "*") for glob in anchored)


def plain_globs(globs: Iterable[str]) -> tuple[str, ...]:
    """Return equivalent globs without braces; raises `BadGlob`."""
    return tuple(
        each
        for glob in globs
        for each in (brace_alternatives(glob) if "{" in glob or "\\" in glob else [glob])
    )


VENDOR_FOLDERS = ("node_modules", "site-packages", "dist-packages", "vendor", ".tox", ".nox", "__pycache__")
"""Folders with third-party files; those with private-looking names (certificates, samples) are not secret."""
BUILD_FOLDERS = ("target",)

PRIVATE_RULE = Rule(
    name="private",
    verdict="deny",
    reason="It may contain secrets. The user can allow it with a rule in the policy.",
    paths=tuple(private_paths.PRIVATE_PATHS),
    but=(*private_paths.PUBLIC_EXAMPLE_FILES, *(f"**/{folder}/**" for folder in VENDOR_FOLDERS)),
    match=(
        ".env", "deep/.env.local", "id_rsa", ".ssh/config", ".ENV", ".kube/config", "a.pub/.env", ".env~",
        ".netrc.bak", ".deploy.pem.swp", "home/.docker/config.json", ".config/gcloud/x.db", "a.tfstate.backup",
    ),
    not_match=(
        ".env.example", "id_rsa.pub", "src/environment.py", "docs/kube.md", "a.pub/.env.example",
        ".docker/Dockerfile", ".cargo/config.toml", "docs/config.json", ".config/settings.toml", "config.old",
        ".venv/lib/python3/site-packages/certifi/cacert.pem", "node_modules/a/.npmrc", "vendor/b/test.key",
    ),
    only_tightens=True,
)  # fmt: skip

PROTECTED_RULE = Rule(
    name="protected",
    verdict="ask",
    reason="Other programs execute or trust this file.",
    effects=frozenset({"change"}),
    paths=tuple(protected_paths.PROTECTED_PATHS),
    # Packages bring such files along. No program looks for them in a dependency's folder.
    but=tuple(f"**/{folder}/**" for folder in (*VENDOR_FOLDERS, *BUILD_FOLDERS)),
    match=(
        ".envrc", ".github/workflows/ci.yml", ".vscode", "mise.toml", ".bash_profile", ".circleci/config.yml",
        ".devcontainer/devcontainer.json", ".gitlab-ci.yml", ".git/config",
    ),
    not_match=(
        ".gitignore", "src/git/config", ".github/CODEOWNERS", "docs/mise.md", "node_modules/a/.travis.yml",
        "vendor/b/.github/workflows/ci.yml", ".venv/lib/python3/site-packages/c/.vscode/tasks.json",
    ),
    only_tightens=True,
)  # fmt: skip

PROTECTED_REPOSITORY_RULE = replace(
    PROTECTED_RULE,
    paths=tuple(protected_paths.REPOSITORY_FOLDERS),
    but=(),
    match=(
        ".git",
        ".git/config",
        "sub/.git/hooks/pre-commit",
        "node_modules/a/.git/config",
        "vendor/b/.hg/hgrc",
    ),
    not_match=(".gitignore", "src/git/config"),
)
"""Repositories are protected in dependencies, too: git runs their hooks wherever it is started."""

PROTECTED_RULES = (PROTECTED_RULE, PROTECTED_REPOSITORY_RULE)
BUILT_IN_RULES = (PRIVATE_RULE, *PROTECTED_RULES)
"""Rules based on names. A file's content can exempt it from these rules, but from no others."""
