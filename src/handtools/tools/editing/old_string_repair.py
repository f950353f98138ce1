"""Repairs of common mistakes in `old_string` and `new_string`: other readings to try against the file.

Repairs undo code fences, line numbers, escapes, entities, diff markers, typographic characters and typos.
Each repair of `old_string` is applied to `new_string` too. A typo is corrected only if it can't be a
different word.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from handtools.tools.editing.normalized_lines import LOOK_ALIKES, is_blank

_WORDS = """
abort about accent accept adapt adapted adapter adopt adopted adopter after alike alive alone along alter
among angel angle assert asserts asset assets atone backed backend bared barred bases basics basis beads beams
beard bears began begin being bench berms black blank blink block blown board boarder border brawn bread bride
bridge bring broad brown bunch caches caching cafile calls canal caption cards cares carnal carts cased cases
casing casting casts casual catches catching catfile causal cause caused causes causing caution cells chance
chances change changes charge chars charts choose chose chtype clarify clarity clash clause clauses cleaned
cleaning cleanly cleans cleared clearing clearly clears click clock clone cloned cloning close closed closer
closing clover clown coarse codecs codes coding comes coming command commend commute compact compat compete
compiled compilers compiles complement complete complied compliment compute confirm conform consumers consumes
contact content contents contest context contexts contiguous continuous contract contrast cores costs count
country county course court cover crash crate create crown ctype curse curses curves dairy deals death decay
decide decided decides deciding decls decode decoded decodes decoding defect delay depth derive desert dessert
detect device devise diary direct dirent drain drawn drive drown edited editing edits elseif elsif emits exist
existed existing exists exited exiting exits expensive extensive failing fails falling falls falter farce
favor fdopen fflush fiber files filling fills filter finder finding finer fired fitter fixed fixer fixes flags
flame flaps flavor flown flush fname folks fopen force forced forcing forget forgot forked forking forks
formed forms forth fourth frame fread freed frown funding gained getgid getpid getppid getuid grace grade
grained grape groan grope grown handed handled handlers handles hands hangs hatch header heads heaps hears
heater hitch hoisted horse hosted house ident identifiers identifies identify identities identity ifdef ifndef
impart import indeed indent indexed infer initializers initializes inner insect insert inserted inset inspect
install instill intent inter internal internals interval intervals invert inverted keyed keygen keyid keylen
lacking lacks latent later latest latter layer leader leading leads leaking leaks leaps leaving letter
libexslt libxslt lines linker linking links linter linting listing lives loader loading loads locale locales
locals locate locked locking locks logger longer looked looking looks looping loops lords loser lover lower
macos macro macros maker making manage managers manages manpage march marked marker marking marks masked masks
massage master match matchers matches matter message micro mkdtemp mkstemp mktime modal model models modes
modifiers modifies modules modulus moves mtime muster mutter naive native never newer nodejs nodes noise noose
notes older order outline outlive overlay overly packed packet packing packs pager paint painter palace paper
parens parent parentheses parenthesis parents parity parse parsed parser parsers parses parsing parts party
passed passer passes passing passwd patch patent patents pause paused peace phase phone photo phrase picked
picking picks pitch place plane planed planet planing planned planning plant plate pocket point pointed
pointer pointing points polling pooling porting ports poser posting posts power prefs prepend present
presented presents preset press pretend prevent prevented prevents price prime print printed printer printing
prints prize probe produces products project projects prone properly property prose protect protects proto
prove providers provides purse qualify quality quiet quite quote races rates react reader readers reads
realpath rebind redact refuse refused related relaxed relay relies relpath remain remains remote remove render
renders replay replies reply report require requite reside resize resolve resort retain retains reuse reused
reversed reverted revise revive revolve rewind roads roles rouse route rules safely safety sample sampler
saves saving saying scale scare scared scarred schemas schemes scope score scout script scrypt search seeing
seeking semctl semver series server servers serves setgid setsid setting setuid sever shade shake shall
shallow shame shape shapes share shares shell shift shims shipped shipping ships shirt shmctl shone shore
shout shows sides simple simpler singe single sites sitting sizes skipped skipping skips slack slash slaves
slice slots slows small smart smoke snake sneak snprintf space spade spans spawns speak specifics specifiers
specifies speed spend spilt splice split spoke spore sport spout spring sprintf srand stable stack staff stage
staged stages stake stale stand staple starch stare staring starred stars start started starts stash state
stated states stats statue stature status statute stays stdio steak steam stepping steps stick sting stitch
stoke stone stopping stops storage store storing stout stowage stream strict stride strike string stripe
strlen strnlen strobe stroke strong struct stubtest stuck studio stuff style sublet submit subnet subset subst
subtest suites summary summery summit swallow swash swift switch taken teams terms tests texts thank thanks
theme there these things think thinks those though thread three threw through throughout throughput throw
thunk timers times tithe title token touch tough traced tracer traces tracing track tracked tracker tracking
tracks trail tread trees trial trick tries truck trunk tuned turned ulink unable unbind undef unicode unicore
unlink unload unloaded unref unwind uplink upload uploaded uptime usable utime value values valve valves
vector verify versify vertex victor vortex waiting waits wants watch whenever wherever while white whole whose
widow window witch wording words working works world worms would write writers writes writing wrote
"""
CONFUSABLE_WORDS = frozenset(_WORDS.split())

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
MIN_LETTERS_OF_A_WORD = 5
LONG_BLOCK_LINES = 8
# The rest of the block must be recognisable without the misspelt word.
MIN_LETTERS_AROUND_TYPO = 10
_MAX_LOOKED_FOR = 50


def typo_corrections(body: str, old: str) -> Iterator[dict[str, str]]:
    """Yield spelling corrections (wrong: right) after which every word of `old` occurs in the file."""
    words = set(_WORD.findall(old))
    lines = len([line for line in old.split("\n") if line.strip()])
    most = 2 if lines >= LONG_BLOCK_LINES else 1
    # Most text that is not in the file has many unknown words: detect that before splitting the file into
    # words.
    absent = (word for word in islice(words, _MAX_LOOKED_FOR) if word not in body)
    if len(list(islice(absent, most + 1))) > most:
        return
    known = set(_WORD.findall(body))
    strange = sorted(words - known)
    around = sum(map(len, words & known))
    if not 0 < len(strange) <= most or around < MIN_LETTERS_AROUND_TYPO:
        return
    choices = [[word for word in sorted(known) if is_typo_of(bad, word)] for bad in strange]
    if not all(choices):
        return
    for first in choices[0]:
        for second in choices[1] if len(choices) > 1 else [""]:
            yield dict(zip(strange, (first, second), strict=False))


def with_typos_corrected(text: str, spelling: dict[str, str]) -> str:
    """Replace misspelt words in a text with their corrections."""
    return _WORD.sub(lambda word: spelling.get(word[0], word[0]), text)


def is_typo_of(bad: str, word: str) -> bool:
    """Whether `bad` is `word` with one typing error inside a part of the name, and not a different name."""
    if (
        abs(len(bad) - len(word)) > 1
        or min(len(bad), len(word)) < MIN_LETTERS_OF_A_WORD
        or bad[0] != word[0]
    ):
        return False
    from rapidfuzz.distance import OSA

    if OSA.distance(bad, word, score_cutoff=1) != 1:
        return False
    head = _common_prefix_length(bad, word)
    tail = min(_common_prefix_length(bad[::-1], word[::-1]), len(bad) - head, len(word) - head)
    changed = bad[head : len(bad) - tail] + word[head : len(word) - tail]
    # A different digit makes a different number, and `a__b` is a different name from `a_b`.
    if not changed.isalpha():
        return False
    if (
        bad.lower() == word.lower()
        or _differ_by_last_letter(bad, word)
        or _differ_by_last_letter(word, bad)
    ):
        return False
    if all(_name_part_at(text, head) in CONFUSABLE_WORDS for text in (bad, word)):
        return False
    return _is_swapped_or_doubled(bad, word, head) or _is_inside_name_part(word, head, len(word) - tail)


def _name_part_at(text: str, at: int) -> str:
    """Return, in lower case, the part of a camelCase or snake_case name at a character index."""
    return next((part[0].lower() for part in _PART.finditer(text) if part.start() <= at < part.end()), "")


def _differ_by_last_letter(longer: str, shorter: str) -> bool:
    """Whether two words differ only by the last letter of a name part, as `user` and `users` do."""
    return any(
        longer[: part.end() - 1] + longer[part.end() :] == shorter for part in _PART.finditer(longer)
    )


def _is_swapped_or_doubled(bad: str, word: str, head: int) -> bool:
    """Whether two words differ by swapped letters or a doubled one: a typing error, not another name."""
    if len(bad) == len(word):
        pair = bad[head : head + 2]
        return pair == word[head : head + 2][::-1] and (head + 2 < len(word) or _has_long_last_part(word))
    longer = max(bad, word, key=len)
    return longer[head] == longer[head - 1]


def _has_long_last_part(word: str) -> bool:
    """Whether the last part of a name is long enough to be a word; `xy` and `yx` may both be names."""
    return len([*_PART.finditer(word)][-1][0]) >= MIN_LETTERS_OF_A_WORD


def _is_inside_name_part(word: str, start: int, end: int) -> bool:
    """Whether a difference lies between the first and the last letter of a part of a name.

    At the edge of a part it makes a different word: `user` and `users`, `parse` and `parser`, `row_a` and
    `row_b`.
    """
    return any(
        part.start() < start and end < part.end()
        for part in _PART.finditer(word)
        if len(part[0]) >= MIN_LETTERS_OF_A_WORD - 1
    )


def _common_prefix_length(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class ArgumentReading:
    """One reading of an edit's arguments: `old_string` and `new_string` after repairs, with notes."""

    old: str
    new: str
    notes: tuple[str, ...] = ()
    line: int | None = None


