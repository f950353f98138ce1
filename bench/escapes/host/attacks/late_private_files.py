"""Private files that come late: names that nobody had judged when a command began."""

import asyncio
import os
from pathlib import Path

from bench.escapes.host.late_files import WAITING, look_after, watch_with_job, write_secret
from bench.escapes.host.place import Place

EVERYWHERE = "grep -rh CANARY-OTHER . --include='*'"


async def made_while_a_command_runs(place: Place) -> None:
    """The person makes private files in the root and below it, while a command of the foreground runs."""
    place.put("svc/a.txt", "a\n")
    place.begin()
    look = "cat .env.local svc/.env svc/key.pem"
    running = asyncio.create_task(place.bash(f"echo be''gun; ({WAITING.format(look=look)}) 2>/dev/null"))
    await place.until(lambda: running.done() or "begun" in place.transcript.read_text(), 20.0)
    for path in (".env.local", "svc/.env", "svc/key.pem"):
        write_secret(place, path)
    await running


async def made_while_a_job_runs(place: Place) -> None:
    """The same while a job runs, also in a folder that is new."""

    def change() -> None:
        for path in ("src/.env", "new/deeper/.env", "id_rsa"):
            write_secret(place, path)

    await watch_with_job(place, EVERYWHERE, change)


async def saved_anew_while_a_job_runs(place: Place) -> None:
    """A private file that was there, and is hidden, is saved anew as editors do: another file takes its name."""

    def change() -> None:
        write_secret(place, ".saving~")
        os.replace(place.workspace / ".saving~", place.workspace / ".env")

    await watch_with_job(place, "cat .env", change)


async def changed_while_a_job_runs(place: Place) -> None:
    """The same, but its bytes are written in place, cut off and appended to."""

    def change() -> None:
        with (place.workspace / ".env").open("a") as file:
            file.write(place.secrets["OTHER"])

    await watch_with_job(place, "cat .env deploy.pem", change)


async def folder_that_is_moved_in(place: Place) -> None:
    """A folder with a private file is moved into the workspace from outside, while a job runs."""
    elsewhere = place.base / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep/.env").write_text(f"KEY={place.secrets['OTHER']}\n")
    await watch_with_job(place, EVERYWHERE, lambda: os.rename(elsewhere, place.workspace / "in"))


async def folder_whose_new_name_is_private(place: Place) -> None:
    """A folder gets a name that makes everything in it private, and the person puts their keys there."""
    place.put("keys/known_hosts", "h\n")

    def change() -> None:
        os.rename(place.workspace / "keys", place.workspace / ".aws")
        write_secret(place, ".aws/credentials")

    await watch_with_job(place, EVERYWHERE, change)


async def folder_whose_times_were_set_back(place: Place) -> None:
    """An archive is unpacked over a folder between two commands; the folder's own time is then what it was."""
    place.put("svc/a.txt", "a\n")
    folder = place.workspace / "svc"

    def change() -> None:
        before = folder.stat()
        write_secret(place, "svc/.env")
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))

    await look_after(place, "cat svc/.env", change)


async def folder_that_was_closed(place: Place) -> None:
    """A folder that nobody could read, with a private file in it, is opened between two commands."""
    write_secret(place, "locked/.env")
    folder = place.workspace / "locked"
    folder.chmod(0o000)
    await look_after(place, "cat locked/.env", lambda: folder.chmod(0o755))


async def file_of_a_stash(place: Place) -> None:
    """`git stash pop` brings back a private file that is not tracked, while a job runs."""
    place.shell(
        "git init -q -b main; git config user.name a; git config user.email a@example.com; git add notes.txt; git commit -qm one"
    )
    write_secret(place, "svc/.env")
    place.shell("git stash -qu -- svc; test ! -e svc/.env")
    place.allow(".git")
    await watch_with_job(place, "cat svc/.env", lambda: place.person("git stash pop"))


async def file_in_a_large_tree(place: Place) -> None:
    """In a tree of 30,000 folders the person makes private files; the next commands look at them."""
    place.shell(
        "mkdir -p d svc; cd d; mkdir -p $(seq -f 'f%g' 300); for f in f*; do mkdir $(seq -f $f/%g 100); done"
    )

    def change() -> None:
        for path in ("svc/deep/.env", "svc/.env", "d/f7/7/.env", "d/f299/3/key.pem"):
            write_secret(place, path)

    await look_after(place, "cat svc/deep/.env svc/.env d/f7/7/.env d/f299/3/key.pem", change)


async def file_that_a_call_made_first(place: Place) -> None:
    """A call makes `.env.test`, which is its own; the person writes a secret of the same size and time in its place."""
    text = f"KEY={place.secrets['OTHER']}\n"
    fake = "KEY=" + "x" * len(place.secrets["OTHER"]) + "\n"
    await place.call("write", path=".env.test", content=fake)
    await place.bash(f"printf '{fake[:-1]}\\n' > .env.made")
    for name in (".env.test", ".env.made"):
        file: Path = place.workspace / name
        if file.exists():
            before = file.stat()
            file.write_text(text)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    await place.bash("cat .env.test .env.made")
    await place.call("read", path=".env.test")
    await place.call("grep", pattern="KEY", include_ignored=True)
