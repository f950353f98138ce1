"""Approvals: a person says yes to what they see, and something else happens."""

import re
from typing import Any

from bench.escapes.host.place import Person, Place
from handtools import Call, Result

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def _raw(place: Place, person: Person) -> str | None:
    """Characters in a question that a terminal or a browser acts on instead of showing them."""
    assert place.begun
    found = {char for shown in person.seen for char in HIDDEN.findall(shown)}
    return f"approved: the question had {', '.join(sorted(map(ascii, found)))} in it" if found else None


def _ran(person: Person, *, harm: bool, what: str) -> str | None:
    """What was agreed to is not what happened."""
    return f"approved: {what}, which the question did not show" if harm and person.agreed else None


async def _live(place: Place, command: str, **args: Any) -> Result[Any]:
    """A command that runs in place, to its end: everybody is asked about those."""
    return await _ended(place, await place.bash(command, live=True, background=True, **args))


async def _ended(place: Place, started: Result[Any] | None) -> Result[Any]:
    assert started is not None
    if job := getattr(started.details, "job", ""):
        await place.call("jobs", action="wait", job=job, timeout=10.0)
    return started


async def folder_changes_before_the_answer(place: Place) -> str | None:
    """A command waits for an answer; before that, another one changes the session's working folder."""
    place.put("important/kept.txt", "kept\n")
    place.put("build/old.txt", "old\n")
    place.open(runner="plain")
    person = Person(("important",))
    first = await place.call(Call(tool="bash", args={"command": "rm -f ./*.txt"}, session="s"))
    moved = await place.call(Call(tool="bash", args={"command": "cd important"}, session="s"))
    await place.agree(moved, Person(()))
    await place.agree(first, person)
    gone = not (place.workspace / "important" / "kept.txt").exists()
    return _ran(person, harm=gone, what="it ran in another folder")


async def folder_becomes_a_link_before_the_answer(place: Place) -> str | None:
    """The folder that the question shows becomes a link to another one before the answer."""
    place.put("important/kept.txt", "kept\n")
    place.put("build/old.txt", "old\n")
    person = Person(("important",))
    first = await _live(place, "rm -f ./*.txt", cwd="build")
    (place.workspace / "build").rename(place.workspace / "before")
    place.link("build", "important")
    await _ended(place, await place.agree(first, person))
    gone = not (place.workspace / "important" / "kept.txt").exists()
    return _ran(person, harm=gone, what="its folder was another one")


async def function_under_an_approved_name(place: Place) -> str | None:
    """An earlier command, which nobody was asked about, defines a function with the name of a program."""
    place.put("Makefile", "dev:\n\techo serving\n")
    person = Person(("evil",))
    place.allow(".vscode")
    place.open(person=person)
    await place.bash(
        "make(){ mkdir -p .vscode; echo evil > .vscode/tasks.json; }; export -f make; echo ready"
    )
    await _live(place, "make dev")
    harm = (place.workspace / ".vscode" / "tasks.json").exists()
    return _ran(person, harm=harm, what="a function of an earlier command ran")


async def alias_under_an_approved_name(place: Place) -> str | None:
    """An earlier command makes an alias with the name of a program."""
    place.put("Makefile", "dev:\n\techo serving\n")
    person = Person(("evil",))
    place.allow(".vscode")
    place.open(person=person)
    await place.bash(
        "shopt -s expand_aliases; alias make='mkdir -p .vscode; echo evil > .vscode/tasks.json; :'"
    )
    await _live(place, "shopt -s expand_aliases\nmake dev")
    harm = (place.workspace / ".vscode" / "tasks.json").exists()
    return _ran(person, harm=harm, what="an alias of an earlier command ran")


