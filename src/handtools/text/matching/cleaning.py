"""Cleaning: what happened to the arguments on their way, undone in both or in neither."""

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from handtools.text.matching.folding import LOOK_ALIKES, is_blank


@dataclass(frozen=True, slots=True)
class Reading:
    """The arguments as they may have been meant, and how that was found."""

    old: str
    new: str
    notes: tuple[str, ...] = ()
    line: int | None = None


Cleaner = Callable[[str, str, str], Reading | None]


def readings(body: str, old: str, new: str) -> Iterator[Reading]:
    """The arguments as sent, then cleaned in one way, then in two."""
    # Characters that the file nowhere has can only be forgotten; without them less is.
    plain = without_strangers(body, old, new) or Reading(old, new)
    yield plain
    seen = {(plain.old, plain.new)}
    layer = [plain]
    for _ in range(2):
        cleaned = [again for reading in layer for again in _cleaned(body, reading)]
        layer = []
        for reading in cleaned:
            if (reading.old, reading.new) not in seen and reading.old.strip():
                seen.add((reading.old, reading.new))
                layer.append(reading)
                yield reading


def _cleaned(body: str, reading: Reading) -> Iterator[Reading]:
    for cleaner in CLEANERS:
        if (found := cleaner(body, reading.old, reading.new)) is not None:
            line = found.line if found.line is not None else reading.line
            yield Reading(found.old, found.new, (*reading.notes, *found.notes), line)


# --- characters that the file nowhere has ---------------------------------------------------------


def without_strangers(body: str, old: str, new: str) -> Reading | None:
    """Typographic characters that occur nowhere in the file are the model's, not the file's."""
    table = {
        code: plain for code, plain in LOOK_ALIKES.items() if chr(code) in old and chr(code) not in body
    }
    if not table:
        return None
    return Reading(old.translate(table), new.translate(table), ("typographic characters made plain",))


# --- a fence --------------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(```+|~~~+)[\w+.#-]*[ \t]*")


def without_fence(body: str, old: str, new: str) -> Reading | None:
    """A Markdown fence round the whole, unless the file has it there: then it is a part of the text."""
    inside = _fenced(old)
    if inside is None or any(edge in body for edge in _edges(old)):
        return None
    wanted = _fenced(new)
    if wanted is None and any(_FENCE.fullmatch(row) for row in _ends(new)):
        return None
    return Reading(inside, new if wanted is None else wanted, ("code fence removed",))


def _ends(text: str) -> tuple[str, str]:
    rows = text.strip("\n").split("\n")
    return rows[0], rows[-1]


def _fenced(text: str) -> str | None:
    rows = text.strip("\n").split("\n")
    opening = _FENCE.fullmatch(rows[0])
    if opening is None or len(rows) < 2 or rows[-1].strip() != opening[1]:
        return None
    # With an odd number of fences within, the last row closes one of those.
    if sum(row.lstrip(" \t").startswith(opening[1]) for row in rows[1:-1]) % 2:
        return None
    return "\n".join(rows[1:-1])


def _edges(text: str) -> list[str]:
    """The first two rows, and the last two: a fence with what stands next to it."""
    rows = text.strip("\n").split("\n")
    return ["\n".join(rows[:2]), "\n".join(rows[-2:])] if len(rows) > 2 else []


# --- line numbers ---------------------------------------------------------------------------------

_NUMBERED = re.compile(r"[ \t]*\[?L?(\d{1,9})(\t|→|\]? ?[|│]|[:)\]-]|\.(?= )| (?= ?)|$)(.*)", re.DOTALL)
_STRONG = ("\t", "→", "|", "│")


