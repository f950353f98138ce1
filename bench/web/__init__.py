"""Pages as Markdown: what of them is kept, and what that costs over the bare converter."""

import argparse
from collections.abc import AsyncIterator, Iterable

from bench.figures import Figure, gathered, paired
from bench.web.documents import Code, Document, Table, document
from bench.web.judging import lost
from bench.web.styles import STYLES, page
from handtools.host.web.page_text import convert_html

PAGES = 30
ADDRESS = "https://docs.example/guide/page.html"


def corpus() -> list[tuple[Document, str]]:
    """Thirty pages, small to large, in the styles of those who make documentation."""
    made = []
    for number in range(PAGES):
        drawn = document(number, 4 + number * 2)
        made.append((drawn, page(drawn, STYLES[number % len(STYLES)])))
    return made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(options: argparse.Namespace) -> Iterable[Figure]:
    return gathered(lambda: _figures(10 if options.quick else 40))


async def _figures(rounds: int) -> AsyncIterator[Figure]:
    from html_to_markdown import convert

    pages = corpus()
    gone = [lost(drawn, convert_html(html, "markdown", ADDRESS)) for drawn, html in pages]
    counts = {
        "headings": (sum(len(each.headings) for each in gone), sum(len(d.headings) for d, _ in pages)),
        "code fences": (sum(len(each.fences) for each in gone), sum(len(d.every(Code)) for d, _ in pages)),
        "tables": (sum(len(each.tables) for each in gone), sum(len(d.every(Table)) for d, _ in pages)),
    }
    for name, (count, total) in counts.items():
        yield Figure(name=f"{name} lost of {total:,} on {PAGES} pages", value=count, unit=name, goal=0)

    def ours() -> None:
        for _, html in pages:
            convert_html(html, "markdown", ADDRESS)

    def bare() -> None:
        for _, html in pages:
            convert(html)

    size = sum(len(html) for _, html in pages) >> 10
    yield await paired(
        f"{PAGES} pages ({size:,} kB) over the bare converter", ours, bare, rounds=rounds, goal=1.2
    )
