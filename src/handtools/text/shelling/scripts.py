"""Scripts: everything that rules and questions want to know about a script, read once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from handtools.text.shelling.hazards import hazards
from handtools.text.shelling.lowering import lowered, nodes, parse
from handtools.text.shelling.words import Opaque, Words, expanded, literal, unescaped
from handtools.text.shelling.wrapping import SHELLS, bare_name, guesses, inner

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_DEPTH = 4
_MOST_FOUND = 5_000
_FIERCE = {
    "rm": "deletes", "rmdir": "deletes", "shred": "destroys", "dd": "writes raw bytes", "mkfs": "formats",
    "sudo": "acts as another user", "doas": "acts as another user", "su": "acts as another user",
    "chmod": "changes rights", "chown": "changes owners", "kill": "ends processes", "pkill": "ends processes",
    "killall": "ends processes", "curl": "goes to the network", "wget": "goes to the network",
    "ssh": "goes to another machine", "scp": "goes to another machine", "rsync": "copies elsewhere",
    "nc": "goes to the network", "eval": "runs text that it makes", "crontab": "plans for later",
    "truncate": "empties files", "mount": "mounts", "reboot": "stops the machine", "shutdown": "stops the machine",
}  # fmt: skip
_TAKES_SCRIPTS = SHELLS | {
    "eval", "trap", "su", "ssh", "watch", "xargs", "sudo", "env", "script", "find", "tmux", "screen", "flock",
    "mapfile", "readarray", "compgen", "complete", "parallel", "vim", "vi", "nvim", "ex",
}  # fmt: skip
_HOLDS_SCRIPTS = {"alias": "=", "git": "=!"}
"""Programs that are told of a script behind a name, and what stands between the two."""
_BESIDE = frozenset({
    "file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment", "comment"
})  # fmt: skip
"""What stands among the words of a command and is none."""
_SHAPED = re.compile(r"[$`*?\[{]")
"""The name of a program with one of these in it is made by the shell."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a script is made of."""

    text: str
    parts: tuple[Words, ...]
    """Every command it runs, those inside of others included; none when it is opaque."""
    opaque: str
    """Why its commands can't be known for certain; empty when they are."""
    found: tuple[Words, ...]
    """Every command that was seen in it, at any depth: enough to find dangers, never to rule them out."""
    dangers: tuple[str, ...]
    """What a person should look at, in words."""
    seen: bool = True
    """Whether all of it was looked at; else it was too long, or not to be read."""


@lru_cache(maxsize=64)
def read_script(text: str) -> Script:
    """Read a script; never raises."""
    try:
        outer = lowered(text)
        parts = tuple(each for words in outer for each in (words, *inner(words)))
    except Opaque as reason:
        # Bash takes a line that goes on together before it reads it: it is looked at as it is, and so.
        texts = dict.fromkeys((text, text.replace("\\\n", "")))
        found = tuple(islice((words for each in texts for words in _found(each, 0)), _MOST_FOUND + 1))
        seen = len(found) <= _MOST_FOUND and _readable(text) and not any(map(_unnamed, found))
        return Script(text, (), f"{reason}.", found, _dangers(text, found), seen=seen)
    found = tuple(islice((each for words in parts for each in _opened(words, 0)), _MOST_FOUND))
    return Script(text, parts, "", found, _dangers(text, parts))


def _readable(text: str) -> bool:
    """Whether the tree has everything in it."""
    try:
        return all(node.kind() != "ERROR" for node in nodes(parse(text)))
    except Opaque:
        return False


def _unnamed(words: Words) -> bool:
    """Whether a rule can't know the program: the shell makes up its name, or a shell reads what it runs."""
    from_input = bare_name(words[0]) in SHELLS and all(word.startswith("-") for word in words[1:])
    return _SHAPED.search(words[0]) is not None or (from_input and "-c" not in words)


def _found(text: str, depth: int) -> Iterator[Words]:
    try:
        root = parse(text)
    except Opaque:
        return
    for node in nodes(root):
        if node.kind() == "command":
            words = tuple(word for child in node.children() if _is_word(child) for word in _guesses(child))
            if words:
                yield from _opened(words, depth)


def _is_word(node: "SgNode") -> bool:
    return node.is_named() and node.kind() not in _BESIDE


def _guesses(node: "SgNode") -> list[str]:
    """A word as far as it can be known, or the words it becomes; else its text."""
    text = unescaped(node.text())
    try:
        return [literal(text)]
    except Opaque:
        return expanded(text) or [text]


def _opened(words: Words, depth: int) -> Iterator[Words]:
    """A command, what it might run, and the scripts among its words."""
    yield words
    if depth >= _DEPTH:
        return
    for guess in guesses(words):
        yield from _opened(guess, depth + 1) if bare_name(guess[0]) in _TAKES_SCRIPTS else (guess,)
    held = _HOLDS_SCRIPTS.get(bare_name(words[0]))
    for word in words[1:]:
        if held is not None and held in word:
            yield from _found(word.partition(held)[2], depth + 1)
    if bare_name(words[0]) in _TAKES_SCRIPTS:
        for word in words[1:]:
            if " " in word or "\n" in word:
                yield from _found(word, depth + 1)


def _dangers(text: str, found: tuple[Words, ...]) -> tuple[str, ...]:
    told = [
        f"`{bare_name(words[0])}` {_FIERCE[bare_name(words[0])]}"
        for words in found
        if bare_name(words[0]) in _FIERCE
    ]
    told += [f"{hazard} (`{words[0]}`)" for words in found for hazard in hazards(words)]
    return tuple(dict.fromkeys([*_written(text), *told]))[:12]


def _written(text: str) -> list[str]:
    """The files that redirections write."""
    try:
        root = parse(text)
    except Opaque:
        return []
    targets = []
    for node in nodes(root):
        if node.kind() == "file_redirect" and ">" in node.text():
            words = [
                child for child in node.children() if child.is_named() and child.kind() != "file_descriptor"
            ]
            name = words[-1].text() if words else ""
            if name and name != "/dev/null" and not name.isdigit():
                targets.append(f"writes `{name}`")
    return targets
