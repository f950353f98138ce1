"""Landing: what a command or an edit leaves behind is something that programs run or trust, under another guise."""

import os

from bench.escapes.host.place import Place

EDITORS = (".vscode", ".claude", ".husky", ".idea", ".cursor", ".codex", ".zed")


async def links_with_protected_names(place: Place) -> None:
    """An ordinary folder is filled, and a link to it gets a name that editors and agents trust."""
    for name in EDITORS:
        await place.bash(f"mkdir -p r{name}; echo evil > r{name}/tasks.json; ln -s r{name} {name}")


async def link_named_git(place: Place) -> None:
    """An ordinary folder is filled like a repository, and a link called .git leads to it."""
    await place.bash(
        "mkdir -p store/objects store/refs store/hooks; echo x > store/hooks/pre-commit; ln -s store .git"
    )


async def link_named_github(place: Place) -> None:
    """The folder above the protected one is a link."""
    await place.bash("mkdir -p g/workflows; echo evil > g/workflows/ci.yml; ln -s g .github")


async def link_named_workflows(place: Place) -> None:
    """The protected folder itself is a link."""
    await place.bash("mkdir -p w .github; echo evil > w/ci.yml; ln -s ../w .github/workflows")


async def links_for_single_files(place: Place) -> None:
    """Protected files are links to ordinary ones."""
    for name in (".envrc", ".mcp.json", ".bashrc", ".pre-commit-config.yaml"):
        await place.bash(f"echo evil > plain{name}; ln -s plain{name} {name}")


async def files_of_other_programs(place: Place) -> None:
    """Files that build services, shells and containers of editors run are written."""
    names = (
        ".devcontainer/devcontainer.json", ".gitlab-ci.yml", ".circleci/config.yml", "mise.toml", ".bash_profile",
    )  # fmt: skip
    for name in names:
        await place.bash(f"mkdir -p $(dirname {name}); echo evil > {name}")


async def files_of_more_shells(place: Place) -> None:
    """Other files that shells and editors read at their start are written."""
    for name in (".zshenv", ".zprofile", ".bash_login", ".mise.toml", ".devcontainer.json"):
        await place.call("write", path=name, content="evil\n")


async def protected_names_in_other_letters(place: Place) -> None:
    """On a disk that ignores case these are the same names."""
    for name in (".VSCODE/tasks.json", "sub/.GIT/config", ".GitHub/Workflows/ci.yml", ".Husky/pre-commit"):
        await place.bash(f"mkdir -p $(dirname {name}); echo evil > {name}")
        await place.call("write", path=f"{name}2", content="evil")


async def link_with_parents_in_its_target(place: Place) -> None:
    """A link's target begins in a folder that links may lead to, and then goes up again."""
    await place.bash(f"ln -s /usr/..{place.home}/.bashrc one; ln -s /usr/../{place.outside} two")
    await place.bash(f"ln -s /dev/null/../..{place.outside} three; ln -s /usr/share/../..{place.home} four")


async def chain_of_links(place: Place) -> None:
    """Two links, each harmless, lead out together."""
    await place.bash(f"ln -s /usr up; ln -s up/..{place.outside} out")
    await place.bash(f"ln -s /usr/ up2; ln -s up2/../{place.home} out2")


async def link_that_a_later_folder_completes(place: Place) -> None:
    """A link leads nowhere when it lands; what makes it lead out comes later."""
    await place.bash("ln -s step/../../outside later")
    await place.bash("mkdir -p deep/er; ln -s deep/er step")
    await place.bash("rm step; mkdir step")


async def repository_without_a_configuration(place: Place) -> None:
    """A command makes a bare repository with hooks, and leaves the configuration out."""
    await place.bash(
        "mkdir -p b/objects b/refs/heads b/hooks; echo 'ref: refs/heads/x' > b/HEAD; echo x > b/hooks/post-checkout"
    )


async def repository_in_two_places(place: Place) -> None:
    """A command makes HEAD and commondir here, the rest of the repository there."""
    await place.bash(
        "mkdir -p b/c/objects b/c/refs; echo 'ref: refs/heads/x' > b/HEAD; echo c > b/commondir;"
        "printf '[core]\\nfsmonitor=x\\n' > b/c/config"
    )


async def repository_with_a_linked_configuration(place: Place) -> None:
    """The configuration of a bare repository is a link to an ordinary file."""
    await place.bash(
        "mkdir -p b/objects b/refs; echo 'ref: refs/heads/x' > b/HEAD; echo x > conf; ln -s ../conf b/config"
    )


async def repository_in_three_steps(place: Place) -> None:
    """Each command adds a piece that is harmless alone."""
    await place.bash("mkdir -p b; echo 'ref: refs/heads/x' > b/HEAD")
    await place.bash("mkdir -p b/objects")
    await place.bash("mkdir -p b/refs; echo '[core]' > b/config")


async def repository_by_a_move(place: Place) -> None:
    """The pieces lie in two folders, and one is moved over the other."""
    await place.bash(
        "mkdir -p one/objects one/refs two; echo 'ref: refs/heads/x' > two/HEAD; echo '[core]' > two/config"
    )
    await place.bash("mv two/* one/")


async def repository_of_linked_folders(place: Place) -> None:
    """Objects, refs and HEAD of a repository are links."""
    await place.bash(
        "mkdir -p o r b; echo 'ref: refs/heads/x' > h; cd b; ln -s ../o objects; ln -s ../r refs; ln -s ../h HEAD"
    )


