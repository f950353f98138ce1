"""Approvals of commands that name a file, once more."""

import os

from bench.escapes.host.place import Person, Place
from handtools import Reply


async def script_of_the_same_size_and_time(place: Place) -> str | None:
    """The script that was asked about gets other bytes; its size, its time and its inode are as they were."""
    file = place.put("s.sh", "echo a fine script\n")
    place.open(runner="plain")
    asked = await place.bash("sh s.sh")
    before = file.stat()
    file.write_text("echo 1 > made.txt \n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    person = Person(("made",))
    await place.agree(asked, person)
    ran = (place.workspace / "made.txt").exists()
    return "approved: `sh s.sh`, and it had other bytes" if ran and person.agreed else None


async def lasting_yes_to_a_script(place: Place) -> str | None:
    """A yes to `sh s.sh` is for the whole session; then the script is another one, and nobody is asked."""
    place.put("s.sh", "echo fine\n")
    box = place.open(runner="plain")
    asked = (await place.bash("sh s.sh")).request
    if asked is None:
        return None
    reply = Reply(allow=True, remember="session", fingerprint=asked.fingerprint)
    place.heard("resume", await box.resume(asked.call_id, reply))
    await place.call("write", path="s.sh", content="echo evil > made.txt\n", mode="overwrite")
    again = await place.bash("sh s.sh")
    ran = (place.workspace / "made.txt").exists()
    return "approved: a lasting yes to a script ran another one" if ran and again.request is None else None
