"""Tool `list`: lists the entries of a folder under its path; several levels are shown as a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.search import FolderListing, FolderTree, SearchScope
from handtools.core.tool import tool
from handtools.text.encoding import without_surrogates
from handtools.text.paths import path_from_printable, path_to_printable
from handtools.text.plurals import inflect_for_number, number_with_noun
from handtools.text.search.hit_rendering import each_path_on_one_line
from handtools.text.token_estimate import count_rows_that_fit

MAX_ENTRIES = 1_000
MAX_LIST_DEPTH = 10
MAX_LIST_RESULT_TOKENS = 12_000
MAX_RESUMED_LIST_ENTRIES = 100_000
LINK_SIGN = "@"
INDENT = "  "
BUILD_FOLDERS = frozenset({
    "node_modules", "bower_components", "__pycache__", ".venv", "venv", "env", ".tox", ".nox", ".eggs",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".next", ".nuxt", ".turbo",
    ".parcel-cache", ".svelte-kit", ".terraform", ".zig-cache", "zig-out", "dist", "build", "target",
    "coverage", "htmlcov", "logs", "tmp", "temp", "cache", ".cache", ".coverage", ".idea",
})  # fmt: skip
"""Names of build and cache folders that are skipped below the listed folder."""


class ListParams(BaseModel):
    """Arguments of the `list` tool."""

    path: str = Field(".", title="Folder to list; empty or `.` is the workspace.")
    depth: Annotated[int, AfterValidator(partial(min, MAX_LIST_DEPTH))] = Field(
        1, ge=1, title="Levels to show; more than 1 gives a tree."
    )
    include_ignored: bool = Field(default=False, title="Include ignored files and build folders.")
    limit: Annotated[int, AfterValidator(partial(min, MAX_ENTRIES))] = Field(
        MAX_ENTRIES, ge=1, title="Maximum number of entries."
    )
    cursor: str | None = Field(None, description="From the last page.")
    max_tokens: SkipJsonSchema[int | None] = Field(None, ge=100, title="Maximum size of the result.")


@dataclass(slots=True)
class ListEntry:
    """One entry; the size of a folder is the number of entries seen in it."""

    path: str
    kind: str
    bytes: int | None
    entries: int | None


class ListDetails(BaseModel):
    """Structured result of the `list` tool: entries, counts and cursor."""

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
    scope = SearchScope(
        root=params.path or ".",
        hidden=True,
        ignored=params.include_ignored,
        skip=frozenset() if params.include_ignored else BUILD_FOLDERS,
    )
    most = MAX_RESUMED_LIST_ENTRIES if params.cursor else params.limit
    tree = await ctx.search.tree(scope, depth=params.depth, most=most)
    found = _entries_after_cursor(tree.every, params.cursor)
    page = found.first(params.limit)
    above = _common_folder(tree.entries.paths)
    rows = each_path_on_one_line(_tree_rows(page, above) if tree.below else _flat_rows(page, above))
    page = page.first(count_rows_that_fit(rows, params.max_tokens or MAX_LIST_RESULT_TOKENS))
    left, cursor = tree.left_out + len(found) - len(page), page.paths[-1:]
    if tree.below:
        order = _indexes_in_tree_order(page.paths)
        page, rows = page.select_indexes(order), [rows[number] for number in order]
    details = _details(params, tree, page, left=left, cursor=cursor)
    head = each_path_on_one_line([above]) if above and page else []
    notes = _notes(details, resumed=bool(params.cursor))
    return Result("\n".join([*head, *rows[: len(page)], *notes]), details)


def _entries_after_cursor(listing: FolderListing, cursor: str | None) -> FolderListing:
    """Return the entries after the cursor's path in listing order, even if that path is gone by now."""
    if not cursor:
        return listing
    last = _path_sort_key(path_from_printable(cursor))
    return listing.select_indexes(
        [number for number, path in enumerate(listing.paths) if _path_sort_key(path) > last]
    )


def _path_sort_key(path: str) -> tuple[int, list[str], bool, str]:
    above, _, name = path.removesuffix("/").rpartition("/")
    return above.count("/") + bool(above), above.split("/"), path[-1] != "/", name


def _common_folder(paths: Sequence[str]) -> str:
    """Return the path of the folder that contains all the entries; empty for the workspace."""
    return paths[0][: paths[0].rfind("/", 0, -1) + 1] if paths else ""