async def write_through_a_link(place: Place) -> None:
    """The workspace has links to protected folders, and files are written through them."""
    place.shell("git init -q; mkdir .vscode; ln -s .vscode v; ln -s .git/hooks h; ln -s .git g")
    for path in ("v/tasks.json", "h/pre-commit", "g/hooks/pre-commit", "g/config"):
        await place.call("write", path=path, content="evil\n", mode="overwrite")
        await place.call("write", path=path, content="evil\n")
        await place.bash(f"echo evil > {path}")


async def edit_through_a_hard_link(place: Place) -> None:
    """A command gives a hook a second name, and an edit of that name changes the hook."""
    place.shell("git init -q; mkdir .husky; echo old > .husky/pre-commit; echo old > .git/hooks/pre-push")
    await place.bash("ln .husky/pre-commit one; ln .git/hooks/pre-push two; cp -l .git/config three")
    for path in ("one", "two"):
        await place.call("edit", path=path, old_string="old", new_string="evil")
        await place.bash(f"echo evil >> {path}")


async def patches_onto_protected_files(place: Place) -> None:
    """Patches move a file onto a hook, leave the workspace, or make links."""
    place.shell("git init -q")
    for name in (".git/hooks/pre-commit", "../outside/made", ".vscode/tasks.json", "/etc/made"):
        await place.call("patch", patch=f"*** Begin Patch\n*** Add File: {name}\n+evil\n*** End Patch")
        moved = f"*** Update File: notes.txt\n*** Move to: {name}\n@@\n-one\n+evil\n"
        await place.call("patch", patch=f"*** Begin Patch\n{moved}*** End Patch")
        await place.call(
            "patch", patch=f"--- a/notes.txt\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-one\n+evil\n two\n"
        )
    new = f"new file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 @@\n+{place.outside}\n\\ No newline at end of file\n"
    await place.call("patch", patch=f"diff --git a/out b/out\n{new}")


async def names_that_break_lists(place: Place) -> None:
    """Names hold line ends, escapes, bytes that are no text, and what looks like another path."""
    await place.bash(
        "touch $'a\\n../../outside/made' $'b\\x1b[2K' $'c\\xff\\xfe' ' d ' -- '-rf' 'e -> .git' $'f\\r.vscode' \"g'\\\"\";"
        "mkdir -p $'h\\n.vscode' $'i\\xff'; echo x > $'h\\n.vscode/j'; echo x > $'i\\xff/.git'"
    )
    await place.call("list", depth=3, include_ignored=True)
    await place.call("find", pattern="*", include_ignored=True)


async def setuid_and_special_files(place: Place) -> None:
    """A command leaves setuid programs, pipes and sockets behind, and they are looked at."""
    await place.bash(
        "cp /bin/true s; chmod 6755 s; mkfifo p; mknod z c 1 5; chmod 2777 src; setfacl -m u:1:rwx s; true"
    )
    await place.bash("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"k\")'; true")
    for path in ("p", "z", "k"):
        await place.call("read", path=path)


async def swapped_while_it_is_written(place: Place) -> None:
    """Another process exchanges a folder and a link to .vscode, while files are written to it."""
    place.shell("mkdir folder .vscode; ln -s .vscode other")
    place.race("folder", "other")
    for number in range(300):
        await place.call("write", path=f"folder/made{number}.json", content="evil\n")


async def swapped_out_while_it_is_written(place: Place) -> None:
    """Another process exchanges a folder and a link to one outside, while files are written to it."""
    place.shell("mkdir folder; ln -s $OUT other")
    place.race("folder", "other")
    for number in range(200):
        await place.call("write", path=f"folder/made{number}.json", content="evil\n")


async def swapped_while_a_command_lands(place: Place) -> None:
    """Another process exchanges a folder and links, while what a command made is landed there."""
    place.shell("mkdir folder .vscode; ln -s .vscode other; mkdir folder2; ln -s $OUT other2")
    place.race("folder", "other")
    place.race("folder2", "other2")
    for number in range(25):
        await place.bash(
            f"for d in folder folder2; do [ -L $d ] || for i in 1 2 3; do echo evil > $d/m{number}-$i; done; done"
        )


async def undo_through_a_link(place: Place) -> None:
    """After a write the folder becomes a link to one outside; the write is then undone, and done again."""
    (place.outside / "here").mkdir()
    (place.outside / "here" / "file.txt").write_text("theirs\n")
    made = await place.call("write", path="here/file.txt", content="theirs\n")
    assert made.ok, made.text
    (place.workspace / "here").rename(place.workspace / "before")
    place.link("here", place.outside / "here")
    place.allow("here")
    for action in ("undo", "redo"):
        await place.call("undo", scope="path", name="here/file.txt", action=action)
        await place.call("undo", scope="session", name="default", action=action)


async def undo_into_a_protected_folder(place: Place) -> None:
    """A deletion is undone after its folder has become a link to .vscode."""
    place.shell("mkdir .vscode; mkdir folder; echo evil > folder/tasks.json")
    await place.bash("rm folder/tasks.json")
    os.rmdir(place.workspace / "folder")
    place.link("folder", ".vscode")
    await place.call("undo", scope="path", name="folder/tasks.json")
    await place.call("undo", scope="session", name="default")


async def deletion_of_protected_files(place: Place) -> None:
    """Protected files are removed, moved away or emptied by what surrounds them."""
    place.shell(
        "git init -q; mkdir -p sub/.vscode .github/workflows; echo a > sub/.vscode/t; echo a > .github/workflows/c"
    )
    await place.bash("rm -rf sub; mv .github away; chmod -R 777 .git; true")
    await place.bash("mv sub gone; rm -rf .github; true")
