"""The layout of a git folder: for each path in it, the git folder it belongs to and what git uses it for.

A path is matched component by component, so no pattern spans a slash. A name that is not in the tables has
no kind: callers must treat it as unknown. The tables follow gitrepository-layout(5) and git's sources.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple

from handtools.text.git_config import GIT_FOLDER, is_git_folder_lookalike

_PART_BYTES = 1 << 20


class BadGitObject(ValueError):
    """Raised if a file is not a valid loose object, or its content is too large."""


def loose_object_digest(pieces: Iterable[bytes], *, algorithm: str, max_bytes: int) -> tuple[str, int]:
    """Return the hash of a loose object's content, which is its name in git, and the size of the content.

    `pieces` has the bytes of the file. Raises `BadGitObject` if the file is not a valid object or its content
    is longer than `max_bytes`.
    """
    inflater, size = zlib.decompressobj(), 0
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for piece in chain(pieces, [b""]):
        waiting = piece
        while not inflater.eof:
            try:
                part = inflater.decompress(waiting, _PART_BYTES)
            except zlib.error as error:
                raise BadGitObject(f"It can't be inflated: {error}.") from error
            waiting = inflater.unconsumed_tail
            size += len(part)
            if size > max_bytes:
                raise BadGitObject(f"Its content is longer than {max_bytes:,} bytes.")
            digest.update(part)
            if not waiting and len(part) < _PART_BYTES:
                break
        else:
            if waiting or inflater.unused_data:
                raise BadGitObject("It has extra bytes after its end.")
    if not inflater.eof:
        raise BadGitObject("It is truncated.")
    return digest.hexdigest(), size


GitFileKind = Literal[
    "folder", "settings", "ref", "replacement", "packed refs", "reflog", "place", "alternates", "shallow",
    "excludes", "object", "pack", "pack index", "pack note", "cache", "leftover", "sample hook", "todo",
    "strategy", "sequencer options", "apply options", "bisect names", "refs to delete", "data",
]  # fmt: skip
_ID = "(?:[0-9a-f]{40}|[0-9a-f]{64})"
_REF_NAME = re.compile(r"(?!\.)(?!.*(?:\.\.|@\{|\.lock$))[^\x00-\x20\x7f~^:?*\[\\/]+(?<!\.)")
"""One component of a ref's name, as allowed by git-check-ref-format(1)."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """A file, or a folder whose descendants may have any names that are valid in a ref."""

    kind: GitFileKind


@dataclass(frozen=True, slots=True)
class _Folder:
    """The possible entries of a folder, by name or by a regex for the full name."""

    names: Mapping[str, "_Entry"] = field(default_factory=dict)
    patterns: Mapping[str, "_Entry"] = field(default_factory=dict)

    def entry(self, name: str) -> "_Entry | None":
        if name in self.names:
            return self.names[name]
        for pattern, entry in self.patterns.items():
            if re.fullmatch(pattern, name):
                return entry
        return None


_Entry = GitFileKind | _Tree | _Folder


def _data_entries(*names: str) -> dict[str, _Entry]:
    return dict.fromkeys(names, "data")


_OBJECTS = _Folder(
    {
        "pack": _Folder(
            {"multi-pack-index": "cache", "multi-pack-index.d": _Tree("cache")},
            {
                rf"pack-{_ID}\.pack": "pack",
                rf"pack-{_ID}\.(?:idx|rev)": "pack index",
                rf"pack-{_ID}\.(?:mtimes|promisor)": "pack note",
                rf"pack-{_ID}\.keep": "data",
                rf"pack-{_ID}\.bitmap": "cache",
                rf"multi-pack-index-{_ID}\.(?:rev|bitmap)": "cache",
                r"tmp_\w+": "leftover",
            },
        ),
        "info": _Folder(
            {
                "packs": "data",
                "alternates": "alternates",
                "commit-graph": "cache",
                "commit-graphs": _Tree("cache"),
            }
        ),
    },
    {
        "[0-9a-f]{2}": _Folder(
            patterns={"[0-9a-f]{38}|[0-9a-f]{62}": "object", r"tmp_obj_\w+": "leftover"},
        )
    },
)
_REBASE_MERGE = _Folder(
    {
        **_data_entries(
            "allow_rerere_autoupdate", "amend", "author-script", "autostash", "cdate_is_adate", "current-fixups",
            "done", "drop_redundant_commits", "dropped", "end", "gpg_sign_opt", "head", "head-name", "ignore_date",
            "interactive", "keep_redundant_commits", "message", "message-fixup", "message-squash", "msgnum",
            "no-reschedule-failed-exec", "onto", "orig-head", "patch", "quiet", "reschedule-failed-exec",
            "rewritten-list", "rewritten-pending", "signoff", "squash-onto", "stopped-sha", "strategy_opts",
            "trailer", "update-refs", "verbose",
        ),
        "strategy": "strategy",
        "refs-to-delete": "refs to delete",
    },
    {r"git-rebase-todo(?:\.\w+)?": "todo"},
)  # fmt: skip
_REBASE_APPLY = _Folder(
    {
        **_data_entries(
            "abort-safety", "allow_rerere_autoupdate", "applying", "author-script", "autostash", "dirtyindex",
            "final-commit", "gpg_sign_opt", "head-name", "info", "keep", "keepcr", "last", "messageid", "msg",
            "msg-clean", "next", "onto", "orig-head", "original-commit", "patch", "patch-merge-index", "quiet",
            "quoted-cr", "rebasing", "rerere-autoupdate", "resolvemsg", "rewritten", "scissors", "sign", "signoff",
            "threeway", "utf8", "verbose",
        ),
        "apply-opt": "apply options",
    },
    {r"[0-9]{4,}": "data"},
)  # fmt: skip
_GIT_FOLDER = _Folder(
    {
        "HEAD": "ref",
        "config": "settings",
        "config.worktree": "settings",
        "commondir": "place",
        "gitdir": "place",
        "packed-refs": "packed refs",
        "shallow": "shallow",
        **_data_entries(
            "index", "description", "gc.log", "gc.pid", "locked", "AUTO_MERGE", "MERGE_MODE", "MERGE_RR",
            "MERGE_AUTOSTASH", "ADD_EDIT.patch", "EDIT_DESCRIPTION", "NOTES_MERGE_REF", "NOTES_MERGE_PARTIAL",
        ),
        "BISECT_NAMES": "bisect names",
        "NOTES_MERGE_WORKTREE": _Folder(patterns=_data_entries(_ID)),
        "objects": _OBJECTS,
        "refs": _Folder(
            patterns={"(?i:replace)": _Tree("replacement"), _REF_NAME.pattern: _Tree("ref")}
        ),
        "logs": _Folder({"HEAD": "reflog", "refs": _Tree("reflog")}),
        "info": _Folder({"exclude": "excludes", "sparse-checkout": "data", "refs": "data"}),
        "hooks": _Folder(patterns={r"[\w-]+\.sample": "sample hook"}),
        "branches": _Folder(),
        "remotes": _Folder(),
        "modules": _Folder(),
        "worktrees": _Folder(),
        # Left empty so that its files need approval: rerere resolves later conflicts with their content.
        "rr-cache": _Folder(),
        "rebase-merge": _REBASE_MERGE,
        "rebase-apply": _REBASE_APPLY,
        "sequencer": _Folder(
            {"todo": "todo", "opts": "sequencer options", **_data_entries("head", "abort-safety")}
        ),
        "lost-found": _Folder(patterns={"commit|other": _Folder(patterns=_data_entries(_ID))}),
    },
    _data_entries(r"sharedindex\.[0-9a-f]+", r"[A-Z_]+_(?:HEAD|MSG|EDITMSG)", r"BISECT_[A-Z_]+"),
)  # fmt: skip
RESERVED_NAMES = frozenset(map(str.casefold, _GIT_FOLDER.names))
"""Names that git uses in a git folder, in lower case; not allowed as a component of a submodule's name.

Otherwise the submodule's git folder could be mistaken for one of git's own files.
"""


