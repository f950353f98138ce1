"""The folder `.git` in paths, and names that some file systems treat as `.git`."""

import re

GIT_FOLDER = ".git"
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that Apple's HFS+ ignores when it compares names."""
_SHORT_NAME = re.compile(r"git~\d+")
"""The 8.3 name that NTFS gives to `.git`."""


def enclosing_git_folder(path: str) -> str | None:
    """The outermost `.git` folder (or file) that a path is or is inside; None if there is none."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(GIT_FOLDER) + 1]) if GIT_FOLDER in parts else None


def is_git_folder_lookalike(name: str) -> bool:
    """Whether a name is not `.git`, but means `.git` on a Windows or macOS file system."""
    if name == GIT_FOLDER:
        return False
    plain = _IGNORED_BY_HFS.sub("", name).casefold().partition(":")[0].rstrip(". ")
    return plain == GIT_FOLDER or bool(_SHORT_NAME.fullmatch(plain))
