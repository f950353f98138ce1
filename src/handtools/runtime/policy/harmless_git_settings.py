"""Table of git settings that a command may change without approval.

A setting is listed only if git does not run or trust anything because of it, and if it does not control where
data goes, what is deleted, or what the user's own commands do (an alias, `push`, `fetch`).
Git has hundreds of settings and adds more in each version, so this is an allowlist with the permitted
values; any other key needs approval. Unchanged keys are not checked. Removing a key that needs approval
needs approval, too, because the key may be there for protection.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from handtools.text.git_config import GitConfig, GitConfigKey

LocalPathTest = Callable[[str, str], bool]
"""Whether the path in a value, as git resolves it for a key, is in the workspace."""
BranchTest = Callable[[str], bool]
ValueTest = Callable[[str], bool]
MAX_SHOWN_VALUE_CHARS = 60

_FLAG = re.compile(r"(?i:true|false|yes|no|on|off|0|1|)")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_NUMBER = re.compile(r"-?[0-9]{1,9}[kmgKMG]?")
_BRANCH = re.compile(r"(?:refs/)?[\w][\w./@+=#-]*")
_FETCHED_BRANCHES = re.compile(
    r"[+]?refs/heads/(?P<name>[\w./@+=#*-]+)(?::(?P<target>refs/[\w./@+=#*-]+))?|\^refs/[\w./@+=#*-]+"
)
_REMOTE_URL = re.compile(r"(?:https?|ssh|git)://(?!-)[\w.@:%~\[\]-]+(?:/(?!-)[^\s\\]*)?")
_SCP_LIKE_URL = re.compile(r"(?:[\w.-]+@)?(?!-)[\w-]+(?:\.[\w-]+)+:(?![-:])[^\s:\\]+")


def _is_flag(value: str) -> bool:
    return bool(_FLAG.fullmatch(value))


def _is_plain_value(value: str) -> bool:
    """Whether a value is a word, a number or a flag."""
    return any(form.fullmatch(value) for form in (_FLAG, _WORD, _NUMBER))


def _is_printable_line(value: str) -> bool:
    """Whether a value is one line that git only stores or shows."""
    return value.isprintable()


def _is_branch_name(value: str) -> bool:
    return bool(_BRANCH.fullmatch(value)) and ".." not in value


def _submodule_update(value: str) -> bool:
    return value in {"checkout", "rebase", "merge", "none"}


PLAIN_KEYS: dict[str, ValueTest] = {
    **dict.fromkeys(("user.name", "user.email", "author.name", "author.email"), _is_printable_line),
    **dict.fromkeys(("committer.name", "committer.email", "user.useconfigonly"), _is_printable_line),
    **dict.fromkeys(
        (
            "core.filemode", "core.bare", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
            "core.logallrefupdates", "core.repositoryformatversion", "core.quotepath", "core.sparsecheckout",
            "core.sparsecheckoutcone", "core.untrackedcache", "core.splitindex", "core.preloadindex",
            "core.commitgraph", "core.multipackindex", "core.abbrev", "core.autocrlf", "core.eol", "core.safecrlf",
            "core.checkstat", "core.trustctime", "core.compression", "core.loosecompression",
        ),
        _is_plain_value,
    ),
    "init.defaultbranch": _is_branch_name,
    **dict.fromkeys(
        (
            "branch.*.rebase", "branch.autosetupmerge", "branch.autosetuprebase", "branch.sort", "tag.sort",
            "pull.rebase", "pull.ff", "push.autosetupremote", "fetch.parallel", "merge.ff", "merge.conflictstyle",
            "merge.log", "merge.renames", "merge.renamelimit", "merge.stat", "merge.autostash", "rebase.autostash",
            "rebase.autosquash", "rebase.stat", "rebase.backend", "commit.verbose", "commit.cleanup",
            "commit.status",
            "diff.algorithm", "diff.renames", "diff.renamelimit", "diff.context", "diff.colormoved",
            "diff.mnemonicprefix", "diff.noprefix", "diff.submodule", "diff.ignoresubmodules", "status.short",
            "status.branch", "status.showuntrackedfiles", "status.relativepaths", "status.submodulesummary",
            "log.date", "log.decorate", "log.follow", "log.abbrevcommit", "rerere.enabled", "rerere.autoupdate",
            "stash.showpatch", "stash.showstat", "gc.auto", "gc.autodetach", "gc.autopacklimit", "index.version",
            "index.threads", "feature.manyfiles", "submodule.*.ignore", "submodule.*.fetchrecursesubmodules",
            "submodule.*.shallow", "remote.*.tagopt", "remote.*.skipfetchall", "remote.*.skipdefaultupdate",
            "color.ui", "color.branch", "color.diff", "color.status", "color.interactive", "column.ui",
            "extensions.objectformat", "extensions.relativeworktrees",
        ),
        lambda value: _is_plain_value(value.removeprefix("--")),
    ),
    **dict.fromkeys(("submodule.active", "submodule.*.active", "branch.*.description"), _is_printable_line),
    "submodule.*.branch": lambda value: value == "." or _is_branch_name(value),
    "submodule.*.update": _submodule_update,
    "push.default": lambda value: value in {"simple", "current", "nothing"},
    "advice.*": _is_flag,
}  # fmt: skip
"""Keys that need no approval if their value passes the test; `*` stands for any subsection or name."""


def git_config_keys_to_ask(
    before: GitConfig, after: GitConfig, *, local: LocalPathTest, is_new_branch: BranchTest
) -> list[str]:
    """List the added, changed and removed keys that need approval, with their new values.

    `is_new_branch` returns whether a branch did not exist before the command.
    """
    change = _ConfigChange(before, after, local, is_new_branch)
    asked = []
    for key in sorted({*before, *after}):
        if before.get(key) == after.get(key):
            continue
        values = [value if value is not None else "true" for value in after.get(key, ())]
        if not change.lands(key, values):
            asked.append(f"{key} = {_shortened_value(values[-1])}" if values else f"{key} (removed)")
    return asked


def has_plain_value(key: str, value: str) -> bool:
    """Whether the value of a key is neither a program nor a file that git runs or trusts."""
    parts = GitConfigKey.of(key)
    if (parts.section, parts.name) in _ROUTING_KEYS:
        return "::" not in value  # `ext::` is followed by a command
    tests = (PLAIN_KEYS[row] for row in _candidate_rows(key, parts) if row in PLAIN_KEYS)
    return any(test(value) for test in tests)


_ROUTING_KEYS = {
    ("remote", "url"),
    ("remote", "pushurl"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "prune"),
    ("fetch", "prune"),
    ("branch", "remote"),
    ("branch", "pushremote"),
    ("branch", "merge"),
    ("submodule", "url"),
}
"""Section and name of keys that control where data comes from and where it goes."""


@dataclass(frozen=True, slots=True)
class _ConfigChange:
    """A configuration before and after a command."""

    before: GitConfig
    after: GitConfig
    local: LocalPathTest
    is_new_branch: BranchTest

    def lands(self, key: str, values: list[str]) -> bool:
        """Whether a key that was added, changed or removed needs no approval."""
        parts = GitConfigKey.of(key)
        for row in _candidate_rows(key, parts):
            if row in PLAIN_KEYS:
                return all(PLAIN_KEYS[row](value) for value in values)
        if key == "core.worktree":
            return all(self.local(key, value) for value in values)
        if (parts.section, parts.name) not in _ROUTING_KEYS:
            return False
        if not values:
            # Without one of its keys, git falls back to the others, so only a whole section may be removed.
            return parts.subsection is None or not _has_section(self.after, parts)
        return self._routes_as_before(key, parts, values)

    def _routes_as_before(self, key: str, config_key: GitConfigKey, values: list[str]) -> bool:
        """Whether the values don't redirect or delete anything that the user fetches, pushes or keeps."""
        name = config_key.subsection or ""
        is_first = key not in self.before
        match config_key.section, config_key.name:
            case "remote", "url" | "pushurl":
                is_new = not _has_section(self.before, config_key) and (
                    name != "origin" or not _remotes(self.before)
                )
                return is_new and all(_is_plain_place(key, value, self.local) for value in values)
            case "submodule", "url":
                return is_first and all(_is_plain_place(key, value, self.local) for value in values)
            case "remote", "fetch":
                return all(_fetches_under_same_name(value, f"refs/remotes/{name}/") for value in values)
            case (("remote" | "fetch"), "prune"):
                return all(map(_is_flag, values)) and (
                    self._fetches_plainly() or not any(map(_is_on, values))
                )
            case "branch", "remote":
                return is_first and all(self._may_track(name, value) for value in values)
            case "branch", "merge":
                return is_first and all(
                    value.startswith("refs/heads/") and _is_branch_name(value) for value in values
                )
            case _:
                return False

    def _may_track(self, branch: str, remote: str) -> bool:
        """Whether a branch without a remote may get this one: git's default, or any if the branch is new."""
        remotes = _remotes(self.after)
        if remote == ".":
            return True
        if remote not in (_remotes(self.before) or remotes):
            return False
        return remote == "origin" or remotes == {remote} or self.is_new_branch(branch)

    def _fetches_plainly(self) -> bool:
        """Whether everything is fetched to `refs/remotes`, so that pruning deletes no branch or tag."""
        rows = ((GitConfigKey.of(key), values) for key, values in self.after.items())
        fetched = (values for key, values in rows if (key.section, key.name) == ("remote", "fetch"))
        return all(_fetches_into(value or "", "refs/remotes/") for values in fetched for value in values)


