"""Parsers in our own process: a file of about a megabyte keeps the loop, and with it everybody's calls."""

from typing import Any

from bench.escapes.host.loop_watch import watched_loop
from bench.escapes.host.place import Place


async def _read(place: Place, **files: str) -> str | None:
    """Read files one after another; says the first by which the loop was kept."""
    names = {name.replace("_dot_", "."): content for name, content in files.items()}
    for name, content in names.items():
        place.put(name, content)
    await place.call("read", path="notes.txt")
    for name, content in names.items():
        async with watched_loop() as watch:
            await place.call("read", path=name)
        if said := watch.word(f"{name}, {len(content) >> 10} kB"):
            return said
    return None


async def markdown_of_headings(place: Place) -> str | None:
    """A Markdown file is nothing but short headings."""
    return await _read(place, a_dot_md="# x\n" * 200_000)


async def markdown_of_underlined_headings(place: Place) -> str | None:
    """The headings are underlined, or the file is all definitions of links, fences or tables."""
    return await _read(
        place,
        a_dot_md="x\n===\n" * 140_000,
        b_dot_md="".join(f"[{number}]: x\n" for number in range(90_000)),
        c_dot_md="|a|b|\n|-|-|\n|c|d|\n\n" * 60_000,
    )


async def source_of_very_many_names(place: Place) -> str | None:
    """Source code is nothing but short functions and classes, each of which is a line of an outline."""
    return await _read(
        place,
        a_dot_ts="class A{b(){}}\n" * 80_000,
        a_dot_py="def f(): pass\n" * 100_000,
        a_dot_java="class A{void b(){}}\n" * 60_000,
    )


async def source_that_is_nested(place: Place) -> None:
    """Functions, brackets and tags lie in each other, thousands deep, each on a line of its own."""
    files = {
        "a.js": ["function f(){"] * 8000 + ["}"] * 8000,
        "a.json": ["["] * 50_000 + ["]"] * 50_000,
        "a.html": ["<div>"] * 50_000,
        "a.ts": ["namespace a {"] * 8000 + ["}"] * 8000,
        "a.c": ["{"] * 50_000,
        "a.py": ["("] * 50_000,
    }
    for name, lines in files.items():
        place.put(name, "\n".join(lines))
        await place.call("read", path=name)


async def patch_of_hunks_that_fit_everywhere(place: Place) -> str | None:
    """A patch has a hundred hunks, each of which fits everywhere in a file of equal lines."""
    place.put("a.txt", "a\n" * 60_000)
    hunks = "@@ -1,3 +1,3 @@\n a\n-a\n+b\n a\n" * 100
    return await _called(place, "patch", patch=f"--- a/a.txt\n+++ b/a.txt\n{hunks}")


async def edit_that_almost_fits(place: Place) -> str | None:
    """The text to be replaced is long, and almost the same as every part of the file."""
    place.put("a.txt", "a\n" * 60_000)
    return await _called(place, "edit", path="a.txt", old_string="a\n" * 20_000 + "b", new_string="c")


async def _called(place: Place, tool: str, **args: Any) -> str | None:
    await place.call("read", path="notes.txt")
    async with watched_loop() as watch:
        await place.call(tool, **args)
    return watch.word(f"a call of {tool}")