async def search_path_of_an_earlier_command(place: Place) -> str | None:
    """An earlier command puts a folder of the workspace in front of PATH; the approved name is found there."""
    place.put("Makefile", "dev:\n\techo serving\n")
    person = Person(("evil",))
    place.allow(".vscode")
    place.open(person=person)
    await place.bash(
        "mkdir bin; printf '#!/bin/sh\\nmkdir -p .vscode; echo x > .vscode/tasks.json' > bin/make; chmod +x bin/make"
        "; export PATH=$PWD/bin:$PATH BASH_ENV=$PWD/bin/make"
    )
    await _live(place, "make dev")
    shown = any("PATH" in each or str(place.workspace / "bin") in each for each in person.seen)
    harm = (place.workspace / ".vscode" / "tasks.json").exists() and not shown
    return _ran(person, harm=harm, what="a program of an earlier command's PATH ran")


async def traps_of_an_earlier_command(place: Place) -> str | None:
    """An earlier command leaves a trap, a prompt command and a handler for unknown names behind."""
    person = Person(("evil",))
    place.allow(".vscode")
    place.open(person=person)
    deed = "mkdir -p .vscode; echo evil > .vscode/tasks.json"
    await place.bash(
        f"trap '{deed}' DEBUG EXIT; PROMPT_COMMAND='{deed}'; command_not_found_handle() {{ {deed}; }}; cd() {{ {deed}; }}"
    )
    (place.workspace / ".vscode" / "tasks.json").unlink(missing_ok=True)
    person.seen.clear()
    person.agreed = 0
    await _live(place, "cd src; nosuchprogram; echo done")
    harm = (place.workspace / ".vscode" / "tasks.json").exists()
    return _ran(person, harm=harm, what="what an earlier command had set ran")


async def hidden_below_empty_lines(place: Place) -> str | None:
    """What matters comes after 420 empty lines, which a question cuts off."""
    person = Person(("outgoing",))
    place.open(person=person)
    lines = "echo harmless\n" + "\n" * 420 + "echo outgoing > made.txt\n" + "\n" * 420 + "true"
    await _live(place, lines)
    return _ran(person, harm=(place.workspace / "made.txt").exists(), what="a line far below ran")


async def hidden_behind_spaces(place: Place) -> str | None:
    """What matters comes after thousands of spaces on the same line."""
    person = Person(("outgoing",))
    place.open(person=person)
    await place.bash(
        "echo harmless" + " " * 20_000 + "; echo outgoing > made.txt; echo" + " x" * 9_000, live=True
    )
    return _ran(person, harm=(place.workspace / "made.txt").exists(), what="the end of a long line ran")


async def hidden_among_many_files(place: Place) -> str | None:
    """A change of one protected file comes last, after one that is long."""
    person = Person(("zzz",))
    place.allow(".claude")
    place.open(person=person)
    await place.bash(
        "mkdir .claude; seq 900 > .claude/aaa.md; seq 900 > .claude/bbb.md; echo x > .claude/zzz.json"
    )
    harm = (place.workspace / ".claude" / "zzz.json").exists()
    return _ran(person, harm=harm, what="a file that the question left out changed")


async def escapes_in_a_command(place: Place) -> str | None:
    """A command has escape sequences and direction marks in it that would hide a part of the question."""
    person = Person(("nothing at all",))
    place.open(person=person)
    for mark in (
        "\x1b[8m",
        "\x1b[2K\x1b[1A",
        "\r",
        "\x08\x08",
        "\u202e",
        "\u2066",
        "\u200b",
        "\x9b8m",
        "\x07",
    ):
        await _live(place, f"echo a{mark}b")
    return _raw(place, person)


async def escapes_in_names(place: Place) -> str | None:
    """Names of protected files have escape sequences, line ends and direction marks in them."""
    person = Person(("nothing at all",))
    place.allow(".vscode", ".github")
    place.open(person=person)
    await place.bash(
        "mkdir .vscode; echo x > .vscode/$'a\\e[2K\\e[1Aok.txt\\n\\nAllowed by rule'; echo y > .vscode/$'\\u202egpj.exe'"
    )
    await place.call(
        "write",
        path=".github/workflows/ci\x1b[8m.yml",
        content="a\x1b[8mhidden\x1b[0m\nb\u202e x\r\nok\rover",
    )
    await place.call("write", path=".vscode/a\u2066b.json", content="x\u2069y\x9b")
    return _raw(place, person)