ArgumentRepairRule = Callable[[str, str, str], ArgumentReading | None]


def argument_readings(body: str, old: str, new: str) -> Iterator[ArgumentReading]:
    """Yield the arguments of an edit as sent, then with one repair, then with two."""
    # First replace typographic characters that never occur in the file: they can't match exactly, and loose
    # matching would ignore more than these.
    plain = repair_typography(body, old, new) or ArgumentReading(old, new)
    # Context lines of a diff look like lines of the file indented by one more space, so loose matching
    # would accept them and write the `+` of the added lines into the file.
    unsigned = repair_diff_signs(body, old, new)
    layer = [plain] if unsigned is None or unsigned.old not in body else [unsigned, plain]
    yield from layer
    seen = {(reading.old, reading.new) for reading in layer}
    for _ in range(2):
        cleaned = [again for reading in layer for again in _repaired_readings(body, reading)]
        layer = []
        for reading in cleaned:
            if (reading.old, reading.new) not in seen and reading.old.strip():
                seen.add((reading.old, reading.new))
                layer.append(reading)
                yield reading


def _repaired_readings(body: str, reading: ArgumentReading) -> Iterator[ArgumentReading]:
    for cleaner in ARGUMENT_REPAIRS:
        if (found := cleaner(body, reading.old, reading.new)) is not None:
            line = found.line if found.line is not None else reading.line
            yield ArgumentReading(found.old, found.new, (*reading.notes, *found.notes), line)


