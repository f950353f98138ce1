"""The files that a call changed, as one sentence: grouped by folder, with derived files only counted."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from handtools.text.git_config import enclosing_git_folder
from handtools.text.paths import folders_above

MAX_CHANGED_FILE_ROWS = 8
"""Maximum number of files and folders that are named, not counting derived files."""
MAX_NAMES_PER_FOLDER = 5
"""If a folder has more changed files than this, they are counted instead of named."""
EXAMPLES_PER_COUNTED_FOLDER = 2
"""How many files are named as examples if a folder's files are counted."""
MAX_DERIVED_FOLDERS = 3

DERIVED_FOLDERS = frozenset({
    ".git", ".hg", ".jj", ".svn",
    "node_modules", "bower_components", "site-packages", "dist-packages", "__pycache__", ".venv", "venv", ".tox",
    ".nox", ".eggs", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", ".cache",
    ".npm", ".yarn", ".pnpm-store", ".next", ".nuxt", ".turbo", ".parcel-cache", ".svelte-kit", ".gradle",
    ".terraform",
})  # fmt: skip
"""Names of folders that tools generate, whether or not the project's ignore files list them."""
_DERIVED_ENDINGS = (".egg-info", ".dist-info")
_GIT_NAMES = {
    "refs/heads/": "branch ", "refs/tags/": "tag ", "refs/remotes/": "remote branch ", "refs/stash": "stash",
    "packed-refs": "packed refs", "HEAD": "HEAD", "config": "config", "hooks/": "hook ", "modules/": "submodules",
    "worktrees/": "worktrees", "MERGE_HEAD": "merge", "rebase-merge/": "rebase",
}  # fmt: skip
"""Descriptions of git's files by path prefix; if one ends with a space, the rest of the path follows."""


class ChangedFile(NamedTuple):
    """One changed path and what happened to it, as a verb: `created`, `changed`, `deleted`."""

    verb: str
    path: str


@dataclass(frozen=True, slots=True)
class _ChangedFilesRow:
    """The changed files of one folder with the same verb, reported together."""

    verb: str
    folder: str
    names: tuple[str, ...]
    """Paths below the folder."""

    @property
    def depth(self) -> int:
        return self.folder.count("/") + 1 if self.folder else 0

    def row_text(self) -> str:
        above = f"{self.folder}/" if self.folder else ""
        if len(self.names) == 1:
            return above + self.names[0]
        if len(self.names) <= MAX_NAMES_PER_FOLDER:
            return f"{above}{{{', '.join(self.names)}}}" if above else ", ".join(self.names)
        examples = ", ".join(self.names[:EXAMPLES_PER_COUNTED_FOLDER])
        return f"{len(self.names):,} in {above or './'} ({examples} …)"


def changed_files_text(changes: Sequence[ChangedFile], ignored: Collection[str] = ()) -> str:
    """Return a phrase such as `created a.py, src/{b.py, c.py}; changed 40 in lib/ (d.py …)`.

    `ignored` are the paths that the project's ignore files exclude: they are only counted, like derived
    files.
    """
    alone = _without_parent_folders(changes)
    changed_files: dict[str, list[ChangedFile]] = {}
    derived: list[str] = []
    files: list[ChangedFile] = []
    for each in alone:
        folder = enclosing_derived_folder(each.path)
        if folder and folder == enclosing_git_folder(each.path):
            changed_files.setdefault(folder, []).append(each)
        elif folder or each.path in ignored:
            derived.append(each.path)
        else:
            files.append(each)
    rows = _grouped_rows(files)
    verbs = dict.fromkeys(row.verb for row in rows)
    told = [f"{verb} {', '.join(row.row_text() for row in rows if row.verb == verb)}" for verb in verbs]
    told += [_repository_changes_text(folder, inside) for folder, inside in changed_files.items()]
    return "; ".join([*told, *([_derived_files_text(derived)] if derived else [])])


