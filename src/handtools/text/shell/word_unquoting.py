"""Words of a shell command: unquoting as the shell does, brace expansion, and quoting.

A word that the shell would expand at run time raises `OpaqueScript`.
"""

import re

CommandWords = tuple[str, ...]

_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_RESERVED = frozenset({
    "if", "then", "elif", "else", "fi", "time", "for", "in", "until", "while", "do", "done", "case", "esac",
    "coproc", "select", "function", "{", "}", "[[", "]]", "!",
})  # fmt: skip


_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_SIGN = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_BRACES = re.compile(r"([\w./-]*)\{([\w./,-]*,[\w./,-]*)\}([\w./-]*)")


class OpaqueScript(Exception):
    """Raised if a script's commands can't be known from its text; the message completes "because …"."""


def unquote_word(raw: str) -> str:
    """Unquote a word as the shell would.

    Raises `OpaqueScript` if it has variables, globs or substitutions.
    """
    made: list[str] = []
    place = 0
    while place < len(raw):
        char = raw[place]
        if char == "'":
            end = raw.find("'", place + 1)
            _raise_unless_parsable(end > 0, raw)
            made.append(raw[place + 1 : end])
            place = end + 1
        elif char == '"':
            text, place = _unquote_double_quoted(raw, place + 1)
            made.append(text)
        elif char == "\\":
            _raise_unless_parsable(raw[place + 1 : place + 2] not in {"", "\n"}, raw)
            made.append(raw[place + 1])
            place += 2
        elif raw.startswith("{}", place):
            made.append("{}")
            place += 2
        else:
            _require_plain_character(raw, place)
            made.append(char)
            place += 1
    return "".join(made)


def without_ansi_quotes(raw: str) -> str:
    r"""Replace `$'\x72m'` and `$"rm"` in a word with ordinary quotes."""
    plain = _ANSI.sub(
        lambda found: "'" + _with_ansi_escapes_decoded(found[1]).replace("'", "'\\''") + "'", raw
    )
    return plain.replace('$"', '"')


def _with_ansi_escapes_decoded(text: str) -> str:
    return _SIGN.sub(lambda found: _ansi_escape_character(found[0]), text)


def _ansi_escape_character(found: str) -> str:
    if len(found) > 2 and found[1] in "xuU":
        return chr(min(int(f"0x{found[2:]}", 0), 0x10FFFF))
    if found[1] in "01234567":
        return chr(int(found[1:], 8) & 0xFF)
    return _LETTERS.get(found[1], found[1])


def expand_one_brace_pair(raw: str) -> list[str]:
    """Expand one pair of braces (`a{b,c}`) into words; empty if the word is not that simple."""
    found = _BRACES.fullmatch(raw)
    if found is None:
        return []
    before, inside, after = found.groups()
    return [word for each in inside.split(",") if (word := f"{before}{each}{after}")]


def _unquote_double_quoted(raw: str, place: int) -> tuple[str, int]:
    """Unquote up to the closing double quote; return the text and the offset after it."""
    made: list[str] = []
    while place < len(raw):
        char = raw[place]
        if char == '"':
            return "".join(made), place + 1
        if char in "$`":
            raise OpaqueScript(f"the shell expands `{_shortened(raw)}`")
        if char == "\\":
            follows = raw[place + 1 : place + 2]
            _raise_unless_parsable(follows not in {"", "\n"}, raw)
            made.append(follows if follows in '$`"\\' else f"\\{follows}")
            place += 2
        else:
            made.append(char)
            place += 1
    raise OpaqueScript(f"`{_shortened(raw)}` has an unclosed quote")


def _require_plain_character(raw: str, place: int) -> None:
    """Raise `OpaqueScript` if the unquoted character at an offset is special to the shell."""
    char = raw[place]
    home = char == "~" and (place == 0 or raw[place - 1] in "=:")
    if char in "$`*?[{}" or home:
        raise OpaqueScript(f"the shell expands `{_shortened(raw)}`")
    _raise_unless_parsable(char not in " \t\r\n;&|<>()" and not (char == "#" and place == 0), raw)


def _raise_unless_parsable(fine: bool, raw: str) -> None:  # noqa: FBT001
    if not fine:
        raise OpaqueScript(f"`{_shortened(raw)}` can't be parsed as a word")


def unquote_program_word(raw: str) -> str:
    """Unquote the first word of a command; raises `OpaqueScript` for keywords, assignments and jobs (`%1`)."""
    if raw in _RESERVED:
        raise OpaqueScript(f"`{raw}` is a shell keyword")
    if _ASSIGNMENT.match(raw):
        raise OpaqueScript(f"`{_shortened(raw)}` sets a variable")
    found = unquote_word(raw)
    if found.startswith("%"):
        raise OpaqueScript(f"`{_shortened(raw)}` is a job")
    if not found:
        raise OpaqueScript("it runs a program without a name")
    return found


def quote_words(words: CommandWords) -> str:
    """Quote words and join them into a command line that the shell splits into exactly these words."""
    return " ".join(_quoted_word(word, first=place == 0) for place, word in enumerate(words))


def _quoted_word(word: str, *, first: bool) -> str:
    special = first and (word in _RESERVED or _ASSIGNMENT.match(word) is not None)
    home = "=~" in word or ":~" in word
    if _SAFE.fullmatch(word) and not special and not home:
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