def _flat_rows(listing: FolderListing, above: str) -> Sequence[str]:
    """Format a single folder's entries as one name per line, below the folder's path if one is given."""
    rows = _names_with_link_signs(listing)
    return [f"{INDENT}{row[len(above) :]}" for row in rows] if above else rows


def _names_with_link_signs(listing: FolderListing) -> Sequence[str]:
    if "link" not in listing.kinds:
        return listing.paths
    return [
        path + LINK_SIGN * (kind == "link") for path, kind in zip(listing.paths, listing.kinds, strict=True)
    ]


def _tree_rows(listing: FolderListing, above: str) -> list[str]:
    """Format entries as a tree: names below their folder if that is listed too, otherwise full paths."""
    levels = {above: 0} if above else {}
    rows = []
    for path, row in zip(listing.paths, _names_with_link_signs(listing), strict=True):
        start = path.rfind("/", 0, -1) + 1
        level = levels.get(path[:start], -1) + 1
        if path[-1] == "/":
            levels[path] = level
        rows.append(INDENT * level + row[start:] if level else row)
    return rows


def _indexes_in_tree_order(paths: Sequence[str]) -> Sequence[int]:
    """Return indexes that sort entries so that a folder's content follows it."""
    inside: dict[str, list[int]] = {path: [] for path in paths if path[-1] == "/"}
    top: list[int] = []
    for number, path in enumerate(paths):
        inside.get(path[: path.rfind("/", 0, -1) + 1], top).append(number)
    order: list[int] = []
    waiting = top[::-1]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += reversed(inside.get(paths[number], ()))
    return order


def _details(
    params: ListParams, tree: FolderTree, listing: FolderListing, *, left: int, cursor: Sequence[str]
) -> ListDetails:
    notes = list(tree.gaps.notes)
    if left:
        notes.insert(
            0, f"{number_with_noun(left, 'more entry')} {inflect_for_number(left, 'is')} not shown."
        )
    if tree.unvisited:
        unopened = number_with_noun(tree.unvisited, "folder")
        opened = f"{unopened} {inflect_for_number(tree.unvisited, 'was')} not opened"
        notes.append(f"{opened}: continue, or list the folders you need separately.")
    folders = listing.kinds.count("folder")
    return ListDetails.model_construct(
        path=params.path or ".",
        entries=_entries(listing, tree.below),
        folders=folders,
        files=len(listing) - folders,
        bytes=sum(filter(None, listing.sizes)),
        ignored=tree.ignored,
        cursor=path_to_printable(cursor[0]) if cursor and (left or tree.unvisited) else None,
        complete=not (notes or tree.ignored),
        left_out=notes,
    )


def _entries(folder_listing: FolderListing, listings: Mapping[str, FolderListing]) -> list[ListEntry]:
    plain = "".join(folder_listing.paths).isascii()
    shown = folder_listing.paths if plain else [without_surrogates(path) for path in folder_listing.paths]
    if not listings:
        # In a single folder, its subfolders come first.
        first = folder_listing.kinds.count("folder")
        files = (column[first:] for column in (shown, folder_listing.kinds, folder_listing.sizes))
        folders = [ListEntry(path[:-1], "directory", None, None) for path in shown[:first]]
        return folders + list(map(ListEntry, *files, repeat(None)))
    held = {f"{path}/": len(listing) for path, listing in listings.items()}
    return [
        ListEntry(path[:-1], "directory", None, held.get(real))
        if kind == "folder"
        else ListEntry(path, kind, size, None)
        for path, real, kind, size in zip(
            shown, folder_listing.paths, folder_listing.kinds, folder_listing.sizes, strict=True
        )
    ]


def _notes(details: ListDetails, *, resumed: bool) -> list[str]:
    empty = "The folder is empty." if details.complete else "Nothing is shown."
    nothing = "No entries after this cursor." if resumed else empty
    notes = [] if details.entries else [nothing]
    if details.ignored:
        entries, are = (
            number_with_noun(details.ignored, "ignored entry"),
            inflect_for_number(details.ignored, "is"),
        )
        notes.append(f"{entries} {are} left out; include_ignored shows them.")
    notes += details.left_out
    if details.cursor:
        notes.append(f"Continue with cursor={details.cursor}")
    return [f"({' '.join(notes)})"] if notes else []