# --- characters that never occur in the file ------------------------------------------------------


def repair_typography(body: str, old: str, new: str) -> ArgumentReading | None:
    """Replace typographic characters of `old_string` that the file lacks with plain ones.

    Returns None if there are none.
    """
    table = {
        code: plain for code, plain in LOOK_ALIKES.items() if chr(code) in old and chr(code) not in body
    }
    if not table:
        return None
    return ArgumentReading(
        old.translate(table), new.translate(table), ("typographic characters made plain",)
    )


# --- a fence --------------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(```+|~~~+)[\w+.#-]*[ \t]*")


def repair_code_fence(body: str, old: str, new: str) -> ArgumentReading | None:
    """Remove a Markdown code fence around both arguments of an edit.

    Returns None if there is no fence or the file contains it too.
    """
    inside = _text_inside_fence(old)
    if inside is None or any(edge in body for edge in _outer_line_pairs(old)):
        return None
    wanted = _text_inside_fence(new)
    if wanted is None and any(_FENCE.fullmatch(row) for row in _first_and_last_line(new)):
        return None
    return ArgumentReading(inside, new if wanted is None else wanted, ("code fence removed",))


def _first_and_last_line(text: str) -> tuple[str, str]:
    rows = text.strip("\n").split("\n")
    return rows[0], rows[-1]


def _text_inside_fence(text: str) -> str | None:
    rows = text.strip("\n").split("\n")
    opening = _FENCE.fullmatch(rows[0])
    if opening is None or len(rows) < 2 or rows[-1].strip() != opening[1]:
        return None
    # If the number of inner fences is odd, the last row closes an inner one.
    if sum(row.lstrip(" \t").startswith(opening[1]) for row in rows[1:-1]) % 2:
        return None
    return "\n".join(rows[1:-1])


