"""Parser of git's configuration files: sections, subsections, quoting and continuation lines, as in git.

A text that git would reject, or that parsers could interpret differently, raises `BadGitConfig`.
"""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

GIT_FOLDER = ".git"
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that Apple's HFS+ ignores when it compares names."""
_SHORT_NAME = re.compile(r"git~\d+")
"""The 8.3 name that NTFS gives to `.git`."""


def enclosing_git_folder(path: str) -> str | None:
    """Return the outermost `.git` folder (or file) that a path names or is inside; None if there is none."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(GIT_FOLDER) + 1]) if GIT_FOLDER in parts else None


def is_repository_state(path: str) -> bool:
    """Whether a path in a `.git` folder says what is checked out, staged or on a branch.

    If two programs change such a file at the same time, keeping one version loses the other's commit.
    """
    folder = enclosing_git_folder(path)
    inner = path[len(folder) + 1 :] if folder else ""
    return inner in {"HEAD", "index", "packed-refs"} or inner.startswith("refs/")


def is_git_folder_lookalike(name: str) -> bool:
    """Whether a name is not `.git`, but means `.git` on a Windows or macOS file system."""
    if name == GIT_FOLDER:
        return False
    plain = _IGNORED_BY_HFS.sub("", name).casefold().partition(":")[0].rstrip(". ")
    return plain == GIT_FOLDER or bool(_SHORT_NAME.fullmatch(plain))


GitConfig = Mapping[str, tuple[str | None, ...]]
"""Values by key, in the order written. Section and name are in lower case, a subsection is as written.

None is the value of a name without `=`, which git treats as true.
"""
_KEY_CHARACTERS = frozenset(string.ascii_letters + string.digits + "-")
_SPACES = frozenset(" \t\n\r")
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


MAX_GIT_CONFIG_BYTES = 512 << 10


class BadGitConfig(ValueError):
    """Raised if git would reject this configuration, or if it is too long."""


@dataclass(frozen=True, slots=True)
class GitConfigKey:
    """A key in its three parts; `remote.origin.url` is the name `url` in the section `remote "origin"`."""

    section: str
    subsection: str | None
    name: str

    @classmethod
    def of(cls, key: str) -> "GitConfigKey":
        """Split a key at its first and its last dot, as git does."""
        section, _, rest = key.partition(".")
        inner, dot, name = rest.rpartition(".")
        return cls(section, inner if dot else None, name)


def parse_git_config(data: bytes) -> GitConfig:
    """Parse a configuration file; raises `BadGitConfig`. Included files are not read."""
    if b"\0" in data:
        raise BadGitConfig("It contains a NUL byte.")
    if len(data) > MAX_GIT_CONFIG_BYTES:
        raise BadGitConfig(f"It is longer than {MAX_GIT_CONFIG_BYTES:,} bytes.")
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    found = _GitConfigReader(text).parse_all_keys()
    return {
        _rejoin_split_utf8_bytes(key): tuple(value and _rejoin_split_utf8_bytes(value) for value in values)
        for key, values in found.items()
    }


def _rejoin_split_utf8_bytes(text: str) -> str:
    """Join bytes of one UTF-8 character that were separated by a quote in the file."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


class _GitConfigReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parse_all_keys(self) -> dict[str, list[str | None]]:
        found: dict[str, list[str | None]] = {}
        section = ""
        while self._at < len(self._text):
            char = self._next_character()
            if char in "#;":
                self._skip_line()
            elif char == "[":
                section = self._parse_section_name() + "."
            elif char not in _SPACES:
                if not (char.isascii() and char.isalpha()):
                    raise BadGitConfig(f"A line begins with {char!r}.")
                key = section + char.lower() + self._parse_rest_of_key()
                found.setdefault(key, []).append(self._parse_value_or_none())
        return found

    def _next_character(self) -> str:
        """Return the next character; after the end of the text, a line feed, as in git."""
        char = self._text[self._at] if self._at < len(self._text) else "\n"
        self._at += 1
        return char

    def _skip_line(self) -> None:
        while self._next_character() != "\n":
            pass

    def _parse_section_name(self) -> str:
        start = self._at
        while self._at < len(self._text):
            char = self._next_character()
            name = self._text[start : self._at - 1].lower() if char in "] \t\n\r" else ""
            if char == "]" and name:
                return name
            if char in _SPACES:
                return f"{name}.{self._parse_subsection_name(char)}"
            if char not in _KEY_CHARACTERS and char != ".":
                break
        raise BadGitConfig("A section's name is not closed, or contains an invalid character.")

    def _parse_subsection_name(self, char: str) -> str:
        while char in _SPACES and char != "\n":
            char = self._next_character()
        if char != '"':
            raise BadGitConfig("A subsection is not quoted.")
        name: list[str] = []
        while (char := self._next_character()) != '"':
            char = self._next_character() if char == "\\" else char
            if char == "\n":
                raise BadGitConfig("A subsection's name is not closed.")
            name.append(char)
        if self._next_character() != "]":
            raise BadGitConfig("A section's name is not closed.")
        return "".join(name)

    def _parse_rest_of_key(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] in _KEY_CHARACTERS:
            self._at += 1
        return self._text[start : self._at].lower()

    def _parse_value_or_none(self) -> str | None:
        while (char := self._next_character()) in " \t":
            pass
        if char == "\n":
            return None
        if char != "=":
            raise BadGitConfig("A name is not followed by `=`.")
        return self._parse_value()

    def _parse_value(self) -> str:
        # Join once at the end: appending to a string would copy a long value for each character.
        value: list[str] = []
        blanks: list[str] = []
        quoted = False
        while (char := self._next_character()) != "\n" or quoted:
            if char == "\n":
                raise BadGitConfig("A quoted value is not closed.")
            if char in _SPACES and not quoted:
                if value:
                    blanks.append(char)
                continue
            if char in "#;" and not quoted:
                self._skip_line()
                break
            value += blanks
            blanks.clear()
            if char == '"':
                quoted = not quoted
            elif meant := self._parse_escaped_character() if char == "\\" else char:
                value.append(meant)
        return "".join(value)

    def _parse_escaped_character(self) -> str:
        char = self._next_character()
        if char == "\n":  # the value continues on the next line
            return ""
        if char not in _ESCAPES:
            raise BadGitConfig(f"A value contains the invalid escape \\{char}.")
        return _ESCAPES[char]
