"""Commands judged: a script part by part before it runs, then which of its changes may be applied.

None of this confines a command: it decides who is asked. Links that leave the workspace and new git
repositories are asked about for every tool. ADR 59.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from handtools.core.changes import (
    Change,
    apply_order,
    is_whole_folder,
    links_created,
    parent_folders,
    paths_inside,
    without_whole_folders,
)
from handtools.core.effects import CommandRun
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Decision, Rule
from handtools.text.shell import CommandWords, quote_words

_CONFINED = "The kernel keeps it in the workspace, and off all hosts but those that are listed."


def command_decisions(run: CommandRun, rules: Iterable[Rule], tool: str, usual: Decision) -> list[Decision]:
    """The decisions on a script: those of strict rules, then one for each part."""
    spoken = [rule for rule in rules if rule.speaks("run", tool)]
    general = [rule for rule in spoken if not rule.commands and not rule.paths]
    about = [rule for rule in spoken if rule.commands]
    strict = [*_strict_decisions(run, about), *([] if run.confined else _private_words(run, spoken))]
    if general:
        usual = _decision_of(max(general, key=lambda rule: VERDICT_STRENGTH[rule.verdict]))
    elif run.confined and usual.verdict == "ask" and _could_look_at_all(run, about):
        usual = Decision("allow", "confined", _CONFINED)
    return [*strict, *_part_decisions(run, [rule for rule in about if rule.verdict == "allow"], usual)]


def _could_look_at_all(run: CommandRun, rules: Sequence[Rule]) -> bool:
    """Whether strict rules could look at all of it: padding must not carry a command past them."""
    return run.script.seen or all(rule.verdict == "allow" for rule in rules)


def _strict_decisions(run: CommandRun, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Wherever it stands in the script, as far as it can be seen."""
    for rule in rules:
        if rule.verdict != "allow":
            hits = (words for words in run.script.found if rule.beginnings.match(words))
            yield from (_decision_of(rule, quote_words(words)) for words in hits)


