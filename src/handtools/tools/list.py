"""List: what a folder holds, as paths or as a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.searching import Entry, Scope, Tree
from handtools.core.tool import tool
from handtools.text.citing import one_line
from handtools.text.counting import agreeing, counted
from handtools.text.encoding import displayed
from handtools.text.fitting import fitting

MAX_ENTRIES = 1_000
MAX_DEPTH = 10
MAX_TOKENS = 12_000
RESUMED_ENTRIES = 100_000
SIGNS = {"folder": "/", "link": "@", "file": "", "other": ""}
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


@dataclass(slots=True)
class ListEntry:
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
    most = RESUMED_ENTRIES if params.cursor else params.limit
    tree = await ctx.search.tree(scope, depth=params.depth, most=most)
    deep = bool(tree.below)
    found = _after([*tree.entries, *chain(*tree.below.values())] if deep else tree.entries, params.cursor)
    page = found[: params.limit]
    rows = one_line(_nested(page) if deep else [entry.path + SIGNS[entry.kind] for entry in page])
    page = page[: fitting(rows, params.max_tokens or MAX_TOKENS)]
    order = _order(page) if deep else range(len(page))
    details = _details(params, tree, page, order, left=tree.left_out + len(found) - len(page))
    return Result("\n".join([*[rows[number] for number in order], *_notes(details)]), details)


def _after(entries: Sequence[Entry], cursor: str | None) -> Sequence[Entry]:
    """The entries after one that may be gone by now: by levels, by folders, folders before files, by name."""
    if not cursor:
        return entries
    last = _place(cursor.removesuffix("/"), folder=cursor.endswith("/"))
    return [entry for entry in entries if _place(entry.path, folder=entry.kind == "folder") > last]


def _place(path: str, *, folder: bool) -> tuple[int, list[str], bool, str]:
    above, _, name = path.rpartition("/")
    return path.count("/"), above.split("/"), not folder, name


def _nested(page: Sequence[Entry]) -> list[str]:
    """One line for each entry: its path, or below a folder of this page its name."""
    levels: dict[str, int] = {}
    rows = []
    for path, kind, _, _ in page:
        above, _, name = path.rpartition("/")
        level = levels.get(above, -1) + 1
        if kind == "folder":
            levels[path] = level
        rows.append("  " * level + (name if level else path) + SIGNS[kind])
    return rows


def _order(page: Sequence[Entry]) -> Sequence[int]:
    """The entries in the order of reading: what a folder holds comes right after it."""
    inside: dict[str, list[int]] = {entry.path: [] for entry in page if entry.kind == "folder"}
    top: list[int] = []
    for number, entry in enumerate(page):
        inside.get(entry.path.rpartition("/")[0], top).append(number)
    order: list[int] = []
    waiting = top[::-1]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += reversed(inside.get(page[number].path, ()))
    return order


def _details(
    params: ListParams, tree: Tree, page: Sequence[Entry], order: Sequence[int], *, left: int
) -> ListDetails:
    notes = list(tree.gaps.notes)
    if left:
        notes.insert(0, f"{counted(left, 'more entry')} {agreeing(left, 'is')} not shown.")
    if tree.unvisited:
        opened = f"{counted(tree.unvisited, 'folder')} {agreeing(tree.unvisited, 'was')} not opened"
        notes.append(f"{opened}: go on, or list by itself what is of interest.")
    last = page[-1] if page and (left or tree.unvisited) else None
    folders = sum([entry.kind == "folder" for entry in page])
    return ListDetails.model_construct(
        path=params.path or ".",
        entries=_entries([page[number] for number in order], tree),
        folders=folders,
        files=len(page) - folders,
        bytes=sum([entry.bytes or 0 for entry in page]),
        ignored=tree.ignored,
        cursor=displayed(f"{last.path}{'/' * (last.kind == 'folder')}") if last else None,
        complete=not (notes or tree.ignored),
        left_out=notes,
    )


def _entries(page: Sequence[Entry], tree: Tree) -> list[ListEntry]:
    plain = "".join([entry.path for entry in page]).isascii()
    entries = []
    for path, kind, size, _ in page:
        shown = path if plain else displayed(path)
        if kind == "folder":
            held = tree.below.get(path)
            entries.append(ListEntry(shown, "directory", None, None if held is None else len(held)))
        else:
            entries.append(ListEntry(shown, kind, size, None))
    return entries


def _notes(details: ListDetails) -> list[str]:
    notes = [] if details.entries else ["The folder is empty."]
    if details.ignored:
        entries, are = counted(details.ignored, "ignored entry"), agreeing(details.ignored, "is")
        notes.append(f"{entries} {are} left out; include_ignored shows them.")
    notes += details.left_out
    if details.cursor:
        notes.append(f"Go on with cursor={details.cursor}")
    return [f"({' '.join(notes)})"] if notes else []