def without_numbers(body: str, old: str, new: str) -> Reading | None:
    """Line numbers in front of every line, counting on."""
    found = [_NUMBERED.fullmatch(row) for row in old.rstrip("\n").split("\n")]
    rows = [match for match in found if match]
    numbers = [int(match[1]) for match in rows]
    if len(rows) != len(found) or any(b != a + 1 for a, b in pairwise(numbers)):
        return None
    signs = {match[2].strip(" ") or " " for match in rows if match[2]}
    # `grep` writes `-` after the lines around a hit.
    if len(signs) != 1 and signs != {":", "-"}:
        return None
    mine = [match[3] for match in rows]
    theirs = _numbered_new(new, signs)
    if theirs is None:
        return None
    if theirs == new.split("\n"):
        # The file, or else the new text, shows whether a blank after the sign belongs to the line.
        with_blank, without = (int("\n".join(text[cut:] for text in mine) in body) for cut in (0, 1))
        if with_blank == without:
            with_blank, without = (
                sum((Counter(theirs) & Counter(text[cut:] for text in mine)).values()) for cut in (0, 1)
            )
        if with_blank == without:
            return None
        blank = without > with_blank
    else:
        blank = all(not text or text[0] == " " for text in (*mine, *theirs))
        theirs = [text[blank:] for text in theirs]
    if blank and any(text and text[0] != " " for text in mine):
        return None
    text = "\n".join(text[blank:] for text in mine) + ("\n" if old.endswith("\n") else "")
    sure = len(rows) > 1 and signs <= set(_STRONG)
    return Reading(text, "\n".join(theirs), ("line numbers removed",), None if sure else numbers[0])


def _numbered_new(new: str, signs: set[str]) -> list[str] | None:
    """What follows the numbers if all lines have them, all as it is if none has."""
    rows = new.split("\n")
    found = [_NUMBERED.fullmatch(row) for row in rows]
    having = [
        match is not None and ((match[2].strip(" ") or " ") in signs or not match[2]) for match in found
    ]
    filled = [has for has, row in zip(having, rows, strict=True) if not is_blank(row)]
    if not any(filled):
        return rows
    if not all(filled):
        return None
    return [match[3] if match and has else row for match, has, row in zip(found, having, rows, strict=True)]


# --- escaping -------------------------------------------------------------------------------------

_OTHER_ESCAPE = re.compile(r"\\([^nt\"])")
_LONG_QUOTE = re.compile("\"{3}|'{3}")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)|\\.")
_OPEN_PATTERN = re.compile(r"(?<![*/])/$|\[\^?$")
_JSON_INSIDE = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)


def unescaped(_: str, old: str, new: str) -> Reading | None:
    """The inside of a JSON string, escaped once too often."""
    if "\\" not in old or _JSON_INSIDE.fullmatch(old) is None or _JSON_INSIDE.fullmatch(new) is None:
        return None
    # Real line ends show that line ends were not escaped; then nor would `\n` stand for one.
    if "\n" in old.strip("\n") and "\\n" in old:
        return None
    if "\n" not in old and "\n" in new:
        return None
    mine, theirs = (_from_json(text) for text in (old, new))
    if mine is None or theirs is None:
        return None
    # An escaped backslash shows that the program's own escapes were escaped as well.
    if "\\\\" not in old and (_has_more_escapes(old, new) or _cuts_strings(mine, theirs)):
        return None
    return Reading(mine, theirs, ("escaping undone",))


def with_newlines(_: str, old: str, new: str) -> Reading | None:
    """`\\n` and `\\t` written out, all else plain."""
    if "\\n" not in old or "\n" in old or "\n" in new or "\\\\" in old + new:
        return None
    # Where it could be the inside of a JSON string too, both readings must write the same.
    if _has_more_escapes(old, new) and _from_json(new) is not None:
        return None
    mine, theirs = (re.sub(r"\\(?:r\\n|n)", "\n", text).replace("\\t", "\t") for text in (old, new))
    return None if _cuts_strings(mine, theirs) else Reading(mine, theirs, ("escaped line ends undone",))


