"""Lowering: from the tree of a script to its plain commands, or a refusal.

The tree is not believed: every piece of the text must be accounted for by a word, an operator or a comment, and
each word is read again by our own rules. Where the two readings differ, the script is opaque.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from handtools.text.shelling.words import Opaque, Words, literal, program

if TYPE_CHECKING:
    from ast_grep_py import SgNode

MOST_CHARS = 12_000
"""The worst of this length takes a second to read."""
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_GAP = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")
_BREAK = re.compile(r"(?:[ \t\n]|(?<=[ \t])\\\n)*")
_HARMLESS = re.compile(
    r"[0-9]?>>?[ \t]*/dev/null|&>>?[ \t]*/dev/null|[0-9]?>&[ \t]*[012]|[0-9]?<[ \t]*/dev/null"
)
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_JOINTS = frozenset({"&&", "||", ";", "|", "\n"})
_GROUPS = frozenset({"program", "list", "pipeline", "redirected_statement"})
_REASONS = {
    "&": "it goes on in the background",
    "|&": "it joins its errors to a pipe",
    "subshell": "it has a subshell",
    "compound_statement": "it groups commands",
    "negated_command": "it turns an exit code around",
    "function_definition": "it defines a function",
    "declaration_command": "it sets variables",
    "unset_command": "it unsets variables",
    "variable_assignment": "it sets a variable",
    "variable_assignments": "it sets variables",
    "command_substitution": "it runs a command to fill in a word",
    "process_substitution": "it runs a command behind a file name",
    "heredoc_redirect": "it holds a here-document",
    "herestring_redirect": "it feeds a string to a command",
    "test_command": "it tests a condition of the shell's own",
    "if_statement": "it has control flow",
    "for_statement": "it has control flow",
    "c_style_for_statement": "it has control flow",
    "while_statement": "it has control flow",
    "case_statement": "it has control flow",
    "ERROR": "it can't be read as bash",
}

Kind = Literal["word", "joint", "redirect", "comment"]


@dataclass(slots=True)
class _Token:
    kind: Kind
    start: int
    end: int


@dataclass(slots=True)
class _Reading:
    text: str
    tokens: list[_Token] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    """The raw words of each command."""
    starts: set[int] = field(default_factory=set)
    """Where commands begin: something must stand between them."""


def parse(text: str) -> "SgNode":
    """The tree of a script."""
    if len(text) > MOST_CHARS:
        raise Opaque(f"it is longer than {MOST_CHARS:,} characters")
    if _CONTROL.search(text):
        raise Opaque("it holds control characters")
    if "{" in text and _ASTRAL.search(text):
        # The grammar looks such a character up in a table that is too small for it, and takes the process along.
        raise Opaque("it holds a character beyond U+FFFF after a brace")
    from ast_grep_py import SgRoot

    return SgRoot(text, "bash").root()


def lowered(text: str) -> tuple[Words, ...]:
    """The commands of a plain script, in order; raises `Opaque`."""
    reading = _Reading(text)
    _walk(parse(text), reading)
    reading.tokens.sort(key=lambda token: token.start)
    _account(reading)
    return tuple((program(words[0]), *map(literal, words[1:])) for words in reading.commands)


def _walk(root: "SgNode", reading: _Reading) -> None:
    """By a stack of our own: a long list of commands is a deep tree."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = node.kind()
        if kind in _GROUPS:
            children = node.children()
            if kind == "redirected_statement" and children[0].kind() == "file_redirect":
                raise Opaque("it redirects without a program")
            waiting += reversed(children)
        elif kind == "command":
            _command(node, reading)
        elif kind in _JOINTS:
            _take(node, "joint", reading)
        elif kind == "comment":
            _take(node, "comment", reading)
        elif kind == "file_redirect":
            _redirect(node, reading)
        else:
            raise Opaque(_REASONS.get(kind, f"it holds {kind.replace('_', ' ')}"))


def _command(node: "SgNode", reading: _Reading) -> None:
    words: list[str] = []
    for child in node.children():
        kind = child.kind()
        if kind == "command_name" or kind in _WORDS:
            if not words:
                reading.starts.add(child.range().start.index)
            words.append(child.text())
            _take(child, "word", reading)
        elif kind == "file_redirect":
            _redirect(child, reading)
        elif kind in {
            "simple_expansion",
            "expansion",
            "ansi_c_string",
            "translated_string",
            "brace_expression",
        }:
            raise Opaque(f"`{child.text()[:40]}` is filled in by the shell")
        else:
            raise Opaque(_REASONS.get(kind, f"it holds {kind.replace('_', ' ')}"))
    if not words:
        raise Opaque("it has no program")
    reading.commands.append(words)


def _redirect(node: "SgNode", reading: _Reading) -> None:
    text = node.text()
    if not _HARMLESS.fullmatch(text):
        raise Opaque(f"`{text[:40]}` redirects to or from a file")
    _take(node, "redirect", reading)


def _take(node: "SgNode", kind: Kind, reading: _Reading) -> None:
    span = node.range()
    if span.start.index >= span.end.index:
        raise Opaque("it can't be read as bash")
    reading.tokens.append(_Token(kind, span.start.index, span.end.index))


def _account(reading: _Reading) -> None:
    """Nothing of the text may be left over, and neighbours must be told apart as the shell does it."""
    before: _Token | None = None
    for token in reading.tokens:
        gap = reading.text[before.end if before else 0 : token.start]
        begins = token.start in reading.starts or token.kind in {"joint", "comment"}
        if not (_BREAK if begins else _GAP).fullmatch(gap):
            raise Opaque("its text and its tree differ")
        if before is not None and not _apart(before, token, gap, reading):
            raise Opaque("its text and its tree differ")
        before = token
    if not _BREAK.fullmatch(reading.text[before.end if before else 0 :]):
        raise Opaque("its text and its tree differ")


def _apart(before: _Token, token: _Token, gap: str, reading: _Reading) -> bool:
    """Whether two neighbours are really two."""
    if before.kind == "comment":
        return "\n" in gap or reading.text[token.start] == "\n"
    if token.start in reading.starts:
        return before.kind == "joint" or "\n" in gap.replace("\\\n", "")
    if "joint" in {before.kind, token.kind}:
        return True
    if token.kind == "redirect" and not gap:
        return not reading.text[before.start : before.end].isdigit()
    return bool(gap)


def nodes(root: "SgNode") -> Iterator["SgNode"]:
    """Every node, outer ones first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children())
