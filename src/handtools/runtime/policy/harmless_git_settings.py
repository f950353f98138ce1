"""Table of git's settings that a command may make without a question, because git runs nothing for them.

Git has hundreds of settings, many name programs, and each version brings more. So the rows here are those that
land, each with what its value may be; a key that has no row asks. Keys that are as they were are not judged, and
one that asks asks also when it is taken away: it may have been there for protection. ADR 163.
"""

import re
from collections.abc import Callable, Iterator

from handtools.text.git_config import GitConfig, GitConfigKey

LocalPathTest = Callable[[str, str], bool]
"""Predicate on a key and its value: whether the path, as git reads it for this key, is in the workspace."""
ValueTest = Callable[[str], bool]
MAX_SHOWN_VALUE_CHARS = 60

_FLAG = re.compile(r"(?i:true|false|yes|no|on|off|0|1|)")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_NUMBER = re.compile(r"-?[0-9]{1,9}[kmgKMG]?")
_BRANCH = re.compile(r"(?:refs/)?[\w][\w./@+=#-]*")
_REFSPEC = re.compile(r"[+^]?refs/[\w./@+=#*-]+(?::refs/[\w./@+=#*-]+)?|[+^]?[\w./@+=#-]+")
_REMOTE_URL = re.compile(r"(?:https?|ssh|git)://(?!-)[\w.@:%~\[\]-]+(?:/(?!-)[^\s\\]*)?")
_SCP_LIKE_URL = re.compile(r"(?:[\w.-]+@)?(?!-)[\w-]+(?:\.[\w-]+)+:(?![-:])[^\s:\\]+")
_SAFE_ALIAS = re.compile(
    r"(?:status|log|checkout|switch|branch|commit|add|diff|show|restore|reset|stash)"
    r"(?: (?:-[a-zA-Z]{1,3}"
    r"|--(?:oneline|graph|all|decorate|stat|short|staged|cached|amend|no-edit|hard|soft|branch)))*"
)


def _flag(value: str) -> bool:
    return bool(_FLAG.fullmatch(value))


def _plain(value: str) -> bool:
    """Whether a value is a word, a number or a flag."""
    return any(form.fullmatch(value) for form in (_FLAG, _WORD, _NUMBER))


def _text(value: str) -> bool:
    """Whether a value is one line that git only writes down or shows."""
    return value.isprintable()


def _branch(value: str) -> bool:
    return bool(_BRANCH.fullmatch(value)) and ".." not in value


def _refspec(value: str) -> bool:
    return bool(_REFSPEC.fullmatch(value))


def _safe_alias(value: str) -> bool:
    return bool(_SAFE_ALIAS.fullmatch(value))


def _submodule_update(value: str) -> bool:
    return value in {"checkout", "rebase", "merge", "none"}


PLAIN_KEYS: dict[str, ValueTest] = {
    **dict.fromkeys(("user.name", "user.email", "author.name", "author.email"), _text),
    **dict.fromkeys(("committer.name", "committer.email", "user.useconfigonly"), _text),
    **dict.fromkeys(
        (
            "core.filemode", "core.bare", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
            "core.logallrefupdates", "core.repositoryformatversion", "core.quotepath", "core.sparsecheckout",
            "core.sparsecheckoutcone", "core.untrackedcache", "core.splitindex", "core.preloadindex",
            "core.commitgraph", "core.multipackindex", "core.abbrev", "core.autocrlf", "core.eol", "core.safecrlf",
            "core.checkstat", "core.trustctime", "core.compression", "core.loosecompression",
        ),
        _plain,
    ),
    **dict.fromkeys(("init.defaultbranch", "branch.*.merge"), _branch),
    **dict.fromkeys(
        (
            "branch.*.rebase", "branch.autosetupmerge", "branch.autosetuprebase", "branch.sort", "tag.sort",
            "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags", "fetch.prune",
            "fetch.prunetags", "fetch.parallel", "merge.ff", "merge.conflictstyle", "merge.log", "merge.renames",
            "merge.renamelimit", "merge.stat", "merge.autostash", "rebase.autostash", "rebase.autosquash",
            "rebase.updaterefs", "rebase.stat", "rebase.backend", "commit.verbose", "commit.cleanup",
            "commit.status",
            "diff.algorithm", "diff.renames", "diff.renamelimit", "diff.context", "diff.colormoved",
            "diff.mnemonicprefix", "diff.noprefix", "diff.submodule", "diff.ignoresubmodules", "status.short",
            "status.branch", "status.showuntrackedfiles", "status.relativepaths", "status.submodulesummary",
            "log.date", "log.decorate", "log.follow", "log.abbrevcommit", "rerere.enabled", "rerere.autoupdate",
            "stash.showpatch", "stash.showstat", "gc.auto", "gc.autodetach", "gc.autopacklimit", "index.version",
            "index.threads", "feature.manyfiles", "submodule.recurse", "submodule.*.ignore",
            "submodule.*.fetchrecursesubmodules", "submodule.*.shallow", "remote.*.tagopt", "remote.*.prune",
            "remote.*.prunetags", "remote.*.skipfetchall", "remote.*.skipdefaultupdate",
            "color.ui", "color.branch", "color.diff", "color.status", "color.interactive", "column.ui",
            "extensions.objectformat", "extensions.relativeworktrees",
        ),
        lambda value: _plain(value.removeprefix("--")),
    ),
    **dict.fromkeys(("submodule.active", "submodule.*.active", "branch.*.description"), _text),
    "remote.*.fetch": _refspec,
    "submodule.*.branch": lambda value: value == "." or _branch(value),
    "submodule.*.update": _submodule_update,
    "alias.*": _safe_alias,
    "advice.*": _flag,
}  # fmt: skip
"""Keys that land if the test of their value passes; `*` stands for a subsection or for every name of a section."""