def with_quotes(_: str, old: str, new: str) -> Reading | None:
    """Every quote with a backslash before it."""
    for quote in ('"', "'"):
        escaped = "\\" + quote
        if escaped not in old or old.count(quote) != old.count(escaped):
            continue
        if new.count(quote) != new.count(escaped) or ("\\n" in new and "\\n" not in old):
            return None
        return Reading(old.replace(escaped, quote), new.replace(escaped, quote), ("escaped quotes undone",))
    return None


def _from_json(text: str) -> str | None:
    try:
        decoded = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return decoded if isinstance(decoded, str) else None


def _has_more_escapes(old: str, new: str) -> bool:
    """Whether the new text has escapes, other than of quotes and blanks, that nothing in the old one explains."""
    return not set(_OTHER_ESCAPE.findall(new)) <= set(_OTHER_ESCAPE.findall(old))


def _cuts_strings(old: str, new: str) -> bool:
    """Whether a `\\n` or `\\t` that was undone in the new text may have been the program's own."""
    known = set(old.split("\n"))
    rows = [row for row in new.split("\n") if row not in known]
    # A string that was cut leaves a quote open, and one more where it ends.
    if any(map(_open_quotes, rows)) and sum(map(bool, map(_open_quotes, new.split("\n")))) > 1:
        return True
    return any(_OPEN_PATTERN.search(row) or any(map(_open_quotes, _before_tabs(row))) for row in rows)


def _before_tabs(row: str) -> Iterator[str]:
    return (row[: tab.start()] for tab in re.finditer("\t", row))


def _open_quotes(row: str) -> str:
    """The quotes that are still open at the end of the row."""
    bare = _APOSTROPHE.sub("", _LONG_QUOTE.sub("", row))
    return "".join(quote for quote in "\"'`" if bare.count(quote) % 2)


_ANY_NUMBER = re.compile(r"[ \t]*\[?L?\d{1,9}(?:\t|→|\]? ?[|│] ?|[:)\]-] ?|\. | {1,2}|$)")


def undressed(old: str) -> str:
    """A guess at the text behind numbers and escapes, good enough to look for what comes nearest."""
    if "\n" not in old and "\\n" in old:
        old = old.replace("\\n", "\n").replace('\\"', '"')
    rows = old.split("\n")
    if len(rows) > 1 and all(map(_ANY_NUMBER.match, filter(None, rows))):
        return "\n".join(_ANY_NUMBER.sub("", row) for row in rows)
    return old


# --- entities -------------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_RAW = {"<": "&lt;", ">": "&gt;"}
_RAW_AND = re.compile(rf"(?!{_ENTITY.pattern})&")


def without_entities(_: str, old: str, new: str) -> Reading | None:
    """`&lt;` for `<`, as from a tool call in XML."""
    if not _ENTITY.search(old):
        return None
    # A sign that stands raw beside its entity shows that the entity was meant.
    if any(raw in text and entity in text for raw, entity in _RAW.items() for text in (old, new)):
        return None
    # Raw signs for "and" show that those were not escaped; then `&amp;` would be the text's own.
    if _RAW_AND.search(old + new) and "&amp;" in old + new:
        return None
    mine, theirs = (_ENTITY.sub(lambda entity: html.unescape(entity[0]), text) for text in (old, new))
    return Reading(mine, theirs, ("entities undone",))


# --- diff signs -----------------------------------------------------------------------------------


def without_signs(_: str, old: str, new: str) -> Reading | None:
    """`-` and `+` in the first column, as in a diff."""
    removed, added = old.split("\n"), new.split("\n")
    if not _signed(removed, "-") or not _signed(added, "+"):
        return None
    return Reading(
        "\n".join(line[1:] for line in removed),
        "\n".join(line[1:] for line in added),
        ("diff signs removed",),
    )


def _signed(rows: list[str], sign: str) -> bool:
    return all(not row or row[0] in (sign, " ") for row in rows) and any(
        row.startswith(sign) for row in rows
    )


CLEANERS: tuple[Cleaner, ...] = (
    without_fence,
    without_numbers,
    unescaped,
    with_newlines,
    with_quotes,
    without_entities,
    without_signs,
)
