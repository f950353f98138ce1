"""Cleaning: what happened to the arguments on their way, undone in both or in neither."""

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
    plain = Reading(old, new)
    yield plain
    seen = {(old, new)}
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
    table = {code: plain for code, plain in LOOK_ALIKES.items() if chr(code) in old and chr(code) not in body}
    if not table:
        return None
    return Reading(old.translate(table), new.translate(table), ("typographic characters made plain",))


# --- a fence --------------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(```+|~~~+)[\w+.#-]*[ \t]*")


def without_fence(_: str, old: str, new: str) -> Reading | None:
    """A Markdown fence round the whole."""
    inside = _fenced(old)
    if inside is None:
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
    return "\n".join(rows[1:-1])


# --- line numbers ---------------------------------------------------------------------------------

_NUMBERED = re.compile(r"[ \t]*\[?L?(\d+)(\t|→|\]? ?[|│] ?|[:)\]-] ?|\. | {1,2}|$)(.*)", re.DOTALL)
_STRONG = ("\t", "→", "|", "│")


def without_numbers(_: str, old: str, new: str) -> Reading | None:
    """Line numbers in front of every line, counting on."""
    rows = old.rstrip("\n").split("\n")
    split = [_NUMBERED.fullmatch(row) for row in rows]
    found = [match for match in split if match]
    if len(found) != len(rows):
        return None
    numbers = [int(match[1][-9:]) for match in found]
    if any(b != a + 1 for a, b in zip(numbers, numbers[1:], strict=False)):
        return None
    marks = {match[2] for match in found if match[3]}
    strong = all(any(sign in mark for sign in _STRONG) for mark in marks)
    if len({mark.strip(" ") or " " for mark in marks} - {":", "-"}) > 1:
        return None
    wanted = _renumbered(new, marks)
    if wanted is None:
        return None
    tail = "\n" if old.endswith("\n") else ""
    text = "\n".join(_after(match, marks) for match in found) + tail
    return Reading(text, wanted, ("line numbers removed",), None if strong and len(rows) > 1 else numbers[0])


def _after(match: re.Match[str], marks: set[str]) -> str:
    """What follows the number; a blank after the sign belongs to it only if every line has one."""
    mark = match[2]
    text = match[3]
    return text if {mark} == marks or not mark.endswith(" ") or mark == " " else mark[len(mark.rstrip(" ")) :] + text


def _renumbered(new: str, marks: set[str]) -> str | None:
    """The new text without numbers if all its lines have them, as it is if none has."""
    rows = new.split("\n")
    split = [_NUMBERED.fullmatch(row) for row in rows]
    having = [match is not None and (match[2] in marks or not match[3]) for match in split]
    filled = [has for has, row in zip(having, rows, strict=True) if not is_blank(row)]
    if not any(filled):
        return new
    if not all(filled):
        return None
    return "\n".join(_after(match, marks) if match and has else row for match, has, row in zip(split, having, rows, strict=True))


# --- escaping -------------------------------------------------------------------------------------

_ESCAPE = re.compile(r"\\(?:[nrt\"'\\/bf]|u[0-9a-fA-F]{4})")
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
    decoded = [_from_json(text) for text in (old, new)]
    if decoded[0] is None or decoded[1] is None:
        return None
    return Reading(decoded[0], decoded[1], ("escaping undone",))


def with_newlines(_: str, old: str, new: str) -> Reading | None:
    """`\\n` and `\\t` written out, all else plain."""
    if "\\n" not in old or "\n" in old or "\n" in new:
        return None
    texts = [re.sub(r"\\(?:r\\n|n)", "\n", text).replace("\\t", "\t") for text in (old, new)]
    if any(_splits_quotes(text) for text in texts[1:]):
        return None
    return Reading(texts[0], texts[1], ("escaped line ends undone",))


def with_quotes(_: str, old: str, new: str) -> Reading | None:
    """Every quote with a backslash before it."""
    for quote in ('"', "'"):
        escaped = "\\" + quote
        if escaped not in old or old.count(quote) != old.count(escaped):
            continue
        if new.count(quote) != new.count(escaped):
            return None
        return Reading(old.replace(escaped, quote), new.replace(escaped, quote), ("escaped quotes undone",))
    return None


def _from_json(text: str) -> str | None:
    try:
        decoded = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return decoded if isinstance(decoded, str) else None


def _splits_quotes(text: str) -> bool:
    """Whether a line end falls between two quotes, where it was a `\\n` of the program."""
    return any(line.count('"') % 2 or line.count("'") % 2 for line in text.split("\n"))


# --- entities -------------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_RAW = {"<": "&lt;", ">": "&gt;"}


def without_entities(_: str, old: str, new: str) -> Reading | None:
    """`&lt;` for `<`, as from a tool call in XML."""
    if not _ENTITY.search(old):
        return None
    # A sign that stands raw beside its entity shows that the entity was meant.
    if any(raw in text and entity in text for raw, entity in _RAW.items() for text in (old, new)):
        return None
    return Reading(html.unescape(old), html.unescape(new), ("entities undone",))


# --- diff signs -----------------------------------------------------------------------------------


def without_signs(_: str, old: str, new: str) -> Reading | None:
    """`-` and `+` in the first column, as in a diff."""
    removed, added = old.split("\n"), new.split("\n")
    if not _signed(removed, "-") or not _signed(added, "+"):
        return None
    return Reading("\n".join(line[1:] for line in removed), "\n".join(line[1:] for line in added), ("diff signs removed",))


def _signed(rows: list[str], sign: str) -> bool:
    return all(not row or row[0] in (sign, " ") for row in rows) and any(row.startswith(sign) for row in rows)


CLEANERS: tuple[Cleaner, ...] = (
    without_strangers,
    without_fence,
    without_numbers,
    unescaped,
    with_newlines,
    with_quotes,
    without_entities,
    without_signs,
)
