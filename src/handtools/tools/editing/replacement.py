"""String replacement for edits: try rules from exact to merged; the first one that matches decides."""

from collections.abc import Callable, Iterable
from dataclasses import replace as replaced

from handtools.text import lines
from handtools.text.lines import SplicedText
from handtools.tools.editing import (
    already_applied,
    old_string_repair,
    omitted_code,
    refusals,
    three_way_edit,
)
from handtools.tools.editing.edit_outcome import (
    CharSpan,
    EditApplied,
    EditOutcome,
    EditRefused,
    MatchHint,
    UnclearEdit,
)
from handtools.tools.editing.exact_replacement import replace_all_exact, replace_exact
from handtools.tools.editing.loose_replacement import replay_edit_on_lines
from handtools.tools.editing.normalized_lines import (
    MAX_CANDIDATES,
    LineIndex,
    LineMatch,
    MatchLoss,
    find_match_candidates,
    is_blank,
    is_recognizable,
    least_lossy_matches,
)
from handtools.tools.editing.old_string_repair import ArgumentReading

MatchRule = Callable[[LineIndex, ArgumentReading, MatchHint | None], EditOutcome | None]


def replace_text(
    body: str,
    old: str,
    new: str,
    *,
    every: bool = False,
    hint: MatchHint | None = None,
    seen: str | None = None,
) -> EditOutcome:
    """Replace `old` with `new` in the only place that can be meant, or refuse and say why.

    With `every`, all occurrences are replaced. `seen` is the text as the agent last read it, if known.
    An empty `old` fills an empty file.
    """
    if not old and not body and new:
        return EditApplied(spliced=SplicedText(body, 0, 0, new), tier="exact", spans=(CharSpan(0, 0),))
    if refusal := omitted_code.check_edit_arguments(old, new):
        return refusal
    line_index = LineIndex(body)
    outcome = (
        _replace_every_match(line_index, old, new)
        if every
        else _replace_single_match(line_index, old, new, hint, seen)
    )
    if not isinstance(outcome, EditApplied):
        return outcome
    if outcome.spliced.is_unchanged:
        return EditRefused(code="no_change", message="The edit would leave the file as it is.")
    if (size := len(outcome.spliced)) > max(omitted_code.LARGEST_EDITED_TEXT_CHARS, 2 * len(body)):
        return EditRefused(code="too_large", message=f"The file would grow to {size} characters.")
    return outcome


def refuse_missing_old_string(body: str, old: str) -> EditRefused:
    """Return the refusal for an `old_string` that is not in the text, with the lines nearest to it."""
    return refusals.refuse_not_found(LineIndex(body), [old], "")


def _replace_every_match(line_index: LineIndex, old: str, new: str) -> EditOutcome:
    done = replace_all_exact(line_index, old, new) or already_applied.find_applied_new_text(
        line_index, old, new
    )
    return done or refusals.refuse_not_found(line_index, [old], new)


def _replace_single_match(
    line_index: LineIndex, old: str, new: str, hint: MatchHint | None, seen: str | None
) -> EditOutcome:
    stale = seen if seen is not None and seen != line_index.text else None
    if (outcome := replace_exact(line_index, old, new, hint)) is not None:
        return (
            outcome
            if stale is None or hint
            else three_way_edit.checked_against_seen(line_index, old, outcome, stale)
        )
    if stale is not None and (outcome := _apply_to_seen_text(line_index, old, new, stale)) is not None:
        return outcome
    old, new = lines.convert_line_ends(old, "\n"), lines.convert_line_ends(new, "\n")
    readings = list(old_string_repair.argument_readings(line_index.text_with_line_feeds, old, new))
    return (
        _first_outcome(line_index, readings, hint, (_match_argument_reading, _match_elided_lines))
        or _find_already_applied(line_index, readings)
        or _first_outcome(line_index, readings, hint, (_match_corrected_typos, _match_nearest_lines))
        or refusals.refuse_not_found(line_index, [reading.old for reading in readings], readings[-1].new)
    )


def _first_outcome(
    line_index: LineIndex,
    readings: list[ArgumentReading],
    hint: MatchHint | None,
    rules: tuple[MatchRule, ...],
) -> EditOutcome | None:
    """Return the outcome of the first rule that decides for any reading of the arguments.

    Returns None if none does.
    """
    found = (rule(line_index, reading, hint) for rule in rules for reading in readings)
    return next((outcome for outcome in found if outcome is not None), None)


