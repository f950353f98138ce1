"""Refusals of an edit: why, where, and the `old_string` to send instead; rendered as text for the model."""

from collections import Counter
from itertools import pairwise

from handtools.text import lines
from handtools.text.diffs.unified_diff import diff_line_edits
from handtools.tools.editing import old_string_repair
from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    EditCandidate,
    EditRefused,
    Excerpt,
    MatchHint,
    RefusalCode,
    UnclearEdit,
)
from handtools.tools.editing.indentation import INDENT_SAMPLE_LINES, TAB, indent_step
from handtools.tools.editing.nearest_lines import find_nearest_lines
from handtools.tools.editing.normalized_lines import LineIndex, is_blank, normalize_for_matching

_MAX_SHOWN = 5
_MAX_AROUND = 8
_ADD_TEXT_HINT = "Add surrounding text so that only one place fits"
_MORE_LINES_HINT = "Send those lines with enough lines around them to be unique."
_MIN_LETTERS_PRESENT = 16
# Increases that count as one level. Others come from continuation lines that are aligned with the line
# above.
_LEVELS = (1, 2, 3, 4, 8)


def refuse_not_found(line_index: LineIndex, olds: list[str], new: str) -> EditRefused:
    """Refuse an edit whose old text is not in the file, and show the nearest lines.

    `olds` are the possible readings of the old text.
    """
    old = reading_most_like_file(line_index, olds)
    window = find_nearest_lines(line_index, old)
    present = _new_text_location_note(line_index, old, new)
    if window is None:
        return EditRefused(
            code="not_found",
            message=f"old_string does not occur in the file, nor does anything like it.{present}",
            hint="Read the file again, and check that it is the right one.",
        )
    unique = _lines_unique_in_file(line_index, window.line - 1, window.end_line)
    return EditRefused(
        code="not_found",
        message=f"old_string does not occur in the file.{present} Nearest: {window.where}.",
        hint="If you mean those lines, send old_string as above." if unique else _MORE_LINES_HINT,
        nearest_excerpt=window,
        differences=difference_rows(old, window),
        suggestion=unique,
    )


def _new_text_location_note(line_index: LineIndex, old: str, new: str) -> str:
    """Return a sentence that says where the new text already occurs in the file; empty if it does not."""
    wanted = lines.convert_line_ends(new, "\n").strip("\n")
    if sum(map(str.isalnum, wanted)) < _MIN_LETTERS_PRESENT or wanted in lines.convert_line_ends(old, "\n"):
        return ""
    at = line_index.text_with_line_feeds.find(wanted)
    return (
        f" new_string is already there, at line {lines.line_number_at(line_index.text_with_line_feeds, at)}."
        if at >= 0
        else ""
    )


def reading_most_like_file(line_index: LineIndex, olds: list[str]) -> str:
    """Return the reading of `old_string` that has the most lines in common with the file."""
    known = set(line_index.normalized_text.split("\n"))
    readings = dict.fromkeys([*olds, old_string_repair.without_numbers_and_escapes(olds[0])])

    def worth(old: str) -> tuple[int, int]:
        keys = normalize_for_matching(old).split("\n")
        return sum(len(key) for key in keys if key in known), -sum(key not in known for key in keys)

    return max(readings, key=worth)


def refuse_unclear(
    line_index: LineIndex, unclear: UnclearEdit, first: int, last: int, old: str
) -> EditRefused:
    """Refuse an edit whose place is known but whose result is unclear, quoting the lines at that place."""
    window = line_index.excerpt_of_lines(first, last)
    message = f"{unclear} ({window.where})"
    if unclear.hint:
        return EditRefused(code=unclear.code, message=message, hint=unclear.hint)
    form = _indentation_note(line_index, first, last) if unclear.code == "indent_conflict" else ""
    unique = _lines_unique_in_file(line_index, first, last)
    send = "Send old_string as above" if unique else _MORE_LINES_HINT.rstrip(".")
    return EditRefused(
        code=unclear.code,
        message=message,
        hint=f"{send}, and format new_string the same way.{form}",
        nearest_excerpt=window,
        differences=difference_rows(old, window),
        suggestion=unique,
    )


def _indentation_note(line_index: LineIndex, first: int, last: int) -> str:
    """Return a sentence that says what one level of indentation is near the lines; empty if unknown."""
    depths = {
        lines.indentation_of_line(row)
        for row in line_index.lines_without_ends[first:last]
        if not is_blank(row)
    } - {""}
    near = line_index.lines_without_ends[max(0, first - INDENT_SAMPLE_LINES) : last + INDENT_SAMPLE_LINES]
    signs = set("".join(depths)) or set(indent_step(near) or "")
    if signs == {TAB}:
        return " One level here is a tab."
    # If tabs and spaces are mixed, no width is right for every line.
    unit = (
        0
        if TAB in signs
        else _usual_indent_width(near) or _usual_indent_width(line_index.lines_without_ends)
    )
    return f" One level here is {unit} space{'s' * (unit > 1)}." if unit else ""