def _candidate_rows(key: str, config_key: GitConfigKey) -> Iterator[str]:
    """Yield the rows of the table that can match a key."""
    yield key if config_key.subsection is None else f"{config_key.section}.*.{config_key.name}"
    if config_key.subsection is None:
        yield f"{config_key.section}.*"


def _remotes(config: GitConfig) -> set[str]:
    keys = map(GitConfigKey.of, config)
    return {key.subsection for key in keys if key.section == "remote" and key.subsection is not None}


def _fetches_into(refspec: str, folder: str) -> bool:
    """Whether a fetch refspec writes only refs in a folder."""
    found = _FETCHED_BRANCHES.fullmatch(refspec)
    return found is not None and (found["target"] is None or found["target"].startswith(folder))


def _fetches_under_same_name(refspec: str, folder: str) -> bool:
    """Whether a fetch refspec writes each branch under its own name, so that none can pose as another."""
    found = _FETCHED_BRANCHES.fullmatch(refspec)
    return found is not None and found["target"] in {None, f"{folder}{found['name']}"}


def _is_on(value: str) -> bool:
    return value.lower() not in {"false", "no", "off", "0", ""}


def _has_section(config: GitConfig, config_key: GitConfigKey) -> bool:
    keys = map(GitConfigKey.of, config)
    return any((key.section, key.subsection) == (config_key.section, config_key.subsection) for key in keys)


def _is_plain_place(key: str, value: str, local: LocalPathTest) -> bool:
    """Whether a value is an ordinary URL, the name of a remote, or a folder in the workspace.

    `ext::` and other helpers, options, and URLs with a password are not plain.
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


def _shortened_value(value: str) -> str:
    flat = " ".join(value.split())
    return flat if len(flat) <= MAX_SHOWN_VALUE_CHARS else f"{flat[:MAX_SHOWN_VALUE_CHARS]}…"
