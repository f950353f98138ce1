"""Walks: trees and patterns that are too deep, too wide or in a circle, and files that nobody may open."""

import os
import subprocess
import sys
import time

from bench.escapes.host.place import Place

_DEEP = 'python3 -c \'import os\nfor _ in range({levels}): os.mkdir("d"); os.chdir("d")\nopen("leaf", "w").write("x")\''


async def _looks(place: Place) -> None:
    await place.call("list", depth=3)
    await place.call("find", pattern="**/leaf*", include_ignored=True)
    await place.call("grep", pattern="x", include_ignored=True)
    await place.call("skill")
    await place.call("write", path="made.txt", content="made\n")
    await place.bash("echo hello")


async def deep_folders_of_a_command(place: Place) -> str | None:
    """A command makes 1,500 folders, each in the other, and a file beside them."""
    await place.bash(f"echo kept > kept.txt; {_DEEP.format(levels=1500)}")
    kept = (place.workspace / "kept.txt").exists()
    await _looks(place)
    place.open()
    await _looks(place)
    await place.call("undo", scope="session", name="default")
    return None if kept else "the changes of a command were lost"


async def deeper_folders_of_a_command(place: Place) -> None:
    """A command makes 5,000 folders, each in the other: deeper than a path can name."""
    await place.bash(f"echo kept > kept.txt; {_DEEP.format(levels=5000)}")
    await _looks(place)
    place.open()
    await _looks(place)


async def deep_folders_of_an_archive(place: Place) -> None:
    """The workspace comes with 4,000 folders, each in the other."""
    place.shell(_DEEP.format(levels=4000))
    await _looks(place)
    await place.bash("rm -rf d")
    await place.call("undo", scope="session", name="default")


async def circles_of_links(place: Place) -> None:
    """Folders link to themselves, to each other and to the one above."""
    for name, target in (
        ("a", "."),
        ("b", "c"),
        ("c", "b"),
        ("d/up", ".."),
        ("e", "e"),
        ("f", "a/a/a/a/a/a/f"),
    ):
        place.link(name, target)
    await _looks(place)
    for path in ("a/a/a/a/notes.txt", "b", "d/up/d/up/notes.txt", "e", "f", "a/" * 2000 + "notes.txt"):
        await place.call("read", path=path)
        await place.call("list", path=path)


async def many_files(place: Place) -> None:
    """A command makes 20,000 files in one folder, then removes them."""
    await place.bash("mkdir many; cd many; python3 -c 'for i in range(20000): open(str(i), \"w\").close()'")
    await _looks(place)
    await place.bash("rm -rf many")


async def file_that_nobody_may_open(place: Place) -> str | None:
    """A command leaves a file and a folder with mode 000, beside other changes."""
    await place.bash(
        "echo kept > kept.txt; echo x > closed; chmod 000 closed; mkdir shut; echo y > shut/in; chmod 000 shut"
    )
    kept = (place.workspace / "kept.txt").exists()
    await _looks(place)
    await place.call("read", path="closed")
    await place.call("undo", scope="session", name="default")
    return None if kept else "the changes of a command were lost"


async def closed_folders_of_an_archive(place: Place) -> None:
    """The workspace comes with folders and ignore files that can't be read."""
    place.shell(
        "mkdir shut; echo x > shut/a; chmod 000 shut; echo '*' > .gitignore; chmod 000 .gitignore; chmod 000 notes.txt"
    )
    await _looks(place)


async def sixty_private_files(place: Place) -> None:
    """The workspace holds sixty private files, each of which has to be covered for a command."""
    for number in range(60):
        place.put(f"k{number:03}.pem", f"{place.secrets['OTHER']}\n")
    await place.bash("cat *.pem")
    await _looks(place)


async def thousands_of_private_files(place: Place) -> None:
    """The workspace holds three thousand private files, in a thousand folders."""
    for number in range(1000):
        for name in (".env", "a.pem", "id_rsa"):
            place.put(f"p{number}/{name}", f"{place.secrets['OTHER']}\n")
    await place.bash("cat */.env */a.pem */id_rsa")
    await _looks(place)


async def ignore_files_that_are_pipes(place: Place) -> None:
    """Files that a walk reads by itself are pipes: whoever opens them waits for ever."""
    for name in (
        ".gitignore",
        ".ignore",
        "src/.gitignore",
        ".rgignore",
        "src/AGENTS.md",
        "pyproject.toml",
        ".editorconfig",
    ):
        os.mkfifo(place.workspace / name)
    await _looks(place)
    await place.call("read", path="src/main.py")
    await place.call("edit", path="src/main.py", old_string="main", new_string="name")