def _usual_indent_width(rows: list[str]) -> int:
    """Return the most frequent increase of indentation between neighbouring lines, in spaces, or 0."""
    # Lines that begin with `*` continue a block comment, indented by one more space than its start.
    depths = [
        lines.indentation_of_line(row)
        for row in rows
        if not is_blank(row) and not row.lstrip().startswith("*")
    ]
    widths = Counter(
        len(deep) - len(shallow)
        for shallow, deep in pairwise(depths)
        if deep.startswith(shallow) and TAB not in deep
    )
    width = max(_LEVELS, key=lambda width: widths[width])
    return width if widths[width] else 0


def refuse_ambiguous(
    line_index: LineIndex, found: list[int], old: str, *, or_more: bool = False, exact: bool = False
) -> EditRefused:
    """Refuse an edit that fits several places, with an `old_string` for each that is unique to it.

    `or_more` means that the search stopped early, so there may be more places. `exact` means that `old` is
    what was sent and occurs verbatim, so that `replace_all` would work.
    """
    height = lines.count_lines(old.rstrip("\r\n"))
    rows = list(dict.fromkeys(found))
    shown = rows[:_MAX_SHOWN]
    places = tuple(
        EditCandidate(
            line,
            _stripped_line(line_index, line),
            _lines_unique_in_file(line_index, line - 1, line - 1 + height, widen=True),
        )
        for line in shown
    )
    where = ", ".join(_line_with_count(line, found.count(line)) for line in shown)
    count = f"{len(found)} or more" if or_more else len(found)
    dots = " ..." if or_more or len(rows) > len(shown) else ""
    return EditRefused(
        code="ambiguous",
        message=f"old_string fits {count} places: line{'s' * (len(rows) > 1)} {where}{dots}.",
        hint=f"{_ADD_TEXT_HINT}.",
        candidates=places,
        replace_all_hint=f"{_ADD_TEXT_HINT}, or set `replace_all` to change all." if exact else "",
    )


def _line_with_count(line: int, count: int) -> str:
    return str(line) if count == 1 else f"{line} ({count} times)"


def refuse_ambiguous_elision(line_index: LineIndex, spans: list[tuple[int, int]]) -> EditRefused:
    """Refuse an edit with elided lines that fits several places; show each in full, the shortest first."""
    likely = sorted(spans, key=lambda span: (span[1] - span[0], span))[:_MAX_SHOWN]
    places = tuple(
        EditCandidate(
            first + 1,
            line_index.lines_without_ends[first].strip(),
            _lines_unique_in_file(line_index, first, last),
        )
        for first, last in likely
    )
    why = f"old_string fits {len(spans)} places" if len(spans) > 1 else "old_string is ambiguous"
    return EditRefused(
        code="ambiguous",
        message=f"With lines left out, {why}.",
        hint="Send all lines of the place you mean, as above.",
        candidates=places,
    )


def refuse_elsewhere(line_index: LineIndex, found: list[int], hint: MatchHint) -> EditRefused:
    """Refuse an edit whose old text occurs, but not near the hint's line."""
    where = ", ".join(map(str, found[:_MAX_SHOWN]))
    return EditRefused(
        code="not_found",
        message=f"old_string does not occur near line {hint.line}; it occurs at line {where}.",
        hint="Put the number of the right place in the header.",
        candidates=tuple(
            EditCandidate(line, _stripped_line(line_index, line)) for line in found[:_MAX_SHOWN]
        ),
    )


def refuse_inside_word(line_index: LineIndex, line: int, old: str) -> EditRefused:
    """Refuse an edit whose only match is part of a longer word or number that it would change."""
    why = f"old_string occurs only inside a longer word or number (line {line})."
    return _refuse_quoting_whole_lines(line_index, line, old, "inside_word", why)


def refuse_line_cut_in_two(line_index: LineIndex, line: int, old: str) -> EditRefused:
    """Refuse an edit whose last old line continues in the file, so that added lines would split it."""
    why = "The last line of old_string continues in the file, and the added lines would split it."
    return _refuse_quoting_whole_lines(line_index, line, old, "unclear", why)


def refuse_forgotten_line_end(line_index: LineIndex, line: int) -> EditRefused:
    """Refuse an edit whose `new_string` lacks `old_string`'s line ending, which would join two lines."""
    return EditRefused(
        code="unclear",
        message=f"old_string ends with a newline but new_string does not, so line {line} would be joined.",
        hint="End both or neither with a newline. To join the lines, send both of them in old_string.",
        nearest_excerpt=line_index.excerpt_of_lines(line - 1, line),
    )


