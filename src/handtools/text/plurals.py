"""Numbers with nouns or verbs in singular or plural: `1 file`, `2 files`."""

_IRREGULAR = {
    "entry": "entries",
    "match": "matches",
    "is": "are",
    "was": "were",
    "has": "have",
    "needs": "need",
    "matches": "match",
}


def number_with_noun(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: `1 file`, `2 files`, `1,000 matches`."""
    return f"{number:,} {inflect_for_number(number, noun)}"


def inflect_for_number(number: int, word: str) -> str:
    """Inflect a noun or verb to match a number; of several words, the last one changes."""
    if number == 1:
        return word
    *before, last = word.split(" ")
    return " ".join([*before, _IRREGULAR.get(last, f"{last}s")])
