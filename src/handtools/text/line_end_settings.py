"""The line ending that a project's `.gitattributes` and `.editorconfig` files set for a path."""

import re

from handtools.text.search.glob import BadGlob, Glob

_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_SECTION = re.compile(r"\[(.+)\]")


def line_end_of_git_attributes(text: str, path: str) -> str | None:
    """Return the line ending that a `.gitattributes` file sets for a path below its folder.

    None if it sets none.
    """
    found = None
    for line in text.splitlines():
        pattern, *attributes = line.split() or [""]
        if pattern.startswith("#") or not attributes or not _matches(pattern, path):
            continue
        for attribute in attributes:
            name, _, value = attribute.partition("=")
            if name in {"eol", "!eol", "-eol"}:
                found = _ENDS.get(value)
    return found


def line_end_of_editorconfig(text: str, path: str) -> str | None:
    """Return the line ending that an `.editorconfig` file sets for a path below its folder.

    None if it sets none.
    """
    found, applies = None, False
    for line in map(str.strip, text.splitlines()):
        section = _SECTION.fullmatch(line)
        if section:
            applies = _matches(section[1], path)
            continue
        key, _, value = (part.strip().lower() for part in line.partition("="))
        if applies and key == "end_of_line":
            found = _ENDS.get(value)
    return found


def is_root_editorconfig(text: str) -> bool:
    """Whether an `.editorconfig` file says that those of the folders above do not apply."""
    preamble = re.split(r"(?m)^\s*\[", text, maxsplit=1)[0]
    return re.search(r"(?mi)^\s*root\s*=\s*true\s*$", preamble) is not None


def _matches(pattern: str, path: str) -> bool:
    try:
        return Glob(pattern).matches(path)
    except BadGlob:
        return False
