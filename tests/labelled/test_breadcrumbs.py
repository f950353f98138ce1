"""The symbols around a line, against what a person wrote beside it. To add a case, add a line to a file."""

import pytest

from handtools.core.syntax import enclosing_symbols
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.host.syntax.languages import PARSED_LANGUAGES, language_of
from tests.labelled.labels import Labelled, every

SOURCES = every()


@pytest.mark.parametrize("source", SOURCES, ids=str)
async def test_every_labelled_line_has_the_breadcrumbs_that_were_written_beside_it(
    source: Labelled,
) -> None:
    outline = await TreeSyntax().outline(source.path, source.data)
    found = {line: enclosing_symbols(outline.symbols, line) for line in source.labels}
    shown = {line: " > ".join(symbol.name for symbol in around) for line, around in found.items()}
    assert shown == source.labels


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_every_file_has_at_least_twenty_labels(source: Labelled) -> None:
    assert len(source.labels) >= 20


def test_every_language_has_a_labelled_file() -> None:
    assert {language_of(source.path, source.data) for source in SOURCES} == PARSED_LANGUAGES