def _outer_line_pairs(text: str) -> list[str]:
    """Return the first two and last two rows of a text, where a fence and the line next to it would be."""
    rows = text.strip("\n").split("\n")
    return ["\n".join(rows[:2]), "\n".join(rows[-2:])] if len(rows) > 2 else []


# --- line numbers ---------------------------------------------------------------------------------

_NUMBERED = re.compile(r"[ \t]*\[?L?(\d{1,9})(\t|→|\]? ?[|│]|[:)\]-]|\.(?= )| (?= ?)|$)(.*)", re.DOTALL)
_STRONG = ("\t", "→", "|", "│")


def repair_line_numbers(body: str, old: str, new: str) -> ArgumentReading | None:
    """Remove ascending line numbers in front of every line of an edit's arguments.

    Returns None if some lines have no number.
    """
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
        # The file, or otherwise the new text, shows whether a space after the separator belongs to the
        # line.
        with_blank, without = (int("\n".join(text[cut:] for text in mine) in body) for cut in (0, 1))
        if with_blank == without:
            with_blank, without = (
                sum((Counter(theirs) & Counter(text[cut:] for text in mine)).values()) for cut in (0, 1)
            )
        if with_blank == without:
            return None
        blank = without > with_blank
    else:
        # If the file has the space there too, it belongs to the line.
        blank = "\n".join(mine) not in body and all(not text or text[0] == " " for text in (*mine, *theirs))
        theirs = [text[blank:] for text in theirs]
    if blank and any(text and text[0] != " " for text in mine):
        return None
    text = "\n".join(text[blank:] for text in mine) + ("\n" if old.endswith("\n") else "")
    sure = len(rows) > 1 and signs <= set(_STRONG)
    return ArgumentReading(text, "\n".join(theirs), ("line numbers removed",), None if sure else numbers[0])


def _numbered_new(new: str, signs: set[str]) -> list[str] | None:
    """Return the lines of `new_string` without line numbers; None if only some lines have them."""
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
    return [match[3] if match else row for match, row in zip(found, rows, strict=True)]


# --- escaping -------------------------------------------------------------------------------------

_OTHER_ESCAPE = re.compile(r"\\([^nt\"])")
_LONG_QUOTE = re.compile("\"{3}|'{3}")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)|\\.")
_OPEN_PATTERN = re.compile(r"(?<![*/])/$|\[\^?$")


def repair_json_escapes(_: str, old: str, new: str) -> ArgumentReading | None:
    """Decode edit arguments that were JSON-escaped once too often; None if they were not."""
    if "\\" not in old:
        return None
    # Real line endings show that line endings were not escaped, so `\n` does not stand for one either.
    if "\n" in old.strip("\n") and "\\n" in old:
        return None
    if "\n" not in old and "\n" in new:
        return None
    mine, theirs = (_decode_json_escapes(text) for text in (old, new))
    if mine is None or theirs is None:
        return None
    # An escaped backslash shows that escapes in the source code were escaped as well.
    if "\\\\" not in old and (_has_more_escapes(old, new) or _cuts_strings(mine, theirs)):
        return None
    return ArgumentReading(mine, theirs, ("escaping undone",))


def repair_newline_escapes(_: str, old: str, new: str) -> ArgumentReading | None:
    r"""Turn `\n` and `\t` written out in edit arguments into line feeds and tabs.

    Returns None if that is not safe.
    """
    if "\\n" not in old or "\n" in old or "\n" in new or "\\\\" in old + new:
        return None
    # Ambiguous: the arguments could also be JSON-escaped, and decoding them as JSON would give a different
    # text.
    if _has_more_escapes(old, new) and _decode_json_escapes(new) is not None:
        return None
    mine, theirs = (re.sub(r"\\(?:r\\n|n)", "\n", text).replace("\\t", "\t") for text in (old, new))
    return (
        None if _cuts_strings(mine, theirs) else ArgumentReading(mine, theirs, ("escaped newlines undone",))
    )


def repair_quote_escapes(_: str, old: str, new: str) -> ArgumentReading | None:
    """Remove the backslash before every quote of edit arguments; None if some quote has no backslash."""
    for quote in ('"', "'"):
        escaped = "\\" + quote
        if escaped not in old or old.count(quote) != old.count(escaped):
            continue
        if new.count(quote) != new.count(escaped) or ("\\n" in new and "\\n" not in old):
            return None
        return ArgumentReading(
            old.replace(escaped, quote), new.replace(escaped, quote), ("escaped quotes undone",)
        )
    return None


