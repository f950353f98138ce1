"""List: what a folder holds, as paths or as a tree."""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.searching import Branch, Scope, Tree
from handtools.core.tool import tool
from handtools.text.citing import named
from handtools.text.encoding import displayed
from handtools.text.fitting import fitting

MAX_ENTRIES = 1_000
MAX_DEPTH = 10
MAX_TOKENS = 12_000
RESUMED_ENTRIES = 100_000
BUILT = frozenset({
    "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox", ".eggs", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".next", ".nuxt", ".turbo", ".parcel-cache",
    ".svelte-kit", ".terraform", ".zig-cache", "zig-out", "dist", "build", "target", "coverage", "htmlcov", "logs",
    "tmp", "temp", "cache", ".cache", ".idea",
})  # fmt: skip
"""Folders that programs fill; left out below the folder that is listed, never that folder itself."""


class ListParams(BaseModel):
    """What the model sends."""

    path: str = Field(".", description="Folder to list; empty or `.` is the workspace.")
    depth: int = Field(1, ge=1, le=MAX_DEPTH, description="Levels to show; more than 1 gives a tree.")
    include_ignored: bool = Field(default=False, description="Also ignored files and build folders.")
    limit: int = Field(MAX_ENTRIES, ge=1, le=MAX_ENTRIES, description="Entries at the most.")
    cursor: str | None = Field(None, description="Go on after this entry, as the last page says.")
    max_tokens: int | None = Field(None, ge=100, description="Size of the answer.")


class ListEntry(BaseModel):
    """One entry; a folder has a size only as the number of entries seen in it."""

    path: str
    kind: str
    bytes: int | None
    entries: int | None


class ListDetails(BaseModel):
    """What programs get."""

    path: str
    entries: list[ListEntry]
    folders: int
    files: int
    bytes: int
    ignored: int
    cursor: str | None
    complete: bool
    left_out: list[str]


@tool(effects=("read",))
async def list_(ctx: Context, params: ListParams) -> Result[ListDetails]:
    """List a folder."""
    scope = Scope(
        root=params.path or ".",
        hidden=True,
        ignored=params.include_ignored,
        skip=frozenset() if params.include_ignored else BUILT,
    )
    depth = 1 if params.cursor else params.depth
    most = RESUMED_ENTRIES if params.cursor else params.limit
    tree = await ctx.search.tree(scope, depth=depth, most=most)
    branches = _after(tree.branches, params.cursor)[: params.limit]
    rows = list(_rows(branches, 0, tree=depth > 1))
    shown = rows[: fitting([row for row, _ in rows], params.max_tokens or MAX_TOKENS)]
    details = _details(params, tree, shown, hidden=len(rows) - len(shown), top=len(branches))
    text = "\n".join([row for row, _ in shown] + _notes(details, tree))
    return Result(text, details)


def _after(branches: Sequence[Branch], cursor: str | None) -> Sequence[Branch]:
    """The entries after one that may be gone by now: folders come before files, each by name."""
    if not cursor:
        return branches
    last = (not cursor.endswith("/"), cursor.removesuffix("/"))
    return [branch for branch in branches if (branch.entry.kind != "folder", branch.entry.path) > last]


def _rows(branches: Sequence[Branch], level: int, *, tree: bool) -> Iterator[tuple[str, Branch]]:
    """One line for each entry: its path, or in a tree its name below its folder."""
    for branch in branches:
        path, sign = branch.entry.path, {"folder": "/", "link": "@"}.get(branch.entry.kind, "")
        shown = path.rpartition("/")[2] if level else path
        yield f"{'  ' * level}{named(shown)}{sign}", branch
        yield from _rows(branch.branches or (), level + 1, tree=tree)


def _details(
    params: ListParams, tree: Tree, shown: list[tuple[str, Branch]], *, hidden: int, top: int
) -> ListDetails:
    entries = [_entry(branch) for _, branch in shown]
    left = tree.left_out + hidden + max(len(_after(tree.branches, params.cursor)) - top, 0)
    notes = list(tree.gaps.notes)
    if left:
        notes.insert(0, f"{left} more entries are not shown.")
    if tree.unvisited:
        notes.append(f"{tree.unvisited} folders were not opened: list them by themselves.")
    last = shown[-1][1].entry if shown and left and params.depth == 1 else None
    return ListDetails(
        path=params.path or ".",
        entries=entries,
        folders=sum(entry.kind == "directory" for entry in entries),
        files=sum(entry.kind != "directory" for entry in entries),
        bytes=sum(entry.bytes or 0 for entry in entries),
        ignored=tree.ignored,
        cursor=displayed(f"{last.path}{'/' * (last.kind == 'folder')}") if last else None,
        complete=not (notes or tree.ignored),
        left_out=notes,
    )


def _entry(branch: Branch) -> ListEntry:
    entry = branch.entry
    count = None if branch.branches is None else len(branch.branches)
    kind = "directory" if entry.kind == "folder" else entry.kind
    return ListEntry(path=displayed(entry.path), kind=kind, bytes=entry.bytes, entries=count)


def _notes(details: ListDetails, tree: Tree) -> list[str]:
    notes = [] if details.entries else ["The folder is empty."]
    if tree.ignored:
        notes.append(f"{tree.ignored} ignored entries are left out; include_ignored shows them.")
    notes += details.left_out
    if details.cursor:
        notes.append(f"Go on with cursor={details.cursor}")
    return [f"({' '.join(notes)})"] if notes else []