class GitPath(NamedTuple):
    """A path below a `.git` folder, or below a bare repository, as git interprets it."""

    folder: str
    """The innermost git folder around the path, relative to the outermost one; empty, or like `modules/NAME`."""
    path: str
    """The path in that folder."""
    kind: GitFileKind | None
    """None if the tables have no such file."""

    @property
    def is_of_worktree(self) -> bool:
        """Whether the git folder belongs to a linked worktree."""
        return self.folder.split("/")[-2:-1] == ["worktrees"]

    @property
    def is_of_submodule(self) -> bool:
        """Whether the git folder belongs to a submodule."""
        return bool(self.folder) and not self.is_of_worktree


def read_git_path(inner: str, *, is_folder: bool = False) -> GitPath:
    """Classify a path below a git folder; `inner` is relative to the outermost git folder."""
    parts = inner.split("/")
    start = 0
    while size := _nested_size(parts[start:], is_folder=is_folder):
        start += size
    folder, own = "/".join(parts[:start]), parts[start:]
    return GitPath(folder, "/".join(own), _kind(own, is_folder=is_folder))


def is_nested_git_folder(inner: str) -> bool:
    """Whether a path below a git folder is the git folder of a submodule or of a worktree."""
    return read_git_path(f"{inner}/HEAD")[:2] == (inner, "HEAD")


def is_ref_name(name: str) -> bool:
    """Whether a text such as `refs/heads/main` is a ref's name."""
    return all(map(_REF_NAME.fullmatch, name.split("/")))


def _nested_size(parts: Sequence[str], *, is_folder: bool) -> int:
    """Count the leading components that are the git folder of a submodule or worktree; 0 if there is none.

    A submodule's name may have several components; it ends before the first reserved name.
    """
    if parts[0] == "worktrees":
        return 2 if len(parts) > 2 else 0
    if parts[0] != "modules":
        return 0
    own = next((n for n, part in enumerate(parts) if n and part.casefold() in RESERVED_NAMES), len(parts))
    # If no reserved name follows, the last component of a file's path is in the git folder, not part of the name.
    size = own if own < len(parts) or is_folder else len(parts) - 1
    return size if 1 < size < len(parts) and all(map(_is_submodule_name, parts[1:size])) else 0


def _is_submodule_name(part: str) -> bool:
    is_plain = part.isprintable() and part != GIT_FOLDER and not is_git_folder_lookalike(part)
    return is_plain and part.casefold() not in RESERVED_NAMES


def _kind(parts: Sequence[str], *, is_folder: bool) -> GitFileKind | None:
    if is_folder and parts[0] == "modules":
        return "folder" if all(map(_is_submodule_name, parts[1:])) else None
    if is_folder and parts[0] == "worktrees" and len(parts) == 2:
        return "folder"
    place: _Entry | None = _GIT_FOLDER
    for depth, part in enumerate(parts):
        if isinstance(place, _Tree):
            is_valid = all(map(_REF_NAME.fullmatch, parts[depth:]))
            return ("folder" if is_folder else place.kind) if is_valid else None
        place = place.entry(part) if isinstance(place, _Folder) else None
    if isinstance(place, _Tree):
        return "folder" if is_folder else place.kind
    if isinstance(place, _Folder):
        return "folder" if is_folder else None
    return None if is_folder else place