def _private_words(run: CommandRun, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Words that name what no tool may read. In a sandbox it is not there; here it is at least not handed out."""
    closed = [rule for rule in rules if rule.verdict == "deny" and rule.paths and "read" in rule.effects]
    for words in run.script.found if closed else ():
        for word in words[1:]:
            named = word.partition("=")[2] or word
            rule = next((rule for rule in closed if rule.covers(named.removeprefix("./"))), None)
            if rule is not None and not word.isspace() and word:
                yield _decision_of(rule, quote_words(words))


def _part_decisions(run: CommandRun, allowing: Sequence[Rule], usual: Decision) -> Iterator[Decision]:
    script = run.script
    if not script.parts:
        asks = usual.verdict == "ask" and script.opaque
        reason = (
            f"Rules can't speak for a script that is not plain: {script.opaque}" if asks else usual.reason
        )
        yield replace(usual, rule="not plain" if asks else usual.rule, reason=reason, target=script.text)
    for words in script.parts:
        target = quote_words(words)
        meant = [rule for rule in allowing if rule.beginnings.match(words)]
        reasons = {_other_program(run, words) or rule.beginnings.excess(words): rule for rule in meant}
        if "" in reasons and VERDICT_STRENGTH[usual.verdict] < VERDICT_STRENGTH["deny"]:
            yield _decision_of(reasons[""], target)
        elif reasons and usual.verdict == "ask":
            excess, rule = next(iter(reasons.items()))
            yield replace(usual, reason=f"Rule `{rule.name}` does not go so far: {excess}.", target=target)
        else:
            yield replace(usual, target=target)


def _other_program(run: CommandRun, words: CommandWords) -> str:
    """Why a name does not stand for the program that a rule means, or nothing."""
    if words[0] in run.defined:
        return f"`{words[0]}` is a function or an alias of this session"
    if run.steering:
        by = "the caller" if set(run.steering) <= run.command.env.keys() else "this session"
        return f"{by} has set {', '.join(run.steering)}"
    return ""


def _decision_of(rule: Rule, target: str = "") -> Decision:
    return Decision(rule.verdict, rule.name, rule.reason, target)


SYSTEM_PREFIXES = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/")
"""Where links may point although it is outside: only the machine's owner writes there."""
NULL_DEVICE = "/dev/null"
REPOSITORY_PARTS = frozenset({"commondir", "objects", "refs", "config", "packed-refs"})
"""Beside a HEAD, each makes git look for a repository: it needs objects and refs, or to be told where they are."""
REPOSITORY_CONFIG_PARTS = frozenset(
    {"config", "config.worktree", "commondir", "gitdir", "hooks", "info", "worktrees", "modules"}
)
"""In a repository: what says which programs git runs, or leads to what does. Objects and refs are only data."""
_GIT_NAMES = REPOSITORY_PARTS | REPOSITORY_CONFIG_PARTS | {"HEAD"}
MAX_NAMED_PATHS = 5

PathTest = Callable[[str], bool]
"""Whether a path is in the workspace already; whether a target is inside it."""
ForbiddenTest = Callable[[str, bool], bool]
"""Whether a path is off limits; and as what, for a link brings along what is below it."""


@dataclass(frozen=True, slots=True)
class RuledChanges:
    """A delta after the rules."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()
    question: str = ""
    """Why a person must see it first; empty when nobody has to."""


def rule_changes(
    delta: Sequence[Change], *, forbidden: ForbiddenTest, there: PathTest, within: PathTest
) -> RuledChanges:
    """Drop what is off limits, and say what has to be asked about."""
    changes, left_out = without_forbidden(delta, forbidden)
    notes = (
        (f"Off limits, and left as it was: {_few([f'`{path}`' for path in left_out])}.",)
        if left_out
        else ()
    )
    asked = reason_to_ask(changes, there=there, within=within)
    return RuledChanges(tuple(changes), notes, f"The command made {asked}." if asked else "")


def reason_to_ask(changes: Sequence[Change], *, there: PathTest, within: PathTest) -> str:
    """What was made that a person must see first; empty when there is no such thing."""
    links = links_created(changes).items()
    leaving = [
        f"`{path}` -> `{target}`" for path, target in links if link_leaves_workspace(path, target, within)
    ]
    made = [f"`{path}`" for path in repositories_made(changes, there)]
    reasons = [
        (leaving, "links that lead out of the workspace"),
        (made, "what git would take for a repository, and run programs from"),
    ]
    return " and ".join(f"{what} ({_few(names)})" for names, what in reasons if names)


def without_forbidden(delta: Sequence[Change], forbidden: ForbiddenTest) -> tuple[list[Change], list[str]]:
    """The changes that are not off limits, and the paths that are; a folder in which some are comes apart."""
    links = links_created(delta)
    touched_paths = (path for change in delta for path in (change.path, *paths_inside(change)))
    refused = [path for path in touched_paths if forbidden(path, path in links)]
    if not refused:
        return list(delta), []
    kept = []
    for change in delta:
        touched = any(path == change.path or path.startswith(f"{change.path}/") for path in refused)
        kept += without_whole_folders(change) if touched else [change]
    staying = {above for path in refused for above in parent_folders(path)}
    landing = [
        change
        for change in kept
        if not _below(change.path, refused)
        # A folder can't go, or give way to a file, while something stays in it.
        and not (change.path in staying and (change.after is None or change.after.kind != "folder"))
    ]
    return sorted(landing, key=apply_order), refused


def link_leaves_workspace(path: str, target: str, within: PathTest) -> bool:
    """Whether a link at a path points outside, and not to the system; also when text alone can't tell."""
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    # After a name, `..` is above whatever that name stands for: a link may take it anywhere.
    if ".." in parts[up:]:
        return True
    if not target.startswith("/"):
        return up > path.count("/")
    return bool(up) or not (target == NULL_DEVICE or target.startswith(SYSTEM_PREFIXES) or within(target))


def repositories_made(changes: Iterable[Change], there: PathTest) -> list[str]:
    """Folders that become repositories, in whichever shape; and repositories that get other programs to run."""
    made = {
        path
        for change in changes
        if change.after is not None
        for path in (change.path, *(paths_inside(change) if is_whole_folder(change.after) else ()))
    }
    touched: dict[str, set[str]] = {}
    for path in made:
        if _GIT_NAMES.isdisjoint(path.split("/")):
            continue
        for part in (path, *parent_folders(path)):
            above, _, name = part.rpartition("/")
            if name in _GIT_NAMES:
                touched.setdefault(above, set()).add(name)
    return sorted(
        above or "." for above, names in touched.items() if _becomes_repository(above, names, made, there)
    )


def _becomes_repository(folder: str, names: set[str], made: Collection[str], there: PathTest) -> bool:
    prefix = f"{folder}/" if folder else ""
    head = f"{prefix}HEAD"
    if head not in made and not there(head):
        return False
    if names & REPOSITORY_CONFIG_PARTS:
        return True
    was = there(head) and any(there(prefix + name) for name in REPOSITORY_PARTS)
    is_now = names & REPOSITORY_PARTS or any(there(prefix + name) for name in REPOSITORY_PARTS)
    return bool(is_now) and not was


def _below(path: str, refused: Collection[str]) -> bool:
    return path in refused or any(above in refused for above in parent_folders(path))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED_PATHS} more" if len(names) > MAX_NAMED_PATHS else ""
    return ", ".join(names[:MAX_NAMED_PATHS]) + more