def _find_already_applied(line_index: LineIndex, readings: list[ArgumentReading]) -> EditOutcome | None:
    """Detect that the change is already in the file, by any reading of the arguments; None if it is not."""
    found = (
        already_applied.find_applied_new_text(line_index, reading.old, reading.new) for reading in readings
    )
    return next((done for done in found if done is not None), None)


def _apply_to_seen_text(line_index: LineIndex, old: str, new: str, seen: str) -> EditOutcome | None:
    """Apply an edit to the text as the agent last read it, and merge that with the file.

    Returns None if it doesn't apply.
    """
    edited = replace_text(seen, old, new)
    if isinstance(edited, EditApplied):
        return three_way_edit.merge_edit_of_seen_text(line_index, seen, edited)
    return refusals.refuse_not_found(line_index, [old], new) if edited.code == "ambiguous" else None


def _match_argument_reading(
    line_index: LineIndex, reading: ArgumentReading, hint: MatchHint | None
) -> EditOutcome | None:
    """Try one reading of the arguments: exactly if it was repaired, then by loose matching of lines.

    Returns None if neither matches.
    """
    if reading.notes and (refusal := omitted_code.check_edit_arguments(reading.old, reading.new)):
        return refusal
    if reading.notes and reading.line is None:
        outcome = replace_exact(line_index, reading.old, reading.new, hint, repaired=True)
        if outcome is not None:
            return replaced(outcome, notes=reading.notes) if isinstance(outcome, EditApplied) else outcome
    old, new = split_argument_lines(reading.old, reading.new)
    numbered = None if reading.line is None else MatchHint(line=reading.line, within=0)
    found = find_match_candidates(line_index, old, hint or numbered)
    if numbered is not None:
        found = [match for match in found if match.first + 1 == numbered.line]
    best = least_lossy_matches(found)
    if not best:
        return None
    if len(best) > 1:
        places = [match.first + 1 for match in best]
        return refusals.refuse_ambiguous(
            line_index, places, "\n".join(old).strip("\n"), or_more=len(best) == MAX_CANDIDATES
        )
    if not is_recognizable(old, best[0]):
        return None
    done = already_applied.find_applied_around_lines(line_index, best[0], old, new)
    if done is None and (best[0].blanks_differ or _keeps_lines_of_another_depth(best[0], old, new)):
        # Only a loosely similar block matched: if the new text is already present, don't apply it twice.
        done = already_applied.find_applied_new_text(line_index, reading.old, reading.new)
    if done is not None:
        return done
    wider = already_applied.widen_edit_by_present_lines(line_index, best[0].first, best[0].last, old, new)
    if (
        wider is not None
        and len(again := least_lossy_matches(find_match_candidates(line_index, wider.old))) == 1
    ):
        return _apply_line_matches(line_index, [(again[0], wider.old, wider.new)], reading)
    return _apply_line_matches(line_index, [(best[0], old, new)], reading)


def _keeps_lines_of_another_depth(match: LineMatch, old: list[str], new: list[str]) -> bool:
    """Whether the old lines match only with a different indentation, and the edit keeps some of them."""
    kept = {line for line in old if not is_blank(line)}.intersection(new)
    return match.loss >= MatchLoss.INDENTATION and bool(kept)


def split_argument_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """Split `old_string` and `new_string` of an edit into lines, without an empty last line."""
    mine, theirs = old.split("\n"), new.split("\n")
    if mine[-1] == "":
        mine.pop()
        if theirs[-1] == "":
            theirs.pop()
    return mine, theirs


def _apply_line_matches(
    line_index: LineIndex,
    matches: Iterable[tuple[LineMatch, list[str], list[str]]],
    reading: ArgumentReading,
) -> EditOutcome:
    """Apply the change of each matched part to the file's lines; refuse if a part is unclear."""
    matches = list(matches)
    spans: list[CharSpan] = []
    pieces: list[str] = []
    notes: dict[str, None] = dict.fromkeys(reading.notes)
    for match, *sent in matches:
        span = line_index.span(match.first, match.last)
        old, new, repairs = _lines_with_typography_of_file(line_index.text[span.start : span.end], *sent)
        notes |= dict.fromkeys(repairs)
        try:
            written = replay_edit_on_lines(line_index, match, old, new)
        except UnclearEdit as why:
            return refusals.refuse_unclear(line_index, why, match.first, match.last, "\n".join(old))
        pieces += [line_index.text[spans[-1].end : span.start] if spans else "", written]
        spans.append(span)
    spliced = SplicedText(line_index.text, spans[0].start, spans[-1].end, "".join(pieces))
    tier = max((match for match, _, _ in matches), key=lambda match: match.rank).tier
    return EditApplied(spliced=spliced, tier=tier, spans=tuple(spans), notes=tuple(notes))


