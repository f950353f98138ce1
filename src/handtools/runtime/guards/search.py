"""Guarded search: checks the searched folder and removes paths that policy rules hide from results."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from anyio import to_thread

from handtools.core.effects import ReadEffect
from handtools.core.errors import InvalidInput, NotFound, ToolError, WrongKind
from handtools.core.files import FileFacts
from handtools.core.search import (
    FolderTree,
    FoundPaths,
    Hits,
    MatchCounts,
    SearchGaps,
    SearchPatterns,
    SearchScope,
    WantedKind,
)
from handtools.runtime.approval.gate import ApprovalGate
from handtools.runtime.guards.files import OUTPUT_SCHEME, output_not_found, retry_while_links_change
from handtools.runtime.policy import Policy
from handtools.runtime.workspace import Workspace
from handtools.text.search.glob import BadGlob, GlobPrefilter, GlobSet

HIT_CONTEXT_FILE_BYTES = 4 << 20
"""Larger files are not read for context lines."""
HIT_CONTEXT_TOTAL_BYTES = 64 << 20
"""Most bytes read in total for context lines."""
_SIMPLE = re.compile(r"[\w.*?/ -]+")
"""A glob with simple syntax, which all programs interpret in the same way; other globs are matched by our code."""


@dataclass
class GuardedSearch:
    """The search port for one call: checks the root and removes hidden paths from results."""

    workspace: Workspace
    gate: ApprovalGate
    admitted: set[str] = field(default_factory=set)
    """Located roots of this call's searches. They were named in the call and, if needed, approved by the user."""

    async def hits(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> Hits:
        """Search file contents and return up to `most` hits, sorted by path."""
        if scope.root.startswith(OUTPUT_SCHEME):
            kept = await self.workspace.host_search.hits(
                patterns, self._scope_of_output(scope), most=most, admit=_admit_everything
            )
            return replace(
                kept, hits=tuple(hit._replace(path=f"{OUTPUT_SCHEME}{hit.path}") for hit in kept.hits)
            )
        inside, sieve = await self._admit_scope(scope)
        found = await self.workspace.search.hits(patterns, inside, most=most, admit=sieve.admit)
        return replace(found, gaps=sieve.with_withheld_count(found.gaps))

    async def tallies(self, patterns: SearchPatterns, scope: SearchScope, *, most: int) -> MatchCounts:
        """Count matches by file, up to `most` files, sorted by path."""
        if scope.root.startswith(OUTPUT_SCHEME):
            kept = await self.workspace.host_search.tallies(
                patterns, self._scope_of_output(scope), most=most, admit=_admit_everything
            )
            named = (replace(tally, path=f"{OUTPUT_SCHEME}{tally.path}") for tally in kept.tallies)
            return replace(kept, tallies=tuple(named))
        inside, sieve = await self._admit_scope(scope)
        found = await self.workspace.search.tallies(patterns, inside, most=most, admit=sieve.admit)
        return replace(found, gaps=sieve.with_withheld_count(found.gaps))

    async def paths(self, scope: SearchScope, *, wanted: WantedKind, most: int) -> FoundPaths:
        """List matching files or folders, newest first, at most `most`."""
        inside, sieve = await self._admit_scope(scope, folder=True)
        found = await self.workspace.search.paths(inside, wanted=wanted, most=most, admit=sieve.admit)
        return replace(found, gaps=sieve.with_withheld_count(found.gaps))

    async def tree(self, scope: SearchScope, *, depth: int, most: int) -> FolderTree:
        """List a folder and its subfolders, at most `most` entries."""
        inside, sieve = await self._admit_scope(scope, folder=True)
        found = await self.workspace.search.tree(inside, depth=depth, most=most, admit=sieve.admit)
        return replace(found, gaps=sieve.with_withheld_count(found.gaps))

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        """Return the located paths that the project's ignore files exclude."""
        return await self.workspace.search.find_ignored_paths(paths)

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of files with hits, except files that are gone, no longer regular, or very large."""
        return await to_thread.run_sync(self._read_allowed_files, paths)

    def _scope_of_output(self, scope: SearchScope) -> SearchScope:
        """Return the scope for a search in one stored command output."""
        name = scope.root.removeprefix(OUTPUT_SCHEME)
        if name not in self.workspace.output_store.names():
            raise output_not_found(scope.root)
        return replace(scope, root=name, include=(), exclude=(), ignored=True)

    async def _admit_scope(
        self, scope: SearchScope, *, folder: bool = False
    ) -> tuple[SearchScope, "SearchResultFilter"]:
        """Resolve and check the root; return the scope with the resolved root, and the filter for results."""
        _check_globs(scope.include)
        if scope.root in {"", "."}:
            await self.gate.admit(ReadEffect((".",)))
            return self._scope_and_filter(scope, ".")
        near = self.workspace.files.is_fast_to_read
        look = partial(self._path_and_facts, scope.root)
        located, facts = look() if near else await to_thread.run_sync(look)
        await self.gate.admit(ReadEffect((located,)))
        if facts is None:
            hint = "List its parent folder, or search from `.`."
            raise NotFound(f"There is nothing at `{scope.root}`.", hint=hint)
        if folder and facts.kind != "folder":
            raise WrongKind(f"`{scope.root}` is not a folder.", hint="Use the folder that contains it.")
        if facts.kind == "other":
            hint = "Search a file or a folder."
            raise WrongKind(f"`{scope.root}` is a pipe, a socket or a device.", hint=hint)
        return self._scope_and_filter(scope, located)

    def _scope_and_filter(
        self, scope: SearchScope, located: str
    ) -> tuple[SearchScope, "SearchResultFilter"]:
        self.admitted.add(located)
        sieve = self._result_filter()
        return replace(scope, root=located, exclude=(*scope.exclude, *sieve.hiding.globs)), sieve

    def _result_filter(self) -> "SearchResultFilter":
        return SearchResultFilter(self.gate.policy, self.gate.call.tool, self.admitted)

    def _path_and_facts(self, path: str) -> tuple[str, FileFacts | None]:
        def look() -> tuple[str, FileFacts | None]:
            located = self.workspace.files.locate(path or ".")
            return located, self.workspace.files.facts(located)

        return retry_while_links_change(look)

    def _read_allowed_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        allowed = self._result_filter().admit(paths)
        found = {}
        room = HIT_CONTEXT_TOTAL_BYTES
        for path in allowed:
            try:
                if path.startswith(OUTPUT_SCHEME):
                    data = self.workspace.output_store.part(
                        path.removeprefix(OUTPUT_SCHEME), 0, HIT_CONTEXT_FILE_BYTES + 1
                    )
                else:
                    data = self.workspace.files.read(path, size=HIT_CONTEXT_FILE_BYTES + 1)
            except (ToolError, KeyError):
                continue
            room -= len(data)
            if room < 0:
                break
            if len(data) <= HIT_CONTEXT_FILE_BYTES:
                found[path] = data
        return found


class PolicyHiddenPaths:
    """The paths that a policy hides from a tool; computed once per policy."""

    def __init__(self, policy: Policy, tool: str) -> None:
        spoken = [rule for rule in policy.rules if rule.speaks("read", tool) and not rule.commands]
        rules = [rule for rule in spoken if rule.verdict != "allow"]
        certain = [rule for rule in rules if rule.verdict == "deny" and not rule.but]
        hidden = [path for rule in certain for path in rule.paths]
        self.globs = tuple(glob for glob in (*hidden, *policy.excluded) if _SIMPLE.fullmatch(glob))
        """Globs that cover only hidden paths, so the search can skip them."""
        everything = policy.default_verdict("read") != "allow" or any(not rule.paths for rule in rules)
        about = [""] if everything else [glob for rule in rules for glob in rule.paths]
        self.screen = GlobPrefilter([*about, *policy.excluded])

    @classmethod
    def of(cls, policy: Policy, tool: str) -> "PolicyHiddenPaths":
        """Return the cached hidden paths of a policy for a tool."""
        hidden_paths: PolicyHiddenPaths | None = policy.read_once.get(tool)
        if hidden_paths is None:
            hidden_paths = policy.read_once[tool] = cls(policy, tool)
        return hidden_paths


class SearchResultFilter:
    """Filter for search results: removes denied paths, and counts those that need approval as withheld."""

    def __init__(self, policy: Policy, tool: str, admitted: Collection[str]) -> None:
        self._policy = policy
        self._tool = tool
        self._admitted = admitted
        self.hiding = PolicyHiddenPaths.of(policy, tool)
        self._withheld = 0

    def admit(self, paths: Sequence[str]) -> Sequence[str]:
        """Return the paths that may be shown, in the same order."""
        suspects = self.hiding.screen.possible_matches(paths)
        if not suspects:
            return paths
        return [path for path in paths if path not in suspects or self._allows(path)]

    def with_withheld_count(self, gaps: SearchGaps) -> SearchGaps:
        """Add the number of withheld paths to a search's gaps."""
        return replace(gaps, withheld=self._withheld) if self._withheld else gaps

    def _allows(self, path: str) -> bool:
        if path in self._admitted:
            return True
        verdict = self._policy.decide(ReadEffect((path,)), self._tool).verdict
        self._withheld += verdict == "ask"
        return verdict == "allow"


def _admit_everything(paths: Sequence[str]) -> Sequence[str]:
    """Admit all paths, for searches in stored outputs."""
    return paths


def _check_globs(globs: Sequence[str]) -> None:
    if not globs:
        return
    try:
        GlobSet([glob.removeprefix("!") for glob in globs])
    except BadGlob as problem:
        hint = "Use `*`, `**`, `?`, `[abc]` and `{a,b}`."
        raise InvalidInput(f"Invalid glob: {problem}.", hint=hint) from None
