"""Approved files: a yes to a command is used for another file than the one that was there when it was asked."""

import os
import sys
from collections.abc import Callable

from bench.escapes.host.place import Person, Place
from handtools import Policy, Reply

FINE, EVIL = "echo fine\n", "echo evil > made.txt\n"


async def _swapped(place: Place, command: str, swap: Callable[[], object]) -> str | None:
    """Ask about a command that nothing confines, change something, and let the person say yes to what they saw."""
    place.open(runner="plain")
    asked = await place.bash(command)
    swap()
    person = Person(("evil",))
    await place.agree(asked, person)
    made = place.workspace / "made.txt"
    ran = made.exists()
    made.unlink(missing_ok=True)
    return (
        f"approved: `{command}`, and another file ran than the one that was there"
        if ran and person.agreed
        else None
    )


async def script_that_changes(place: Place) -> str | None:
    """`sh s.sh` is asked about; s.sh is written anew before the yes."""
    place.put("s.sh", FINE)
    return await _swapped(place, "sh s.sh", lambda: place.put("s.sh", EVIL))


async def script_behind_a_link(place: Place) -> str | None:
    """The script is a link; the link, or the file that it leads to, is another one before the yes."""
    place.put("one.sh", FINE)
    place.put("two.sh", EVIL)
    place.link("s.sh", "one.sh")

    def turn() -> None:
        (place.workspace / "s.sh").unlink()
        place.link("s.sh", "two.sh")

    found = await _swapped(place, "sh s.sh", turn)
    place.put("three.sh", FINE)
    place.link("t.sh", "three.sh")
    return found or await _swapped(place, "sh t.sh", lambda: place.put("three.sh", EVIL))


async def script_in_a_folder_that_is_exchanged(place: Place) -> str | None:
    """The folder of the script is exchanged for another one."""
    place.put("bin/s.sh", FINE, mode=0o755)
    place.put("new/s.sh", "#!/bin/sh\n" + EVIL, mode=0o755)

    def swap() -> None:
        os.rename(place.workspace / "bin", place.workspace / "old")
        os.rename(place.workspace / "new", place.workspace / "bin")

    return await _swapped(place, "bin/s.sh", swap)


async def script_that_comes_later(place: Place) -> str | None:
    """The script is not there, or can't be run, when the command is asked about."""
    found = await _swapped(place, "sh later.sh", lambda: place.put("later.sh", EVIL))
    place.put("run.sh", FINE, mode=0o644)
    return found or await _swapped(
        place, "./run.sh", lambda: place.put("run.sh", f"#!/bin/sh\n{EVIL}", mode=0o755)
    )


async def script_that_is_named_otherwise(place: Place) -> str | None:
    """The file is sourced, fed in, handed to another interpreter, or named after options, variables and `cd`."""
    commands = (
        ". ./{}", "source {}", "bash < {}", "cat {} | sh", "bash -x -e {}", "A=1 env B=2 sh ./{}", "cd src && cd .. && sh {}", "true && (sh {})",
        "nice sh {}", "timeout 5 sh {}", 'sh "$PWD/{}"', "if true; then sh {}; fi", "bash -c '. ./{}'", "sh -- {}", "exec sh {}", "sh src/../{}",
    )  # fmt: skip
    through = []
    for number, command in enumerate(commands):
        name = f"s{number}.sh"
        place.put(name, FINE)
        if await _swapped(place, command.format(name), lambda name=name: place.put(name, EVIL)):  # type: ignore[misc]
            through.append(command)
    return f"approved: another file ran for {', '.join(through)}" if through else None


async def file_that_a_build_tool_reads(place: Place) -> str | None:
    """`make` reads its Makefile, whose name is an argument or goes without saying."""
    place.put("build.mk", f"all:\n\t@{FINE}")
    found = await _swapped(place, "make -f build.mk", lambda: place.put("build.mk", f"all:\n\t@{EVIL}"))
    place.put("Makefile", f"all:\n\t@{FINE}")
    return found or await _swapped(place, "make", lambda: place.put("Makefile", f"all:\n\t@{EVIL}"))


async def alias_in_the_kept_home(place: Place) -> str | None:
    """An earlier command leaves a configuration in the home that commands share; an approved word then means another."""
    place.shell("git init -q -b main")
    place.allow(".git")
    person = Person(("evil", "alias", "gitconfig", "config"))
    place.open(policy=Policy(defaults={"run": "ask"}), person=Person(()))
    await place.bash("printf '[alias]\\n\\tst = !echo evil > made.txt\\n' > ~/.gitconfig")
    place.open(policy=Policy(defaults={"run": "ask"}), person=person)
    await place.bash("git st")
    ran = (place.workspace / "made.txt").exists()
    return "approved: `git st`, and an alias of an earlier command ran" if ran and person.agreed else None


async def answers_without_a_terminal(place: Place) -> None:
    """A question is open; `approve` without its id is run with no terminal: nobody was asked."""
    await place.call("write", path=".vscode/one.json", content="evil\n")
    top = str(place.workspace)
    place.cli("-C", top, "approve")
    place.cli("-C", top, "approve", "--json")
    place.cli("-C", top, "approve", "--remember", "project")


async def answers_by_a_pipe(place: Place) -> None:
    """The answer comes out of a pipe; or the id is empty, a space, or a pattern."""
    await place.call("write", path=".vscode/one.json", content="evil\n")
    program, top = f"{sys.executable} -m handtools", place.workspace
    for line in (
        "yes | {} approve",
        "echo y | {} approve",
        "{} approve < /dev/zero",
        "{} approve ''",
        "{} approve ' '",
        "{} approve '*'",
        "{} approve %",
    ):
        place.person(f"cd {place.outside}; {line.format(f'{program} -C {top}')}", seconds=15.0)


async def grants_that_cover_other_options(place: Place) -> str | None:
    """A lasting yes to a harmless command also covers options by which its program runs or writes something else."""
    pairs = (
        ("mvn test", "mvn test -Dexec.executable=./evil"), ("ruff check", "ruff check --config evil.toml"), ("terraform plan", "terraform plan -out=x"),
        ("dotnet test", "dotnet test --settings evil"), ("tsc", "tsc --project evil"), ("jq . a", "jq -f evil a"),
    )  # fmt: skip
    box = place.open(policy=Policy(defaults={"run": "ask"}))
    covered = []
    for asked_for, other in pairs:
        asked = (await place.bash(asked_for)).request
        if asked is None:
            continue
        reply = Reply(allow=True, remember="session", fingerprint=asked.fingerprint)
        place.heard("resume", await box.resume(asked.call_id, reply))
        if (await place.bash(other)).request is None:
            covered.append(other)
    return f"approved: a lasting yes covers {', '.join(covered)}" if covered else None


async def marks_upon_marks(place: Place) -> str | None:
    """A command has hundreds of marks over one letter, which cover the lines around it."""
    person = Person(("nothing at all",))
    place.open(policy=Policy(defaults={"run": "ask"}), person=person)
    await place.bash(f"echo a{chr(0x336) * 300}")
    return (
        "approved: the question had a pile of marks in it"
        if any(chr(0x336) * 20 in each for each in person.seen)
        else None
    )
