"""More private files that come late."""

import asyncio
import os
import random
import shutil

from bench.escapes.host.late_files import WAITING, look_after, watch_with_job, write_secret
from bench.escapes.host.place import Person, Place


async def file_in_a_repository_of_its_own(place: Place) -> None:
    """The person clones a project into the workspace while a job runs, and makes its `.env`."""

    def change() -> None:
        place.person("git init -q clone")
        write_secret(place, "clone/.env")
        write_secret(place, "clone/deploy/server.key")

    place.allow("clone")
    await watch_with_job(place, "cat clone/.env clone/deploy/server.key", change)


async def file_beside_a_live_job(place: Place) -> None:
    """The person has allowed a job that writes in place; while it runs, they make private files."""
    place.open(person=Person(()))
    look = "grep -rh CANARY-OTHER ."  # a private name in it would be refused before it runs
    job = await place.job(f"echo ready; ({WAITING.format(look=look)}) 2>/dev/null", live=True)
    for path in ("src/.env", ".env.local", "late/id_ed25519"):
        write_secret(place, path)
    for action in ("wait", "output"):
        await place.call("jobs", action=action, job=job.details.job, timeout=15.0)


async def file_made_as_a_command_begins(place: Place) -> None:
    """Private files are made at any moment around the start of commands, each in a folder of its own."""
    draw = random.Random(33)
    for number in range(20):
        place.put(f"r{number}/a.txt", "a\n")
    for number in range(20):
        look = f"sleep 0.1; cat r{number}/.env; sleep 0.2; cat r{number}/.env"
        running = asyncio.create_task(place.bash(f"({look}) 2>/dev/null"))
        await asyncio.sleep(draw.random() * 0.2)
        write_secret(place, f"r{number}/.env")
        await running


async def folder_exchanged_for_one_of_the_same_time(place: Place) -> None:
    """A folder is exchanged for a copy with a private file; both have the same times, and so has the one above."""
    place.put("apps/svc/a.txt", "a\n")
    above, folder = place.workspace / "apps", place.workspace / "apps/svc"

    def change() -> None:
        times = {each: (each.stat().st_atime_ns, each.stat().st_mtime_ns) for each in (above, folder)}
        other = place.base / "other"
        shutil.copytree(folder, other)
        (other / ".env").write_text(f"KEY={place.secrets['OTHER']}\n")
        shutil.rmtree(folder)
        os.rename(other, folder)
        for each in (folder, above):
            os.utime(each, ns=times[each])

    await look_after(place, "cat apps/svc/.env", change)


async def file_whose_name_changes(place: Place) -> None:
    """An ordinary file gets a private name while a job runs, and the person writes a secret into it."""
    place.put("settings.txt", "a\n")

    def change() -> None:
        os.rename(place.workspace / "settings.txt", place.workspace / ".env.production")
        write_secret(place, ".env.production")

    await watch_with_job(place, "cat .env.production", change)
