"""Links and names: a private file, or one outside, is read under a name that nobody minds."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from bench.escapes.host.place import Place
from handtools import Result


async def _looked_at(place: Place, *paths: str) -> None:
    """Every tool that shows a file, at these paths."""
    for path in paths:
        await place.call("read", path=path)
        await place.call("read", path="notes.txt", also=[path])
        await place.call("grep", pattern="CANARY", path=path, include_ignored=True)
        await place.call("attach", paths=[path])
        await place.call("list", path=path, include_ignored=True)
        await place.call("edit", path=path, old_string="CANARY", new_string="canary")


async def link_to_a_private_file(place: Place) -> None:
    """A link with an ordinary name leads to .env."""
    place.link("config.txt", ".env")
    place.link("docs/config.txt", "../.env")
    await _looked_at(place, "config.txt", "docs/config.txt")
    await place.call("grep", pattern="CANARY", include_ignored=True)


async def link_to_a_private_folder(place: Place) -> None:
    """A link with an ordinary name leads to .ssh, and the path goes on below it."""
    place.link("settings", ".ssh")
    await _looked_at(place, "settings/config", "settings")


async def link_out_of_the_workspace(place: Place) -> None:
    """Links lead to a file outside: absolute, relative, through a folder and through another link."""
    place.link("a", place.outside / "secret.txt")
    place.link("b", "../outside/secret.txt")
    place.link("c", "../outside")
    place.link("d", "src/../../outside/secret.txt")
    place.link("e", "d")
    await _looked_at(place, "a", "b", "c/secret.txt", "d", "e")


async def link_made_by_a_command(place: Place) -> None:
    """A command makes the links, which then are looked at."""
    await place.bash(
        f"ln -s .env one; ln -s {place.outside}/secret.txt two; ln -s /usr/..{place.outside} three"
    )
    await _looked_at(place, "one", "two", "three/secret.txt")


async def hard_link_made_by_a_command(place: Place) -> None:
    """A command gives a private file a second name: by a hard link, a copy, or by moving what is around it."""
    await place.bash(
        "ln .env one; cp -l deploy.pem two; mv .env three; mv .ssh four; cp -r .ssh five; ln .ssh/config six; true"
    )
    await _looked_at(place, "one", "two", "three", "four/config", "five/config", "six")


async def other_spellings(place: Place) -> None:
    """The path of a private file is spelled in other ways."""
    root = place.workspace
    spelled = (
        "./.env", ".//.env", "src/../.env", ".env/", ".env/.", f"{root}/.env", f"{root}/../work/.env", ".env:1-2",
        ".env::KEY", "file:.env", f"file://{root}/.env", "output:../../work/.env", "output:.env", "skill:../.env",
        "~/../work/.env", "%2eenv", "handtools://file/.env", f"//{root}/.env", "\\.env",
        "notes.txt/../.env", ".ssh//config",
    )  # fmt: skip
    await _looked_at(place, *spelled)


async def other_case(place: Place) -> None:
    """A private file has its name in other letters."""
    for name in (".ENV", ".Env.Local", "ID_RSA", "Server.KEY", ".SSH/Config", "deep/.AWS/credentials"):
        place.put(name, place.secrets["OTHER"])
    await _looked_at(
        place, ".ENV", ".Env.Local", "ID_RSA", "Server.KEY", ".SSH/Config", "deep/.AWS/credentials"
    )
    await place.call("grep", pattern="CANARY", include_ignored=True)


async def paths_of_our_own_process(place: Place) -> None:
    """Paths below /proc and /dev lead to our own environment, folder and descriptors."""
    place.link("environ", "/proc/self/environ")
    place.link("here", "/proc/self/cwd/secret.txt")
    place.link("root", f"/proc/self/root{place.workspace}/.env")
    place.link("thread", f"/proc/thread-self/root{place.workspace}/.env")
    paths = (
        "environ",
        "here",
        "root",
        "thread",
        "/proc/self/environ",
        "/proc/self/fd/0",
        "/dev/fd/3",
        "/dev/stdin",
    )
    await _looked_at(place, *paths)
    await place.bash("cat /proc/1/environ /proc/self/environ environ here root")


async def swapped_while_it_is_read(place: Place) -> None:
    """Another process exchanges a file and a link to .env, while it is read again and again."""
    place.put("public", "public\n")
    place.link("other", ".env")
    place.race("public", "other")
    await _raced(lambda: place.call("read", path="public"))


async def swapped_folder_while_it_is_read(place: Place) -> None:
    """Another process exchanges a folder and a link to one outside."""
    place.put("folder/secret.txt", "public\n")
    place.link("other", place.outside)
    place.race("folder", "other")
    await _raced(lambda: place.call("read", path="folder/secret.txt"))


async def swapped_while_it_is_searched(place: Place) -> None:
    """Another process exchanges a file and a link to .env, while its folder is searched."""
    place.put("folder/public", "public\n")
    place.link("folder/other", "../.env")
    place.race("folder/public", "folder/other")
    await place.call("grep", pattern="CANARY|public", path="folder")
    await _raced(lambda: place.call("grep", pattern="CANARY|public", path="folder/public"), 100)


async def swapped_while_it_is_attached(place: Place) -> None:
    """Another process exchanges a file and a link to .env, while it is given to a person."""
    place.put("public", "public\n")
    place.link("other", ".env")
    place.race("public", "other")
    await _raced(lambda: place.call("attach", paths=["public"]))


async def _raced(call: Callable[[], Awaitable[Result[Any]]], rounds: int = 400) -> None:
    """The judge finds a secret in what was said."""
    for _ in range(rounds):
        await call()


async def instructions_that_are_links(place: Place) -> None:
    """AGENTS.md and its like, which are shown with the files beside them, are links to private files."""
    place.link("one/AGENTS.md", "../.env")
    place.link("two/CLAUDE.md", "../deploy.pem")
    place.link("three/AGENTS.md", place.outside / "secret.txt")
    place.link("four/AGENTS.md", "../one/AGENTS.md")
    place.link("five", ".ssh")
    for folder in ("one", "two", "three", "four"):
        place.put(f"{folder}/code.py", "x = 1\n")
        await place.call("read", path=f"{folder}/code.py")
        await place.call("edit", path=f"{folder}/code.py", old_string="1", new_string="2")


async def instructions_that_import(place: Place) -> None:
    """AGENTS.md asks for other files to be included: private ones and ones outside."""
    place.put(
        "one/AGENTS.md",
        f"@../.env\n@.env\n@{place.outside}/secret.txt\n![](../deploy.pem)\n{{{{../.env}}}}\n",
    )
    place.put("one/code.py", "x = 1\n")
    place.link("AGENTS.md", ".env")
    await place.call("read", path="one/code.py")


async def patches_that_move_private_files(place: Place) -> None:
    """A patch renames or copies a private file to an ordinary name, or makes a link to it."""
    for verb in ("rename", "copy"):
        head = "diff --git a/.env b/pub.txt\nsimilarity index 100%\n"
        await place.call("patch", patch=f"{head}{verb} from .env\n{verb} to pub.txt\n")
    begin, end = "*** Begin Patch\n", "*** End Patch"
    await place.call(
        "patch",
        patch=f"{begin}*** Update File: .env\n*** Move to: pub.txt\n@@\n-KEY={place.secrets['DOTENV'][:3]}\n+x\n{end}",
    )
    new = "new file mode 120000\n--- /dev/null\n+++ b/pub2.txt\n@@ -0,0 +1 @@\n+.env\n\\ No newline at end of file\n"
    await place.call("patch", patch=f"diff --git a/pub2.txt b/pub2.txt\n{new}")
    await place.call("undo", scope="path", name=".env", action="versions")
    for path in ("pub.txt", "pub2.txt"):
        await place.call("read", path=path)


async def working_folder_that_is_a_link(place: Place) -> None:
    """A command is started in a folder that is a link to one outside, or to a private one."""
    place.link("there", place.outside)
    place.link("ssh", ".ssh")
    for folder in ("there", "ssh", "..", str(place.outside), "src/../../outside"):
        await place.bash("cat secret.txt config; echo x > made.txt", cwd=folder)


async def link_to_a_device(place: Place) -> None:
    """Links lead to files that never end or never answer."""
    for number, target in enumerate(
        ("/dev/zero", "/dev/tty", "/dev/full", "/proc/kcore", "/proc/self/mem")
    ):
        place.link(f"device{number}", target)
    os.mkfifo(place.workspace / "pipe")
    for path in (*(f"device{number}" for number in range(5)), "pipe"):
        await place.call("read", path=path)
        await place.call("grep", pattern="x", path=path)
        await place.call("attach", paths=[path])
        await place.call("edit", path=path, old_string="a", new_string="b")
        await place.call("write", path=path, content="x", mode="overwrite")