def _lines_with_typography_of_file(
    filed: str, old: list[str], new: list[str]
) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Replace typographic characters that do not occur in the matched lines with plain ones.

    Returns the old lines, the new lines and notes. The lines stay as sent if they would become equal.
    """
    found = old_string_repair.repair_typography(filed, "\n".join(old), "\n".join(new))
    if found is None or found.old == found.new:
        return old, new, ()
    return found.old.split("\n"), found.new.split("\n"), found.notes


def _match_elided_lines(
    line_index: LineIndex, reading: ArgumentReading, _: MatchHint | None
) -> EditOutcome | None:
    """Match an edit with elided lines: changed pieces must be unique, the others in order around them."""
    if not omitted_code.is_elided(reading.old):
        return None
    pieces = omitted_code.elided_pieces(reading.old, reading.new)
    if not pieces or len(pieces) > omitted_code.MAX_ELIDED_PIECES:
        return None
    matches: list[tuple[LineMatch, list[str], list[str]]] = []
    found = [
        least_lossy_matches(find_match_candidates(line_index, piece.old.split("\n"))) for piece in pieces
    ]
    if not omitted_code.pieces_stand_in_order(line_index, found):
        spans = _elided_line_ranges(found)
        return refusals.refuse_ambiguous_elision(line_index, spans) if spans else None
    for piece, places in zip(pieces, found, strict=True):
        old, new = piece.old.split("\n"), piece.new.split("\n")
        if piece.is_changed:
            if len(places) > 1:
                return refusals.refuse_ambiguous_elision(line_index, _elided_line_ranges(found))
            if not is_recognizable(old, places[0]):
                return None
            matches.append((places[0], old, new))
    if not matches:
        return None  # they differ only in blank lines around the omitted lines
    outcome = _apply_line_matches(line_index, matches, reading)
    return replaced(outcome, tier="omitted lines") if isinstance(outcome, EditApplied) else outcome


def _elided_line_ranges(matches: list[list[LineMatch]]) -> list[tuple[int, int]]:
    """Return line ranges from each match of the first piece to the next match of the last piece.

    If the first piece matches once, return ranges to all later matches of the last piece.
    """
    ends = 1 if len(matches[0]) > 1 else None
    return [
        (start.first, end.last)
        for start in matches[0]
        for end in [match for match in matches[-1] if match.first > start.last][:ends]
    ]


def _match_corrected_typos(
    line_index: LineIndex, reading: ArgumentReading, hint: MatchHint | None
) -> EditOutcome | None:
    """Match an edit with misspelt words corrected; only one possible correction may match."""
    outcomes: list[EditOutcome] = []
    for spelling in old_string_repair.typo_corrections(line_index.text_with_line_feeds, reading.old):
        note = ", ".join(f"{bad} read as {word}" for bad, word in spelling.items())
        old, new = (
            old_string_repair.with_typos_corrected(text, spelling) for text in (reading.old, reading.new)
        )
        second_reading = ArgumentReading(old, new, (*reading.notes, note), reading.line)
        if (outcome := _match_argument_reading(line_index, second_reading, hint)) is not None:
            outcomes.append(outcome)
    if len(outcomes) != 1:
        return None
    only = outcomes[0]
    return replaced(only, tier="spelling") if isinstance(only, EditApplied) else only


def _match_nearest_lines(
    line_index: LineIndex, reading: ArgumentReading, hint: MatchHint | None
) -> EditOutcome | None:
    """Match an edit whose old text is almost in the file, in only one place, by a three-way merge there."""
    # Skip repaired arguments: a repair and a near match would be two guesses in a row.
    if hint is not None or reading.notes:
        return None
    near = three_way_edit.replace_in_nearest_lines(
        line_index, *split_argument_lines(reading.old, reading.new)
    )
    return replaced(near, notes=reading.notes + near.notes) if isinstance(near, EditApplied) else near
