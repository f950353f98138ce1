"""Sed scripts: whether one only prints and replaces, or also runs programs or writes files."""

import re

from handtools.text.shelling.words import Words

_ADDRESS = re.compile(r"[0-9]+(?:~[0-9]+)?|\$|[+~][0-9]+")
_PLAIN = frozenset("pPdDnNgGhHxlqQ=zF")
_TO_LINE_END = frozenset("aicrRv:btT#")
_FLAGS = re.compile(r"[gpiImM0-9]*")


def scripts(words: Words) -> list[str]:
    """The scripts among the words of a command; files and options are none."""
    found, plain = [], []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        name, given, value = word.partition("=")
        if word == "--":
            plain += rest
            break
        if len(name) > 2 and "--expression".startswith(name):
            found += [value] if given else rest[:1]
            rest = rest if given else rest[1:]
        elif re.fullmatch(r"-[a-zA-Z]*?e.*", word, re.DOTALL) and not word.startswith("--"):
            inline = word.partition("e")[2]
            found += [inline] if inline else rest[:1]
            rest = rest if inline else rest[1:]
        elif not word.startswith("-") or word == "-":
            plain.append(word)
    return found or plain[:1]


def reaches(script: str) -> str:
    """What a script does beyond printing, as a word of the table; empty when nothing, and "runs" when in doubt."""
    place = 0
    while place < len(script):
        if script[place] in " \t\n;{}!,":
            place += 1
        elif script[place] in "/\\":
            place = _past(script, place + (script[place] == "\\"), 1)
            if place < 0:
                return "runs"
            place += script[place : place + 1] in {"I", "M"}
        elif number := _ADDRESS.match(script, place):
            place = number.end()
        else:
            place, effect = _command(script, place)
            if effect:
                return effect
    return ""


def _command(script: str, place: int) -> tuple[int, str]:
    """Where it goes on after a command, and what that does."""
    name = script[place]
    if name in _PLAIN:
        return place + 1, ""
    if name in _TO_LINE_END:
        return _line_end(script, place), ""
    if name in "sy":
        place = _past(script, place + 1, 2)
        if place < 0:
            return place, "runs"
        flags = _FLAGS.match(script, place) if name == "s" else None
        place = flags.end() if flags else place
        if place == len(script) or script[place] in " \t\n;}#":
            return place, ""
        return place, "writes" if script[place] == "w" else "runs"
    return place, "writes" if name in "wW" else "runs"


def _past(script: str, place: int, parts: int) -> int:
    """Past so many parts, each up to the sign that stands here; -1 when they do not end."""
    sign = script[place : place + 1]
    if not sign or sign in "\n\\":
        return -1
    for _ in range(parts):
        place += 1
        while place < len(script) and script[place] != sign:
            place += 2 if script[place] == "\\" else 1
        if place >= len(script):
            return -1
    return place + 1


def _line_end(script: str, place: int) -> int:
    while place < len(script) and script[place] != "\n":
        place += 2 if script[place] == "\\" else 1
    return place + 1
