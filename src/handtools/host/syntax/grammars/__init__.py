"""One table per language. To add a language: a module here, a row in `languages.py`, a file of labelled lines."""

from functools import cache
from importlib import import_module

from handtools.host.syntax.grammar import Grammar

_HOMES = {"tsx": "typescript"}
"""Languages that share the table of another."""


@cache
def grammar_of(language: str) -> Grammar:
    """The table of a language, loaded when it is first needed."""
    module = import_module(f"{__name__}.{_HOMES.get(language, language)}")
    grammar: Grammar = getattr(module, language.upper())
    return grammar