def enclosing_derived_folder(path: str) -> str:
    """Return the topmost tool-generated folder that a path is or is inside; empty if there is none."""
    names = path.split("/")
    for index, name in enumerate(names):
        if name in DERIVED_FOLDERS or name.endswith(_DERIVED_ENDINGS):
            return "/".join(names[: index + 1])
    return ""


def is_in_derived_folder(path: str) -> bool:
    """Whether a path is or is inside a tool-generated folder other than a git repository."""
    folder = enclosing_derived_folder(path)
    return bool(folder) and folder != enclosing_git_folder(path)


def _repository_changes_text(folder: str, changes: Sequence[ChangedFile]) -> str:
    """Describe changes to a repository in git's terms: branches, tags and settings, not git's own files."""
    above = folder.rpartition("/")[0]
    name = f"git in {above}" if above else "git"
    told = dict.fromkeys(filter(None, (_meaning_of_git_file(*each, folder) for each in changes)))
    if whole := [each for each in told if each.endswith(" repository")]:
        return f"{name}: {whole[0]}"
    shown = list(told)[:MAX_NAMES_PER_FOLDER]
    more = " …" if len(told) > len(shown) else ""
    return (
        f"{name}: {', '.join(shown)}{more}" if shown else f"{name}: {_name_of_internal_git_files(changes)}"
    )


def _meaning_of_git_file(verb: str, path: str, folder: str) -> str:
    """Return what one of git's files means to the user, such as `branch main`; empty for internal files."""
    inner = path[len(folder) + 1 :]
    how = {"created": "new ", "deleted": "deleted "}.get(verb, "")
    if inner in {"", "HEAD"} and how:
        return f"{how}repository"
    for start, kind in _GIT_NAMES.items():
        if inner.startswith(start):
            return f"{how}{kind}{inner[len(start) :]}" if kind.endswith(" ") else kind
    return ""


def _name_of_internal_git_files(changes: Sequence[ChangedFile]) -> str:
    return "index" if any(each.path.endswith("/index") for each in changes) else "its own files"


def _without_parent_folders(changes: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Leave out folders that contain another changed path, since that path implies them."""
    above = folders_above(path for _, path in changes)
    return [each for each in changes if each.path not in above]


def _grouped_rows(changes: Iterable[ChangedFile]) -> list[_ChangedFilesRow]:
    """Group files by folder; if there are too many rows, merge the deepest folders into their parents."""
    rows: dict[tuple[str, str], _ChangedFilesRow] = {}
    for verb, path in changes:
        folder, _, name = path.rpartition("/")
        _merge_row(rows, _ChangedFilesRow(verb, folder, (name,)))
    while len(rows) > MAX_CHANGED_FILE_ROWS and (deepest := max(row.depth for row in rows.values())):
        files_rows: dict[tuple[str, str], _ChangedFilesRow] = {}
        for row in rows.values():
            _merge_row(files_rows, _row_of_parent_folder(row) if row.depth == deepest else row)
        rows = files_rows
    return list(rows.values())


def _merge_row(rows: dict[tuple[str, str], _ChangedFilesRow], row: _ChangedFilesRow) -> None:
    known = rows.get((row.verb, row.folder))
    rows[row.verb, row.folder] = (
        row if known is None else _ChangedFilesRow(row.verb, row.folder, known.names + row.names)
    )


def _row_of_parent_folder(row: _ChangedFilesRow) -> _ChangedFilesRow:
    above, _, own = row.folder.rpartition("/")
    return _ChangedFilesRow(row.verb, above, tuple(f"{own}/{name}" for name in row.names))


def _derived_files_text(paths: Sequence[str]) -> str:
    few = len(paths) <= MAX_DERIVED_FOLDERS
    tops = Counter(
        enclosing_derived_folder(path) or (path if few else path.partition("/")[0]) for path in paths
    )
    named = [top for top, _ in tops.most_common(MAX_DERIVED_FOLDERS)]
    more = " …" if len(tops) > len(named) else ""
    return f"{len(paths):,} ignored ({', '.join(named)}{more})"
