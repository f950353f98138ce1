"""Outlines of one file per language, as reviewed."""

from pathlib import Path

import pytest

from handtools.core.syntax import symbol_chains
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from tests.labelled.labels import Labelled, every

KEPT = Path(__file__).parent / "outlines"


@pytest.mark.parametrize("source", every(), ids=str)
async def test_the_outline_is_as_reviewed(source: Labelled, request: pytest.FixtureRequest) -> None:
    outline = await TreeSyntax().outline(source.path, source.data)
    assert outline is not None
    assert not outline.broken_lines
    rows = [f"{'  ' * (len(way) - 1)}{shown(way[-1])}" for way in symbol_chains(outline.symbols)]
    text = "\n".join(rows) + "\n"
    kept = KEPT / f"{source.path}.outline"
    if request.config.getoption("--update-snapshots"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(text, "utf-8")
    assert text == kept.read_text("utf-8"), "if this is meant, run `just docs` and commit the snapshot"


def shown(symbol) -> str:
    body = f", body from {symbol.body_line}" if symbol.body_line else ""
    return (
        f"{symbol.kind} {symbol.name} {symbol.start_line}-{symbol.end_line}, named on {symbol.line}{body}"
    )
