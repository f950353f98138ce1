"""The folder `.git` in paths, and names that some file systems take for it. ADR 163."""

import re

GIT_FOLDER = ".git"
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that Apple's HFS+ leaves out when it compares names."""
_SHORT_NAME = re.compile(r"git~\d+")
"""The 8.3 name that NTFS gives to `.git`."""


def enclosing_git_folder(path: str) -> str | None:
    """The outermost folder (or file) `.git` that a path is or lies in; None if it lies in none."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(GIT_FOLDER) + 1]) if GIT_FOLDER in parts else None


def is_git_folder_lookalike(name: str) -> bool:
    """Whether a name is not `.git`, but would be on a disk of Windows or macOS."""
    if name == GIT_FOLDER:
        return False
    plain = _IGNORED_BY_HFS.sub("", name).casefold().partition(":")[0].rstrip(". ")
    return plain == GIT_FOLDER or bool(_SHORT_NAME.fullmatch(plain))