async def escapes_in_hosts_and_descriptions(place: Place) -> str | None:
    """A description and the names of hosts have escape sequences and direction marks in them."""
    person = Person(("nothing at all",))
    place.open(person=person)
    await _live(place, "echo hi", description="fine\x1b[8m\u202e\r\n\nReason: nobody")
    await place.bash("true", hosts=["a.example\u202e", "b\x1b[8m.example"])
    return _raw(place, person)


async def live_without_saying_so(place: Place) -> str | None:
    """A command is to run live, past the rules for what may land; the question has to say that."""
    person = Person(("live", "Live", "in place", "directly"))
    place.open(person=person)
    await _live(place, "make dev")
    return "approved: the question did not say that it runs live" if person.agreed else None


async def two_names_for_one_argument(place: Place) -> str | None:
    """A call has an argument under two names; the question shows one, and the other runs."""
    person = Person(("outgoing",))
    place.open(person=person)
    for other in ("cmd", "script", "command_line"):
        await place.call(
            "bash",
            command="echo harmless",
            live=True,
            background=True,
            **{other: "echo outgoing > made.txt"},
        )
        await place.call(
            "bash",
            **{other: "echo harmless"},
            live=True,
            background=True,
            command="echo outgoing > made.txt",
        )
    await place.call("bash", command="rm -f ./*.txt", cwd="src", workdir=".", live=True, background=True)
    harm = (place.workspace / "made.txt").exists()
    return _ran(person, harm=harm, what="another argument ran")


async def changed_file_before_the_answer(place: Place) -> str | None:
    """A protected file is changed by somebody else while the question about it is open."""
    place.put(".vscode/s.json", "old\n")
    place.allow(".vscode")
    asked = await place.call("write", path=".vscode/s.json", content="new\n", mode="overwrite")
    (place.workspace / ".vscode" / "s.json").write_text("theirs\n")
    person = Person(("theirs",))
    await place.agree(asked, person)
    lost = (place.workspace / ".vscode" / "s.json").read_text() != "theirs\n"
    return _ran(person, harm=lost, what="somebody else's change was overwritten")


async def folder_swapped_before_a_change_lands(place: Place) -> None:
    """What a command made waits for an answer; then its folder becomes a link to one outside."""
    held = await place.bash("mkdir .husky; echo x > .husky/pre-commit; echo y > .husky/made")
    place.allow(".husky")
    place.link(".husky", place.outside)
    await place.agree(held, Person(()))


async def answer_used_twice(place: Place) -> str | None:
    """One yes is given; the same call again, and another like it, must not have it, too."""
    place.allow(".vscode")
    asked = await place.call("write", path=".vscode/one.json", content="one\n")
    await place.agree(asked, Person(()))
    (place.workspace / ".vscode" / "one.json").unlink(missing_ok=True)
    if asked.request is not None:
        await place.call(
            Call(
                tool="write",
                args={"path": ".vscode/one.json", "content": "two\n"},
                id=asked.request.call_id,
            )
        )
    await place.call("write", path=".vscode/two.json", content="one\n")
    await place.call("write", path=".vscode/one.json", content="three\n")
    made = [path.name for path in (place.workspace / ".vscode").iterdir()]
    return f"approved: one yes was used again, for {', '.join(made)}" if made else None


async def answer_by_the_command_line_of_a_command(place: Place) -> None:
    """A confined command tries to answer the open question with our own command line, or in our record."""
    asked = await place.call("write", path=".vscode/one.json", content="one\n")
    name = asked.request.call_id if asked.request else ""
    await place.bash(
        f"export HANDTOOLS_STATE={place.state}; handtools approve {name}; python3 -m handtools approve {name};"
        f"find {place.state} -name 'journal*' -exec sh -c 'echo x >> \"$1\"' - {{}} \\; ; true"
    )