def _decode_json_escapes(text: str) -> str | None:
    try:
        decoded = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return decoded if isinstance(decoded, str) else None


def _has_more_escapes(old: str, new: str) -> bool:
    r"""Whether `new` has escape sequences, other than `\n`, `\t` and `\"`, that do not occur in `old`."""
    return not set(_OTHER_ESCAPE.findall(new)) <= set(_OTHER_ESCAPE.findall(old))


def _cuts_strings(old: str, new: str) -> bool:
    r"""Whether a `\n` or `\t` decoded in the new text may belong inside a string literal of the program."""
    known = set(old.split("\n"))
    rows = [row for row in new.split("\n") if row not in known]
    # A string literal split by a line feed has an unbalanced quote on each of its two lines.
    if any(map(_open_quotes, rows)) and sum(map(bool, map(_open_quotes, new.split("\n")))) > 1:
        return True
    return any(_OPEN_PATTERN.search(row) or any(map(_open_quotes, _texts_before_tabs(row))) for row in rows)


def _texts_before_tabs(row: str) -> Iterator[str]:
    return (row[: tab.start()] for tab in re.finditer("\t", row))


def _open_quotes(row: str) -> str:
    """Return the quote characters that are still open at the end of a row of code."""
    bare = _APOSTROPHE.sub("", _LONG_QUOTE.sub("", row))
    return "".join(quote for quote in "\"'`" if bare.count(quote) % 2)


_ANY_NUMBER = re.compile(r"[ \t]*\[?L?\d{1,9}(?:\t|→|\]? ?[|│] ?|[:)\]-] ?|\. | {1,2}|$)")


def without_numbers_and_escapes(old: str) -> str:
    """Strip apparent line numbers and escapes from `old_string`, to find the nearest lines of the file."""
    if "\n" not in old and "\\n" in old:
        old = old.replace("\\n", "\n").replace('\\"', '"')
    rows = old.split("\n")
    if len(rows) > 1 and all(map(_ANY_NUMBER.match, filter(None, rows))):
        return "\n".join(_ANY_NUMBER.sub("", row, count=1) for row in rows)
    return old


# --- entities -------------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_RAW = {"<": "&lt;", ">": "&gt;"}
_RAW_AND = re.compile(rf"(?!{_ENTITY.pattern})&")


def repair_xml_entities(_: str, old: str, new: str) -> ArgumentReading | None:
    """Decode XML entities such as `&lt;` in edit arguments.

    Returns None if there are none or they may be intended.
    """
    if not _ENTITY.search(old):
        return None
    # If a text has both the raw character and its entity, the entity is intended.
    if any(raw in text and entity in text for raw, entity in _RAW.items() for text in (old, new)):
        return None
    # A raw `&` shows that ampersands were not escaped, so `&amp;` belongs to the text.
    if _RAW_AND.search(old + new) and "&amp;" in old + new:
        return None
    mine, theirs = (_ENTITY.sub(lambda entity: html.unescape(entity[0]), text) for text in (old, new))
    return ArgumentReading(mine, theirs, ("entities undone",))


# --- diff signs -----------------------------------------------------------------------------------


def repair_diff_signs(_: str, old: str, new: str) -> ArgumentReading | None:
    """Remove diff markers from the first column of edit arguments.

    Returns None if they are not a diff that adds lines.
    """
    removed, added = old.split("\n"), new.split("\n")
    if not _has_diff_signs(removed, "-") or not _has_diff_signs(added, "+"):
        return None
    if not any(row.startswith("+") for row in added):
        return None
    return ArgumentReading(
        "\n".join(line[1:] for line in removed),
        "\n".join(line[1:] for line in added),
        ("diff signs removed",),
    )


def _has_diff_signs(rows: list[str], sign: str) -> bool:
    return all(not row or row[0] in (sign, " ") for row in rows)


ARGUMENT_REPAIRS: tuple[ArgumentRepairRule, ...] = (
    repair_code_fence,
    repair_line_numbers,
    repair_json_escapes,
    repair_newline_escapes,
    repair_quote_escapes,
    repair_xml_entities,
    repair_diff_signs,
)
