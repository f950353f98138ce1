"""Parts of a long text, by heading, by words and by size."""

import time

import pytest

from handtools.text.token_estimate import estimate_tokens
from handtools.tools.web import page_sections
from handtools.tools.web.page_sections import (
    estimate_page_tokens,
    page_cursor,
    parse_page_cursor,
    passages_mentioning,
    portion_that_fits,
    section_titled,
    sections,
    table_of_contents,
)

TEXT = """# Guide

Welcome.

## Install `it`

```bash
# not a heading
pip install it
```

### On [Windows](https://x.example)

Use it.

## Use

The end.
"""


def test_a_section_reaches_to_the_next_of_its_rank():
    found = sections(TEXT)
    assert [(each.level, each.title) for each in found] == [
        (1, "Guide"), (2, "Install `it`"), (3, "On Windows"), (2, "Use"),
    ]  # fmt: skip
    install = TEXT[found[1].start : found[1].end]
    assert install.startswith("## Install")
    assert install.endswith("Use it.\n\n")
    assert found[0].end == len(TEXT)


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("Use", "Use"),
        ("install it", "Install `it`"),
        ("INSTALL", "Install `it`"),
        ("windows", "On Windows"),
    ],
)
def test_a_title_is_found_as_people_write_it(asked, title):
    assert section_titled(sections(TEXT), asked).title == title


def test_an_unknown_title_is_none():
    assert section_titled(sections(TEXT), "zebra") is None


def test_contents_leave_out_the_deepest_first():
    found = sections(TEXT)
    assert "On Windows" in table_of_contents(TEXT, found, most=4)
    short = table_of_contents(TEXT, found, most=3)
    assert "On Windows" not in short
    assert short.endswith("… and 1 more")


def test_mentions_come_with_their_section_and_neighbours_once():
    one, two = passages_mentioning(TEXT + "\n" * 9 + "Welcome again.", "WELCOME")
    assert one == "[Guide]\n# Guide\n\nWelcome.\n\n## Install `it`"
    assert two.startswith("[Use]\n")
    [touching] = passages_mentioning(TEXT, "USE")
    assert touching.count("## Use") == 1


def test_a_cursor_knows_its_text():
    there = page_cursor(TEXT, 10)
    assert parse_page_cursor(TEXT, there) == (10, True)
    assert parse_page_cursor(TEXT + "x", there) == (10, False)
    assert parse_page_cursor("short", there) == (5, False)
    with pytest.raises(ValueError, match="not a cursor"):
        parse_page_cursor(TEXT, "ten")


def test_a_portion_ends_with_a_line_where_it_can():
    part = portion_that_fits(TEXT, 0, 20)
    assert part.text.endswith("\n")
    assert estimate_tokens(part.text) <= 20
    assert portion_that_fits("x" * 1_000, 0, 10).end < 1_000


def test_a_long_text_costs_what_its_pieces_cost():
    assert (
        abs(
            estimate_page_tokens("some words here " * 20_000) - estimate_tokens("some words here " * 20_000)
        )
        <= 10
    )


@pytest.mark.parametrize(
    "text", ["# a\n" * 50_000, "# [" * 20_000, f"# a{' #' * 20_000}b", f"# a{' ' * 40_000}b"]
)
def test_no_page_is_made_of_so_many_headings_that_it_takes_long(text):
    started = time.process_time()
    sections(text)
    passages_mentioning(f"{text}\nend", "end")
    assert time.process_time() - started < 12


def test_of_more_headings_than_anybody_reads_the_first_are_told_apart():
    found = page_sections.sections("# x\n" * 50_000)
    assert len(found) == page_sections.MAX_SECTIONS
    assert found[-1].end == 4 * 50_000
