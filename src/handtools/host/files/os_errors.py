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
    errno.EDQUOT: "The disk quota is used up",
    errno.EROFS: "The file system is read-only",
    errno.EACCES: "The operating system gives no permission",
    errno.EPERM: "The operating system does not allow it",
    errno.EIO: "The disk reports an input/output error",
    errno.EMFILE: "Too many files are open in this process",
    errno.ENFILE: "Too many files are open on this machine",
}

_HINTS = {
    errno.ENOSPC: "Ask a person to make room.",
    errno.EDQUOT: "Ask a person to make room.",
    errno.EROFS: "Use a path elsewhere.",
    errno.EACCES: "Ask a person for the permission, or use another path.",
    errno.EPERM: "Ask a person for the permission, or use another path.",
    errno.EMFILE: "Try again when other calls have ended.",
    errno.ENFILE: "Try again when other calls have ended.",
}

_TOOL_ERRORS: dict[int, tuple[type[ToolError], str, str]] = {
    errno.ENOENT: (NotFound, "There is nothing at `{path}`.", "List the folder to see its names."),
    errno.ENOTDIR: (
        NotFound,
        "There is nothing at `{path}`: a part of it is not a folder.",
        "List the folder to see its names.",
    ),
    errno.EXDEV: (
        OutsideWorkspace,
        "`{path}` leads outside the workspace.",
        "Use a path inside the workspace.",
    ),
    errno.ELOOP: (
        OutsideWorkspace,
        "`{path}` goes through too many links.",
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
    errno.EEXIST: (Stale, "Something else is at `{path}` now.", "Read it again."),
    errno.ENOTEMPTY: (Stale, "The folder `{path}` is not empty.", "List it again."),
    errno.EBUSY: (Busy, "`{path}` is in use by the system.", "Try again."),
}


def os_error_as_tool_error(error: OSError, path: str) -> ToolError:
    """The tool error (message, hint) for an `OSError` at a path."""
    number = error.errno or 0
    named = _TOOL_ERRORS.get(number)
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    if named:
        kind, message, hint = named
        return kind(message.format(path=shown), hint=hint)
    reason = _REASONS.get(number) or error.strerror or str(error)
    hint = _HINTS.get(number, "Tell the person who runs this machine.")
    return StorageFault(f"{reason}: `{shown}`. Nothing was changed.", hint=hint)