def git_config_keys_to_ask(before: GitConfig, after: GitConfig, *, local: LocalPathTest) -> list[str]:
    """List the keys, with their new values, that a person must see: of those that were added, changed or taken.

    A place of a remote or a branch lands only as it is first set: with another one, pushes go somewhere else.
    """
    asked = []
    for key in sorted({*before, *after}):
        if before.get(key) == after.get(key):
            continue
        values = [value if value is not None else "true" for value in after.get(key, ())]
        if not _lands(key, values, before, after, local):
            asked.append(f"{key} = {_shown(values[-1])}" if values else f"{key} (taken away)")
    return asked


def _lands(key: str, values: list[str], before: GitConfig, after: GitConfig, local: LocalPathTest) -> bool:
    parts = GitConfigKey.of(key)
    if (
        test := next((PLAIN_KEYS[row] for row in _rows(key, parts) if row in PLAIN_KEYS), None)
    ) is not None:
        return all(test(value) for value in values)
    place = (parts.section, parts.subsection is not None, parts.name)
    if place in _PLACES:
        if not values:  # a remote that is gone as a whole; without one place, its others would be used
            return parts.section != "remote" or not _has_section(after, parts)
        known = key in before or (parts.section == "remote" and _has_section(before, parts))
        return not known and all(_is_plain_place(key, value, local) for value in values)
    if key == "core.worktree":
        return all(local(key, value) for value in values)
    return False


_PLACES = {
    ("remote", True, "url"),
    ("remote", True, "pushurl"),
    ("branch", True, "remote"),
    ("branch", True, "pushremote"),
    ("submodule", True, "url"),
}
"""Section, whether it has a subsection, and name of the keys that say where a repository is."""


def _rows(key: str, parts: GitConfigKey) -> Iterator[str]:
    """Yield the rows of the table that can speak for a key."""
    yield key if parts.subsection is None else f"{parts.section}.*.{parts.name}"
    if parts.subsection is None:
        yield f"{parts.section}.*"


def _has_section(config: GitConfig, parts: GitConfigKey) -> bool:
    keys = map(GitConfigKey.of, config)
    return any((key.section, key.subsection) == (parts.section, parts.subsection) for key in keys)


def _is_plain_place(key: str, value: str, local: LocalPathTest) -> bool:
    """Whether a value names a host in a usual way, a remote by its name, or a folder of the workspace.

    `ext::` and other helpers, options, and words with a password in them are not plain.
    """
    if not value.isprintable() or value.startswith("-") or "::" in value:
        return False
    if _REMOTE_URL.fullmatch(value):
        return not re.match(r"\w+://[^/@]*:[^/@]*@", value)
    if _SCP_LIKE_URL.fullmatch(value):
        return True
    if "://" in value:
        return value.startswith("file:///") and local(key, value.removeprefix("file://"))
    if value == "." or _WORD.fullmatch(value):
        return True
    return ":" not in value.partition("/")[0] and local(key, value)


def _shown(value: str) -> str:
    flat = " ".join(value.split())
    return flat if len(flat) <= MAX_SHOWN_VALUE_CHARS else f"{flat[:MAX_SHOWN_VALUE_CHARS]}…"