async def ignore_files_that_never_end(place: Place) -> None:
    """Ignore files have patterns that take for ever, are devices or enormous."""
    place.put(
        ".gitignore", "\n".join(["**/" * 60 + "a", "*a" * 200, "[!" * 500, "{a,b}" * 30, "a**" * 500] * 20)
    )
    place.link("src/.gitignore", "/dev/zero")
    with (place.workspace / ".ignore").open("wb") as file:
        file.truncate(1 << 30)
    place.put("a" * 200, "x")
    await _looks(place)


async def patterns_that_take_for_ever(place: Place) -> None:
    """Globs and expressions that multiply when they are tried or compiled."""
    place.put("a" * 200, "a" * 50_000 + "!\n")
    for pattern in (
        "{a,b}" * 25,
        "*" * 3000,
        "**/" * 300 + "x",
        "[!" * 500,
        "{" * 5000,
        "*a" * 100 + "b",
        "{a,{b,{c," * 60,
    ):
        await place.call("find", pattern=pattern)
        await place.call("grep", pattern="x", include=pattern)
    for pattern in (
        "(a+)+$",
        "(a|aa)+$",
        "a{1,1000}{1,1000}",
        "(.*)*x",
        "\\p{L}{500}{500}",
        "(" * 5000,
        "(?=a)",
        "[a-\U0010ffff]{999}{99}",
    ):
        await place.call("grep", pattern=pattern)
        await place.call("grep", pattern=pattern, multiline=True)


async def arguments_that_are_too_much(place: Place) -> None:
    """Arguments are enormous, deep, half characters, or numbers beyond all measure."""
    for path in (
        "a/" * 5000,
        "x" * 300,
        "\ud800",
        "a\0b",
        "\udcff",
        "",
        " ",
        "." * 5000,
        "~root/x",
        "a\nb",
        "CON",
        "a" * 100_000,
    ):
        await place.call("read", path=path)
        await place.call("write", path=path, content="x")
        await place.call("list", path=path)
        await place.call("find", pattern="*", path=path)
    await place.call("read", path="notes.txt", start_line=-(10**18), end_line=10**30)
    await place.call("edit", path="notes.txt", old_string="\ud800", new_string="\udfff")
    await place.call("write", path="half.txt", content="\ud800")
    await place.bash("echo '\ud800'")


async def output_without_end(place: Place) -> None:
    """A command prints half a gigabyte, one enormous line, and bytes that are no text."""
    await place.bash("yes | head -c 500000000", timeout=30)
    await place.bash("head -c 80000000 /dev/zero | tr '\\0' a", timeout=30)
    await place.bash("head -c 3000000 /dev/urandom", timeout=30)
    await place.bash(
        "for i in $(seq 3000); do printf '\\e[%d;1H\\e]0;x\\a\\e[999999999C' $i; done", timeout=30
    )


async def growing_file(place: Place) -> None:
    """A file grows faster than it can be read."""
    place.put("grow.log", "x\n")
    grow = "import sys\nwith open(sys.argv[1], 'ab') as f:\n for _ in range(4000): f.write(b'y' * 99999 + b'\\n'); f.flush()"
    place.keep(subprocess.Popen([sys.executable, "-c", grow, str(place.workspace / "grow.log")]))
    for _ in range(5):
        await place.call("read", path="grow.log", start_line=-5)
        await place.call("grep", pattern="y$", path="grow.log", limit=1)
        await place.call("edit", path="grow.log", old_string="x\n", new_string="z\n")


async def nested_folders_of_a_command(place: Place) -> str | None:
    """Fifteen hundred folders in each other must not cost much more to land than as many beside each other."""
    used: list[float] = []
    for script in (
        "mkdir flat; cd flat; mkdir $(seq 1500)",
        f"mkdir deep; cd deep; {_DEEP.format(levels=1500)}",
    ):
        await place.bash("true")
        before = time.process_time()
        await place.bash(script)
        used.append(time.process_time() - before)
    flat, deep = used
    if deep < max(1.5, 3 * flat):
        return None
    return f"1,500 folders in each other took {deep:.1f} s of processor time to land, {flat:.1f} s beside each other"