def refuse_old_without_indentation(line_index: LineIndex, line: int, old: str) -> EditRefused:
    """Refuse an edit whose `old_string` lacks the indentation that the depth of added lines depends on."""
    why = f"old_string leaves out the indentation of line {line}, so the depth of added lines is unclear."
    return _refuse_quoting_whole_lines(line_index, line, old, "indent_conflict", why)


def refuse_stale(line_index: LineIndex, first: int, last: int) -> EditRefused:
    """Refuse an edit of lines that someone else changed since the agent read them."""
    window = line_index.excerpt_of_lines(first, last)
    return EditRefused(
        code="stale",
        message=f"The text at {window.where} has changed since you read it.",
        hint="Check the lines above and edit their current text.",
        nearest_excerpt=window,
        suggestion=_lines_unique_in_file(line_index, first, last),
    )


def render_refusal(refusal: EditRefused | AlreadyApplied) -> str:
    """Render a refusal as text for the model; lines that it can send are in code fences."""
    if isinstance(refusal, AlreadyApplied):
        return f"The change is already in the file, at {refusal.where}."
    parts = [refusal.message]
    if refusal.nearest_excerpt and refusal.suggestion is None:
        parts.append(
            lines.render_numbered_lines(refusal.nearest_excerpt.lines, refusal.nearest_excerpt.line)
        )
    parts += refusal.differences
    for place in refusal.candidates:
        parts.append(f"line {place.line}: {place.text}")
        if place.old is not None:
            parts.append(f"old_string for line {place.line}:\n{_with_code_fence(place.old)}")
    if refusal.suggestion is not None:
        parts.append(f"old_string:\n{_with_code_fence(refusal.suggestion)}")
    return "\n".join(filter(None, [*parts, refusal.hint]))


def _stripped_line(line_index: LineIndex, line: int) -> str:
    """Return the text of a line, stripped; empty beyond the end of the file."""
    return (
        line_index.lines_without_ends[line - 1].strip()
        if line <= len(line_index.lines_without_ends)
        else ""
    )


def difference_rows(old: str, excerpt: Excerpt) -> tuple[str, ...]:
    """List the lines that differ between `old` and the file, with tabs and edge blanks made visible."""
    mine, theirs = old.rstrip("\n").split("\n"), list(excerpt.lines)
    shown: list[str] = []
    for edit in diff_line_edits(mine, theirs):
        for sign, rows in (
            ("- ", mine[edit.start_a : edit.end_a]),
            ("+ ", theirs[edit.start_b : edit.end_b]),
        ):
            shown += [sign + with_visible_blanks(row) for row in rows[:4]]
        if len(shown) >= 8:
            break
    return ("difference (- old_string, + file; → tab, · leading/trailing space):", *shown) if shown else ()


def with_visible_blanks(line: str) -> str:
    """Show tabs and leading and trailing spaces as symbols, and unprintable characters by their code."""
    body = line.strip(" \t")
    head = line[: len(line) - len(line.lstrip(" \t"))]
    tail = line[len(head) + len(body) :]
    signs = str.maketrans({"\t": "→", " ": "·"})
    odd = "".join(c if c.isprintable() or c == "\t" else f"\\u{ord(c):04x}" for c in body)
    return head.translate(signs) + odd.replace("\t", "→") + tail.translate(signs)


def _refuse_quoting_whole_lines(
    line_index: LineIndex, line: int, old: str, code: RefusalCode, why: str
) -> EditRefused:
    last = line - 1 + max(1, lines.count_lines(old))
    unique = _lines_unique_in_file(line_index, line - 1, last)
    return EditRefused(
        code=code,
        message=why,
        hint="Send whole lines, as above." if unique else _MORE_LINES_HINT,
        nearest_excerpt=line_index.excerpt_of_lines(line - 1, last),
        suggestion=unique,
    )


def _lines_unique_in_file(
    line_index: LineIndex, first: int, last: int, *, widen: bool = False
) -> str | None:
    """Return the lines with enough lines around them to be unique in the file.

    Returns None if that is not possible.
    """
    for around in range(1 if widen else 0, _MAX_AROUND + 1):
        for low, high in ((first - around, last), (first - around, last + around)):
            text = "\n".join(line_index.lines_without_ends[max(0, low) : high])
            if (
                text.strip()
                and line_index.text_with_line_feeds.find(
                    text, line_index.text_with_line_feeds.find(text) + 1
                )
                < 0
            ):
                return text
    return None


def _with_code_fence(body: str) -> str:
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}\n{body}\n{fence}"
