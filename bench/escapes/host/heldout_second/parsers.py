"""More files and arguments that are read in our own process."""

from bench.escapes.host.loop_watch import watched_loop
from bench.escapes.host.place import Place


async def data_of_very_many_keys(place: Place) -> str | None:
    """A JSON or YAML file has very many keys."""
    place.put("a.json", "{" + ",\n".join(f'"k{number}":{{"a":1}}' for number in range(80_000)) + "}")
    place.put("a.yaml", "".join(f"k{number}:\n  a: 1\n" for number in range(80_000)))
    await place.call("read", path="notes.txt")
    for name in ("a.json", "a.yaml"):
        async with watched_loop() as watch:
            await place.call("read", path=name)
        if said := watch.word(name):
            return said
    return None


async def skills_of_a_megabyte(place: Place) -> str | None:
    """The first lines of a skill, and notes for agents, are a megabyte of names, anchors and headings."""
    anchors = "".join(
        f"a{number}: &a{number} [*a{max(number - 1, 0)}, *a{max(number - 1, 0)}]\n"
        for number in range(30_000)
    )
    place.put(
        ".agents/skills/big/SKILL.md", f"---\nname: big\ndescription: d\n{anchors}---\n" + "# x\n" * 100_000
    )
    place.put("skills/big/SKILL.md", f"---\nname: big\ndescription: d\n{anchors}---\n" + "# x\n" * 100_000)
    place.put("AGENTS.md", "# x\n" * 200_000)
    place.put("src/AGENTS.md", "# x\n" * 200_000)
    async with watched_loop() as watch:
        await place.call("skill")
        await place.call("skill", name="big")
        await place.call("read", path="src/main.py")
        await place.call("list", path=".")
    return watch.word("a skill or notes")


async def edits_in_great_number(place: Place) -> str | None:
    """One call has thousands of edits of one file, or replaces what is there a hundred thousand times."""
    place.put("a.txt", "".join(f"line {number}\n" for number in range(20_000)))
    place.put("b.txt", "ab\n" * 200_000)
    await place.call("read", path="notes.txt")
    edits = [
        {"old_string": f"line {number}\n", "new_string": f"other {number}\n"} for number in range(2000)
    ]
    async with watched_loop() as watch:
        await place.call("multi_edit", path="a.txt", edits=edits)
    if said := watch.word("multi_edit"):
        return said
    async with watched_loop() as watch:
        await place.call("edit", path="b.txt", old_string="a", new_string="cc", replace_all=True)
    return watch.word("edit")


async def rules_about_ignored_names(place: Place) -> str | None:
    """`.gitignore` has thousands of rules with many stars, and names are long."""
    rules = "\n".join("*a" * 40 + f"{number}" for number in range(3000))
    place.put(".gitignore", f"{rules}\n{'**/' * 300}a\n")
    for number in range(30):
        place.put("a" * 200 + str(number), "x\n")
    await place.call("read", path="notes.txt")
    async with watched_loop() as watch:
        await place.call("list", path=".")
    return watch.word("a list with thousands of rules about ignored names")
