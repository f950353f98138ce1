"""Values of settings and policy files: TOML parsed, with errors that name the file, the key and a near key."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from handtools.core.errors import UsageError
from handtools.text.paths import similar_names


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; raises `UsageError`, which names the file `where`."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # deep arrays, and numbers too long to be read
        raise UsageError(f"{where} is no TOML: {problem}.") from problem


def refuse_unknown_keys(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise `UsageError` for keys that mean nothing, with the near one for each."""
    unknown = sorted(set(table) - set(known))
    if not unknown:
        return
    said = ", ".join(f"`{key}`{_near(key, known)}" for key in unknown)
    raise UsageError(f"{where} says {said}, which means nothing. Known: {', '.join(sorted(known))}.")


def table_value(value: Any, where: str) -> dict[str, Any]:
    """A value that must be a table; raises `UsageError`."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} is a table.")
    return value


def words_value(value: Any, where: str) -> tuple[str, ...]:
    """A value that must be a list of strings; raises `UsageError`."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{where} is a list of words.")
    return tuple(value)


def numbers_or_words_value(value: Any, where: str) -> tuple[str, ...]:
    """A value that must be a list of whole numbers and strings, all as text; raises `UsageError`."""
    plain = isinstance(value, list) and all(type(each) in {int, str} for each in value)
    if not plain:
        raise UsageError(f"{where} is a list of numbers and words.")
    return tuple(map(str, value))


def choice_value(value: Any, choices: Sequence[str], where: str) -> str:
    """A value that must be one of some words; raises `UsageError`."""
    if value not in choices:
        raise UsageError(f"{where} is one of {', '.join(choices)}, and not {value!r}.")
    return str(value)


def _near(key: str, known: Collection[str]) -> str:
    near = similar_names(key, sorted(known), most=1)
    return f" (did you mean `{near[0]}`?)" if near else ""
