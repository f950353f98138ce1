"""Translate `OSError` into tool errors with a message and a hint that a model can act on."""

import errno

from handtools.core.errors import (
    Busy,
    InvalidInput,
    NotFound,
    OutsideWorkspace,
    Stale,
    StorageFault,
    ToolError,
    WrongKind,
)

_REASONS = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "The disk quota is exceeded",
    errno.EROFS: "The file system is read-only",
    errno.EACCES: "Permission denied by the operating system",
    errno.EPERM: "Operation not permitted by the operating system",
    errno.EIO: "The disk reported an I/O error",
    errno.EMFILE: "Too many files are open in this process",
    errno.ENFILE: "Too many files are open on this machine",
}

_HINTS = {
    errno.ENOSPC: "Ask the user to free disk space.",
    errno.EDQUOT: "Ask the user to free disk space.",
    errno.EROFS: "Use a path on another file system.",
    errno.EACCES: "Ask the user for permission, or use another path.",
    errno.EPERM: "Ask the user for permission, or use another path.",
    errno.EMFILE: "Try again after other calls have finished.",
    errno.ENFILE: "Try again after other calls have finished.",
}

_TOOL_ERRORS: dict[int, tuple[type[ToolError], str, str]] = {
    errno.ENOENT: (NotFound, "`{path}` does not exist.", "List the parent folder to see its entries."),
    errno.ENOTDIR: (
        NotFound,
        "`{path}` does not exist: a part of the path is not a folder.",
        "List the parent folder to see its entries.",
    ),
    errno.EXDEV: (
        OutsideWorkspace,
        "`{path}` leads outside the workspace.",
        "Use a path inside the workspace.",
    ),
    errno.ELOOP: (
        OutsideWorkspace,
        "`{path}` goes through too many symlinks.",
        "Use the path of the file itself.",
    ),
    errno.ENAMETOOLONG: (
        InvalidInput,
        "A name in `{path}` is longer than the file system allows.",
        "",
    ),
    errno.EINVAL: (InvalidInput, "The file system does not accept the name `{path}`.", ""),
    errno.EILSEQ: (InvalidInput, "The file system does not accept the name `{path}`.", ""),
    errno.EISDIR: (WrongKind, "`{path}` is a folder.", ""),
    errno.ENXIO: (WrongKind, "`{path}` is a device or a pipe, not a file.", ""),
    errno.EEXIST: (Stale, "Another file or folder is now at `{path}`.", "Read it again."),
    errno.ENOTEMPTY: (Stale, "The folder `{path}` is not empty.", "List it again."),
    errno.EBUSY: (Busy, "`{path}` is in use by the system.", "Try again."),
}


def os_error_as_tool_error(error: OSError, path: str) -> ToolError:
    """Return the tool error (message, hint) for an `OSError` at a path."""
    number = error.errno or 0
    named = _TOOL_ERRORS.get(number)
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    if named:
        kind, message, hint = named
        return kind(message.format(path=shown), hint=hint)
    reason = _REASONS.get(number) or error.strerror or str(error)
    hint = _HINTS.get(number, "Report this to the user.")
    return StorageFault(f"{reason}: `{shown}`. Nothing was changed.", hint=hint)
