"""Layers of running jobs, into which we bring what others change: by a job that has prepared its own side."""

import os
from pathlib import Path

from bench.escapes.host.place import Place
from handtools import Call

_LOOK = "while sleep 0.02; do cat signal 2>/dev/null; done"


async def _job(place: Place, script: str) -> None:
    """A job that has done the script, and then waits for a signal."""
    args = {"command": f"{script}; echo pre''pared; {_LOOK}", "background": True}
    await place.call(Call(tool="bash", args=args, session="s"))
    await _printed(place, "prepared")


async def _printed(place: Place, word: str) -> str:
    text = ""
    for _ in range(300):
        look = {"action": "output", "job": "job1"}
        text = (await place.call(Call(tool="jobs", args=look, session="s"))).text
        if word in text:
            break
    return text


def _save(path: Path, text: str) -> None:
    """As an editor saves: a new file in the place of the old one."""
    beside = path.with_name(".saving")
    beside.write_text(text)
    os.replace(beside, path)


async def _saved(place: Place, *paths: str) -> str:
    """A person saves files; afterwards the job has seen the last of them."""
    place.allow(*paths, "signal")
    for path in paths:
        _save(place.workspace / path, "saved by a person\n")
    _save(place.workspace / "signal", "signalled")
    text = await _printed(place, "signalled")
    return "" if "signalled" in text else f"it proves nothing: {text[-200:]}"


async def folder_that_became_a_link(place: Place) -> str | None:
    """The job replaces a folder with a link to outside; a file of that folder is saved."""
    for folder in (place.outside, place.home, Path("/etc")):
        place.put(f"{folder.name}-d/secret.txt", "x\n")
    links = "; ".join(
        f"rm -r {each.name}-d; ln -s {each} {each.name}-d"
        for each in (place.outside, place.home, Path("/etc"))
    )
    await _job(place, links)
    return await _saved(place, *(f"{each}-d/secret.txt" for each in ("outside", "home", "etc"))) or None


async def name_that_became_a_link(place: Place) -> str | None:
    """The job replaces a file with a link to a file outside; the file is saved."""
    await _job(place, f"rm notes.txt; ln -s {place.outside}/secret.txt notes.txt")
    return await _saved(place, "notes.txt") or None


async def folders_that_change_places(place: Place) -> str | None:
    """The job swaps a folder and a link to outside again and again while files of that folder are saved."""
    place.put("d/secret.txt", "x\n")
    swap = f"mkdir l; rmdir l; ln -s {place.outside} l; (while :; do mv -T d t; mv -T l d; mv -T d l; mv -T t d; done) &"
    await _job(place, swap.removesuffix(" &") + " 2>/dev/null & true")
    for _ in range(20):
        if word := await _saved(place, "d/secret.txt", "d/other.txt"):
            return word
    return None


async def private_file_by_saving_it(place: Place) -> str | None:
    """The job keeps an eye on private files that are hidden from it; a person saves them again."""
    await _job(place, "(while sleep 0.01; do cat .env deploy.pem .ssh/config; done) 2>/dev/null & true")
    secrets = {name: place.secrets[key] for name, key in ((".env", "DOTENV"), ("deploy.pem", "PEM"))}
    place.allow(*secrets)
    for name, secret in secrets.items():
        _save(place.workspace / name, f"{secret}\n")
    return await _saved(place, "notes.txt") or None


async def protected_file_by_saving_it(place: Place) -> str | None:
    """A protected file is covered read-only; a person saves it, and the job writes into what is there then."""
    place.put(".envrc", "export A=1\n")
    writes = "(while sleep 0.01; do echo evil >> .envrc; done) 2>/dev/null & true"
    await _job(place, writes)
    word = await _saved(place, ".envrc")
    await place.call(Call(tool="jobs", args={"action": "kill", "job": "job1"}, session="s"))
    text = (place.workspace / ".envrc").read_text()
    return word or ("it wrote a protected file" if "evil" in text else None)
